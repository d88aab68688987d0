"""The kind of answer that a question asks for: the words that say it, as stems that the words of types share."""

from collections.abc import Iterable, Sequence

from kbtools.text.function_words import CONTEXT_WORDS, FUNCTION_WORDS

STEM = 5
"""Letters by which two words are held to be forms of one, as in the lexical scorer."""

SYMBOL = "\0"
"""Stands for the mention among the words of a question."""

OPENERS = frozenset("find give list name what whats which who whom whos".split())
ARTICLES = frozenset("a an another any one some the".split())
PERSONS = frozenset("someone who whom whos".split())
AIDS = frozenset("did do does had has have".split())
PLACES = frozenset("as at for from in off on to under with within".split())
COPULAS = frozenset("are is me was were".split())
KINDS = frozenset("example kind kinds name names of sort type types".split())

MEANT = {
    "actor": "person",
    "band": "artist group",
    "book": "work written",
    "books": "work written",
    "cities": "citytown location",
    "city": "citytown location",
    "game": "videogame",
    "games": "videogame",
    "movie": "film",
    "movies": "film",
    "musician": "artist",
    "people": "person",
    "person": "human people",
    "singer": "artist",
    "show": "program",
    "song": "composition recording track",
    "songs": "composition recording track",
    "town": "citytown location",
    "where": "city country location place region",
    "who": "actor artist author human people person politician",
}
"""Words for a kind of answer, and the words of types that stand for it."""


def stems(words: Iterable[str]) -> set[str]:
    return {word[:STEM] for word in words}


def kind_stems(kinds: Iterable[str]) -> set[str]:
    """Return the stems of kinds of answers, and of the words of types that stand for them."""
    spoken = {form for kind in kinds for form in (kind, kind.removesuffix("s"))}
    return stems(spoken) | stems(meant for kind in spoken for meant in MEANT.get(kind, "").split())


def answer_kinds(words: Sequence[str]) -> set[str]:
    """Find the words that say what kind of answer is asked for: `films` in `what films did X direct`.

    They stand behind the question word or an article (`what is a film by X`); who and where say it themselves.
    """
    kinds = {"who" if word in PERSONS else word for word in words if word in PERSONS or word == "where"}
    start = next((at for at, word in enumerate(words) if word in OPENERS), len(words))
    near = True  # to the question word, or to an article
    for at, word in enumerate(words[start + 1 :], start + 1):
        possessive = word == SYMBOL and words[at + 1 : at + 2] == ["s"]
        if word in ARTICLES or (word == "s" and words[at - 1] == SYMBOL):
            near = True
        elif word in KINDS or possessive or (word == SYMBOL and near):
            continue
        elif word == "by" or word == SYMBOL or word in PLACES | AIDS | CONTEXT_WORDS:
            break
        elif word in FUNCTION_WORDS:
            near = near and word in COPULAS
        else:
            return kinds | set(words[at : at + run_length(words[at:])]) if near else kinds
    return kinds


def run_length(words: Sequence[str]) -> int:
    """Count the words up to the first that a noun does not go on with."""
    stops = FUNCTION_WORDS | CONTEXT_WORDS | {SYMBOL}
    return next((at for at, word in enumerate(words) if word in stops), len(words))
