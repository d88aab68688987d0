"""Questions without a name of the knowledge base: the ids in them, and the names with one of their words."""

import re
from collections.abc import Callable

import numpy as np

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.linking.links import Link
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question
from kbtools.text.rungs import Rung

_ID = re.compile(r"\w(?:\S*\w)?")
_ID_WORDS = 4
"""The most words of an id in a question."""

_FORMS = 50
"""The most names that are read for a word."""


def link_ids(kb: KnowledgeBase, question: Question) -> list[Link]:
    """Link the ids of entities that a question contains, the longest first, such as `GB 12 A`; an id has a digit."""
    words = [word.span() for word in _ID.finditer(question.text)]
    runs = [
        (words[at][0], words[at + size - 1][1])
        for size in range(_ID_WORDS, 0, -1) for at in range(len(words) - size + 1)
    ]  # fmt: skip
    runs = [run for run in runs if any(map(str.isdigit, question.text[slice(*run)]))]
    rows = kb.rows([question.text[slice(*run)] for run in runs]) if runs else []
    links: list[Link] = []
    for (start, end), row in zip(runs, rows, strict=True):
        if row is not None and all(end <= link.start or start >= link.end for link in links):
            text = question.text[start:end]
            ngram = Ngram(text, *_tokens_in(question, start, end), start, end)
            links.append(Link(ngram, start, end, text, Rung.EXACT, np.array([row], dtype=np.uint32)))
    return sorted(links, key=lambda link: link.start)


def _tokens_in(question: Question, start: int, end: int) -> tuple[int, int]:
    """Return the first and the last token of a part of a question."""
    places = [place for place, token in enumerate(question.tokens) if token.start < end and token.end > start]
    return (places[0], places[-1]) if places else (0, 0)


def entities_with_words(
    kb: KnowledgeBase, question: Question, *, is_content: Callable[[str], bool], limit: int
) -> EntityRows:
    """Return the entities whose names have most of the content words of a question, those with most facts first."""
    words = {form for token in question.tokens if is_content(token.text) for form in (token.text, token.text[:-1])}
    near = kb.similar(sorted(words), limit=_FORMS, cutoff=0.0) if words else []
    forms = {name.form for group in near for name in group}
    forms |= {form for word in words for form in kb.forms_with_prefix(f"{word} ", limit=_FORMS)}
    shared = {form: len(words.intersection(form.split(" "))) for form in forms}
    most = max(shared.values(), default=0)
    matches = kb.lookup([form for form, count in shared.items() if count == most]) if most else {}
    bearers = [match.entities for own in matches.values() for match in own]
    rows = np.unique(np.concatenate(bearers)) if bearers else np.empty(0, dtype=np.uint32)
    entities: EntityRows = rows[np.argsort(-kb.fact_counts(rows), kind="stable")][:limit] if len(rows) else rows
    return entities
