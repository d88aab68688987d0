"""Names written otherwise: what is stored and what is asked meet under one form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.text.normaliser import normal_form
from kbtools.text.question import Question
from kbtools.text.readings import MOST_WRITTEN, OUTER, every_ngram
from kbtools.text.rungs import Form
from kbtools.text.variants import CONJUNCTIONS, is_special, name_forms, roman_value, variant_forms, words_of

LENGTHS = frozenset(range(1, 12))


def asked(text: str) -> set[str]:
    return {ngram.form for ngram in every_ngram(Question.read(text), lengths=LENGTHS)}


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        ("Iron Kite II", ["iron kite 2", "iron kite two", "Iron Kite II"]),
        ("Iron Kite 2", ["iron kite ii", "iron kite two"]),
        ("Henry VIII", ["henry the eighth", "henry 8th", "henry 8"]),
        ("One Hundred and One Dalmatians", ["101 dalmatians"]),
        ("21 Grams", ["twenty-one grams", "twenty one grams"]),
        ("Rocky V", ["rocky 5", "rocky five"]),
        ("D. K. Harrow", ["dk harrow", "d.k. harrow", "DK Harrow"]),
        ("J.R.R. Tolleson", ["jrr tolleson", "j r r tolleson"]),
        ("N.W.A", ["nwa", "n w a"]),
        ("NOAA", ["n.o.a.a."]),
        ("AT&T", ["att", "at&t"]),
        ("KX/DC", ["kxdc", "kx-dc", "kx dc"]),
        ("GDC-0941", ["gdc0941", "gdc 0941"]),
        ("IL2", ["il-2", "il 2"]),
        ("978-0-7356-1967-8", ["9780735619678", "978 0735619678"]),
        ("Husk & Thorn", ["husk + thorn", "husk thorn", "husk and thorn"]),
        ("Rhythm + Dirt", ["rhythm and dirt"]),
        ("St. Corvin", ["saint corvin"]),
        ("Saint-Mallow", ["st mallow", "st. mallow"]),
        ("Mount Ellery", ["mt. ellery"]),
        ("Fort Dunmore", ["ft dunmore"]),
        ("Dr. Alban", ["doctor alban"]),
        ("Roe v. Wade", ["roe vs wade", "roe versus wade"]),
        ("World War-II", ["world war 2"]),
        ("Kite of the Iron Hill and Lamp II", ["kite of the iron hill and lamp 2"]),
        ("4,812 Lamps", ["4812 lamps"]),
        ("1 234 567 8 Lamps", ["12345678 lamps"]),
        ("Two Hundred and Six Bones", ["206 bones", "two hundred six bones"]),
        ("Joan P. Strelow", ["joan strelow"]),
        ("Brenna Clinnock", ["brenna k. clinnock"]),
        ("The Keeper of the Seven Lamps", ["keeper of seven lamps", "the keeper of 7 lamps"]),
    ],
)
def test_a_name_is_found_however_it_is_written(name: str, spelt: list[str]) -> None:
    stored = set(name_forms(name))

    assert [text for text in spelt if not stored & asked(f"who made {text} there")] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("8½", "who directed 81 2"),
        ("Iron Kite", "who directed kite iron"),
        ("Malcolm X", "who is malcolm"),
        ("Malcolm B", "who is malcolm j b"),
        ("812 Lamps", "who made 8 12 lamps"),
        ("8121 Lamps", "who made 8 121 lamps"),
        ("4812124 Lamps", "who made 4812,124 lamps"),
        ("1812812 Lamps", "who made 1812 812 lamps"),
        ("48124 Lamps", "who made 4812 4 lamps"),
        ("One", "who sang 1"),
        ("1984", "who wrote nineteen"),
        ("War", "wars"),
        ("War1958", "who won the war 1958"),
        ("Peter Point", "what is peter s point"),
        ("Peter Point", "what is peter t point"),
        ("Peter Point", "what is peter a point"),
    ],
)
def test_what_is_written_otherwise_is_no_other_name(name: str, text: str) -> None:
    assert not set(name_forms(name)) & asked(text)


def test_no_form_written_otherwise_begins_or_ends_with_a_word_of_questions() -> None:
    ngrams = every_ngram(Question.read("who is d k harrow the 2nd of what"), lengths=LENGTHS)
    otherwise = {ngram.form for ngram in ngrams if ngram.reading is not Form.NORMAL}

    assert "dk harrow" in otherwise
    assert not [form for form in otherwise if {form.split()[0], form.split()[-1]} & {"who", "is", "what"}]


@given(
    st.lists(st.sampled_from("iron kite ii 2 two first and the d k st saint 0941 x a the hundred".split()), max_size=6)
)
def test_forms_written_otherwise_are_normal_and_their_own(words: list[str]) -> None:
    text = " ".join(words)
    for form, rewriting in variant_forms(*words_of(text), articles=True):
        assert form == normal_form(form) != normal_form(text)
        assert rewriting in (Form.OTHERWISE, Form.SHORTENED)


QUESTION = st.lists(
    st.tuples(
        st.sampled_from("who made iron kite ii 2 two first and the d k st saint 0941 x of a hundred v".split()),
        st.sampled_from([" ", " ", "-", ", "]),
    ),
    max_size=9,
).map(lambda parts: "".join(map("".join, parts)))


def naive(text: str, lengths: frozenset[int]) -> list[tuple[object, ...]]:
    """Return the variants of every run of words that neither begins nor ends as a question does."""
    tokens = Question.read(text).tokens
    words = [place for place, token in enumerate(tokens) if token.is_word]
    texts, joins = words_of(text)
    return [
        (form, words[first], words[last], tokens[words[first]].start, tokens[words[last]].end, reading)
        for first in range(len(words))
        for last in range(first, min(first + MOST_WRITTEN, len(words)))
        if not {texts[first], texts[last]} & OUTER
        if any(map(is_special, inner(texts[first : last + 1])))
        for form, reading in variant_forms(texts[first : last + 1], joins[first : last + 1])
        if len(form.split()) in lengths
    ]


def inner(words: list[str]) -> list[str]:
    """Leave out conjunctions at the edges, which are no other form of themselves."""
    return [word for place, word in enumerate(words) if 0 < place < len(words) - 1 or word not in CONJUNCTIONS]


@given(QUESTION, st.frozensets(st.integers(1, 6)))
def test_the_variants_of_a_question_are_those_of_all_its_runs(text: str, lengths: frozenset[int]) -> None:
    every = every_ngram(Question.read(text), lengths=lengths)
    otherwise = [ngram for ngram in every if ngram.reading in (Form.OTHERWISE, Form.SHORTENED)]

    assert sorted(otherwise) == sorted(naive(text, lengths))


UNITS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen""".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth"}


