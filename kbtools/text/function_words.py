"""Function words: they open questions and hold sentences together, and rarely name what a question is about."""

QUESTION_WORDS = frozenset("how what whats when where wheres which who whom whos whose why name list tell give".split())

STOP_WORDS = frozenset(
    """a about after also am an and any are as at be been before being both but by can could d did do does doing done
    for from had has have he her here hers him his i if in into is it its ll m me my of on one or our out over s she
    should so some such t than that the their them then there these they this those to under up us was we were will
    with would you your""".split()
)

AUXILIARIES = frozenset("am are be been being can could did do does had has have is should was were will would".split())

CONTEXT_WORDS = frozenset(
    """based begin began born call called came come cause caused contain contained contains created describe described
    die died does feature featured features find found give given goes hold holds include included includes involved
    know known like live lived located made make makes part play played plays produce produced released run runs sang
    sing sings spoken take takes turn used using want went work worked works write writes written wrote""".split()
)
"""Verbs of the questions of FBSQ's training split: no misspellings of names, even where no name holds them."""

FUNCTION_WORDS = STOP_WORDS | QUESTION_WORDS


def is_spoken(form: str) -> bool:
    """Tell whether a form has a word at all."""
    return any(character.isalnum() for character in form)


def has_content(form: str) -> bool:
    """Tell whether a form carries meaning: not of function words alone; of marks, a title such as `!!!` does."""
    if not is_spoken(form):
        return len(form) > 2 and not form.startswith("..")
    return not all(word in FUNCTION_WORDS for word in form.split(" "))
