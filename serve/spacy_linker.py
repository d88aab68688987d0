"""spaCy over a knowledge base: the component `kbtools_linker`, and a knowledge base for spaCy's own EntityLinker."""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from spacy.kb import Candidate, KnowledgeBase
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from kbtools.answering.answerer import Answerer, open_kb
from kbtools.answering.records import EntityMatch
from kbtools.answering.running_text import CANDIDATES, THRESHOLD
from kbtools.errors import BadArgument, KBToolsError
from kbtools.kb.vector_index import VectorIndex

_FACTORY = "kbtools_linker"
_LABEL = "ENTITY"
"""The label of spans not labelled by an earlier component."""

Span.set_extension("kbtools", default=(), force=True)


@Language.factory(
    _FACTORY,
    default_config={
        "kb": None,
        "backend": "embedded",
        "threshold": THRESHOLD,
        "limit": CANDIDATES,
        "label": _LABEL,
        "kb_url": "",
    },
    assigns=["doc.ents", "token.ent_kb_id", "span._.kbtools"],
)
def make_linker(
    nlp: Language, name: str, kb: str | None, backend: str, threshold: float, limit: int, label: str, kb_url: str
) -> "_SpacyLinker":
    """Build the component; a saved pipeline stores the path of the knowledge base, not its content.

    Raises BadArgument if no knowledge base is named, and as `open_kb` does.
    """
    if not kb:
        raise BadArgument(
            f'name the knowledge base: nlp.add_pipe("{_FACTORY}", config={{"kb": "sample.kb"}})', name="kb"
        )
    return _SpacyLinker(open_kb(kb, backend=backend), threshold=threshold, limit=limit, label=label, kb_url=kb_url)


class _SpacyLinker:
    """A linker of the entities in a document or, if it has none, of the mentions in its text.

    With `displacy_options`, displaCy links each entity to its source.
    """

    def __init__(self, answerer: Answerer, *, threshold: float, limit: int, label: str, kb_url: str = "") -> None:
        self.answerer = answerer
        self.displacy_options = {"kb_url_template": kb_url.replace("{id}", "{}")} if kb_url else {}
        self.threshold, self.limit, self.label = threshold, limit, label

    def __call__(self, doc: Doc) -> Doc:
        """Set `ent.kb_id_` if an entity is certain enough, and `ent._.kbtools` to its candidates as JSON types."""
        doc.ents = tuple(self.linked(span) for span in doc.ents) if doc.ents else self.mentions(doc)
        return doc

    def linked(self, span: Span) -> Span:
        """Return a span from another component with its link."""
        matches = self.answerer.lookup(span.text, limit=self.limit).matches if span.text.strip() else ()
        score = matches[0].prior * matches[0].similarity / 100 if matches else 0.0
        return _with_candidates(span, span.label_, matches, known=score >= self.threshold)

    def mentions(self, doc: Doc) -> tuple[Span, ...]:
        """Return the mentions of a text as spans of whole tokens; of overlapping ones the first."""
        if not doc.text.strip():
            return ()
        spans: list[Span] = []
        for mention in self.answerer.link(doc.text, threshold=self.threshold, limit=self.limit).mentions:
            span = doc.char_span(mention.start, mention.end, alignment_mode="expand")
            if span is not None and (not spans or span.start >= spans[-1].end):
                spans.append(_with_candidates(span, self.label, mention.candidates, known=True))
        return tuple(spans)


def _with_candidates(span: Span, label: str, matches: tuple[EntityMatch, ...], *, known: bool) -> Span:
    """Build a span with its candidates and, if `known`, the id of the first."""
    linked = Span(span.doc, span.start, span.end, label=label, kb_id=matches[0].id if known and matches else "")
    candidates: list[dict[str, Any]] = [match.to_dict() for match in matches]
    linked._.kbtools = candidates
    return linked


_VECTOR_LENGTH = 64
"""Length of the zero vectors if the knowledge base has none: spaCy's default."""


class SpacyKnowledgeBase(KnowledgeBase):  # type: ignore[misc]
    """A knowledge base of kbtools with the interface of spaCy's EntityLinker.

    Its vectors come from `kbtools index vectors`; without any, every vector is zero, and priors decide.
    """

    def __init__(self, vocab: Vocab, kb: str, *, limit: int = CANDIDATES) -> None:
        self.path, self.limit = str(kb), limit
        self.answerer: Answerer = open_kb(kb)
        self.vectors: VectorIndex | None = None
        with suppress(KBToolsError):
            self.vectors = self.answerer.kb.vectors()
        super().__init__(vocab, self.vectors.dim if self.vectors else _VECTOR_LENGTH)

    def get_candidates(self, mention: Span) -> Iterable[Candidate]:
        """Return the entities with the name in a span, best first."""
        if not mention.text.strip():
            return []
        return [self.candidate(match) for match in self.answerer.lookup(mention.text, limit=self.limit).matches]

    def get_candidates_batch(self, mentions: Iterable[Span]) -> Iterable[Iterable[Candidate]]:
        return [self.get_candidates(mention) for mention in mentions]

    def candidate(self, match: EntityMatch) -> Candidate:
        strings = self.vocab.strings
        vector = self.get_vector(match.id)
        return Candidate(self, strings.add(match.id), 0.0, vector, strings.add(match.matched_name), match.prior)

    def get_vector(self, entity: str) -> Sequence[float]:
        """Return the vector of an entity, zero if it has none."""
        (row,) = self.answerer.kb.rows([entity])
        vector = None if row is None or self.vectors is None else self.vectors.vector(row)
        components = np.zeros(self.entity_vector_length, dtype=np.float32) if vector is None else vector
        floats: list[float] = components.tolist()
        return floats

    def to_bytes(self, **_: object) -> bytes:
        """Return the path: the content stays in its folder."""
        return json.dumps({"kb": self.path, "limit": self.limit}).encode()

    def from_bytes(self, bytes_data: bytes, *, exclude: tuple[str, ...] = ()) -> "SpacyKnowledgeBase":
        """Open the knowledge base at a stored path."""
        record = json.loads(bytes_data)
        self.__init__(self.vocab, record["kb"], limit=record["limit"])  # type: ignore[misc]
        return self

    def to_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> None:
        Path(path).write_bytes(self.to_bytes())

    def from_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> "SpacyKnowledgeBase":
        return self.from_bytes(Path(path).read_bytes())


def load_knowledge_base(kb: str, limit: int = CANDIDATES) -> Callable[[Vocab], SpacyKnowledgeBase]:
    """Return a `kb_loader` for `EntityLinker.set_kb` and for `kbtools.knowledge_base.v1` in a training config."""
    return lambda vocab: SpacyKnowledgeBase(vocab, kb, limit=limit)
