"""Function words, which structure questions and rarely name their topic."""

from functools import lru_cache

QUESTION_WORDS = frozenset("how what whats when where wheres which who whom whos whose why name list tell give".split())

STOP_WORDS = frozenset(
    """a about after also am an and any are as at be been before being both but by can could d did do does doing done
    for from had has have he her here hers him his i if in into is it its ll m me my of on one or our out over s she
    should so some such t than that the their them then there these they this those to under up us was we were will
    with would you your""".split()
)

AUXILIARIES = frozenset("am are be been being can could did do does had has have is should was were will would".split())

# The next two: words that are outside the mention at least 25 times in FBSQ's training questions.
CONTEXT_WORDS = frozenset(
    """affiliated apart appear associated authored based begin began belong birthed born buried called came categorized
    cause caused classified compose composed considered contain contained contains contribute create created deals
    describe described designed developed die died directed discovered edited example feature featured features filmed
    find focuses found founded gender given hold holds identify include included includes influenced involved kind kinds
    known listed located locates made makes manufactured named notable operate originally originate part perform
    performs play played plays produce produced published recorded released sang serve signed someone sort spoken take
    titled took treat type types used uses using within work worked write writes written wrote""".split()
)
"""Words of questions that are inside a name at most once in twenty; they separate names."""

COMMON_WORDS = frozenset(
    """call come comes famous favorite give gives goes know like live lived look make most people run runs sing sings
    start takes turn want went works""".split()
)
"""Words of both questions and names, which are not misspellings."""

FUNCTION_WORDS = STOP_WORDS | QUESTION_WORDS

_FORMS_REMEMBERED = 100_000
"""Forms whose result is cached, since most questions share their words."""


def has_word(form: str) -> bool:
    """Return whether a form has a word."""
    return form[:1].isalnum() or any(map(str.isalnum, form))


@lru_cache(_FORMS_REMEMBERED)
def has_content(form: str) -> bool:
    """Return whether a form is more than function words; punctuation such as `!!!` counts as a title."""
    if not has_word(form):
        return len(form) > 2 and not form.startswith("..")
    return not FUNCTION_WORDS.issuperset(form.split(" "))