def spell(number: int, *, join: str = "and ") -> str:
    if number >= 100:
        rest = number % 100
        return f"{UNITS[number // 100]} hundred {join + spell(rest) if rest else ''}".strip()
    tens, units = divmod(number, 10)
    return UNITS[number] if number < 20 else " ".join([TENS[tens - 2], *UNITS[units : units + 1][: units > 0]])


def spell_ordinal(number: int) -> str:
    *before, last = spell(number).split()
    spelt = (
        last[:-1] + "ieth"
        if last.endswith("y")
        else last.removesuffix("ve") + "fth"
        if last == "twelve"
        else last + "th"
    )
    return " ".join([*before, ORDINALS.get(last, spelt)])


def roman(number: int) -> str:
    return "x" * (number // 10) + ["", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"][number % 10]


def variants(text: str) -> set[str]:
    return {form for form, _ in variant_forms(*words_of(text))}


def test_spelt_numbers_below_a_thousand_are_read() -> None:
    spelt = {number: spell(number) for number in range(1, 1_000)}

    assert [number for number, words in spelt.items() if f"{number} lamps" not in variants(f"{words} lamps")] == []
    assert [n for n in range(101, 1_000) if f"{n} lamps" not in variants(f"{spell(n, join='')} lamps")] == []


def test_spelt_and_counted_ordinals_are_read() -> None:
    spelt = {number: spell_ordinal(number) for number in range(1, 100)}

    assert [n for n, words in spelt.items() if f"henry {n} king" not in variants(f"henry {words} king")] == []
    assert [end for end in ("1st", "22nd", "33rd", "48th") if f"henry {end[:-2]}" not in variants(f"henry {end}")] == []


def test_roman_numerals_up_to_39_are_read() -> None:
    assert [roman_value(roman(number)) for number in range(40)] == list(range(40))
    assert [roman_value(word) for word in ("xxxx", "iiii", "vx", "vv", "ivi", "mix")] == [0] * 6


def test_a_single_roman_letter_is_a_number_at_the_end_alone() -> None:
    assert {"rocky 5"} == variants("rocky v")
    assert {"rocky 10"} == variants("rocky x")
    assert not variants("2001 x") & {"2001 10"}
    assert "5 rocky" not in variants("v rocky")


def test_numbers_without_end_are_not_all_remembered() -> None:
    assert roman_value.cache_info().maxsize is not None


SHORT = {
    "avenue": "ave", "boulevard": "blvd", "doctor": "dr", "fort": "ft", "junior": "jr", "mister": "mr", "mount": "mt",
    "number": "no", "part": "pt", "road": "rd", "saint": "st", "senior": "sr", "street": "st", "versus": "vs",
    "volume": "vol", "brothers": "bros",
}  # fmt: skip


@pytest.mark.parametrize(("word", "short"), SHORT.items())
def test_a_word_and_its_abbreviation_are_one(word: str, short: str) -> None:
    names = [f"Ada {word} Venn", f"Ada {short}. Venn"]

    assert [set(name_forms(name)).isdisjoint(asked(text)) for name in names for text in names] == [False] * 4
