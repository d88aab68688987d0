"""The small knowledge base that contract suites stand on, and the questions that they ask of it."""

import functools

from kbtools.entry_points import import_object
from kbtools.kb.contract import KnowledgeBase
from kbtools.text.question import MarkedQuestion, Question

FACTS = (
    ("m.dune", "book.written_work.author", "m.herbert"),
    ("m.dune_film", "film.film.directed_by", "m.lynch"),
    ("m.2001", "film.film.directed_by", "m.kubrick"),
    ("m.2001", "film.film.directed_by", "m.clarke"),
    ("m.harder", "music.album.genre", "m.house"),
    ("m.herbert", "people.person.place_of_birth", "m.tacoma"),
    ("m.tokyo", "location.location.containedby", "m.japan"),
    ("m.tokyo", "location.location.time_zone", '"UTC+9"'),
)
NAMES = (
    ("m.dune", "Dune"),
    ("m.dune_film", "Dune"),
    ("m.herbert", "Frank Herbert"),
    ("m.lynch", "David Lynch"),
    ("m.2001", "2001"),
    ("m.harder", "Harder.....Faster?"),
    ("m.tacoma", "Tacoma"),
    ("m.tokyo", "東京"),
)
ALIASES = (("m.tokyo", "Tokyo"), ("m.2001", "2001: A Space Odyssey"))
TYPES = (
    ("m.dune", "book.written_work"),
    ("m.dune_film", "film.film"),
    ("m.2001", "film.film"),
    ("m.herbert", "people.person"),
    ("m.herbert", "book.author"),
)

QUESTIONS = (
    ("who wrote dune", "dune"),
    ("where was frank herbert born ?", "frank herbert"),
    ("what", ""),
    ("", ""),
    ("which director made the film 2001 and what else is there to say of it at such length", "2001"),
    ("what genre of album is harder.....faster?", "harder.....faster"),
    ("Vujačić 東京 نجيب", "東京"),
    ("where was frank herbret born", "frank herbret"),
)
"""Texts and mentions: short and long, empty, without a mention, in other scripts, misspelt."""

LONG = "and so on " * 50
"""A question longer than the others, to stand beside them."""


@functools.cache
def world() -> KnowledgeBase:
    """Return the small knowledge base in memory, the reference of all backends."""
    make = import_object("kbtools.indexers.folder.memory:MemoryKB")
    kb: KnowledgeBase = make(FACTS, NAMES, TYPES, aliases=ALIASES)
    return kb


def marked_questions() -> list[MarkedQuestion]:
    """Return the questions with their mentions marked."""
    return [
        MarkedQuestion(Question.read(text), text.find(mention), text.find(mention) + len(mention))
        for text, mention in QUESTIONS
    ]
