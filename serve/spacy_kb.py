"""A knowledge base for spaCy's own EntityLinker: candidates by name with their priors, and the vectors of entities."""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from spacy.kb import Candidate, KnowledgeBase
from spacy.tokens import Span
from spacy.vocab import Vocab

from kbtools.answering.answerer import Answerer, open_kb
from kbtools.answering.records import EntityMatch
from kbtools.answering.running_text import CANDIDATES
from kbtools.errors import KBToolsError
from kbtools.kb.vector_index import VectorIndex

VECTOR_LENGTH = 64
"""Components of the zero vectors where the knowledge base has none: spaCy's own default."""


class SpacyKnowledgeBase(KnowledgeBase):  # type: ignore[misc]
    """A knowledge base of kbtools as spaCy's EntityLinker asks one.

    Its vectors are those that `kbtools index vectors` made; without any, every vector is zero, and priors decide.
    """

    def __init__(self, vocab: Vocab, kb: str, *, limit: int = CANDIDATES) -> None:
        self.path, self.limit = str(kb), limit
        self.answerer: Answerer = open_kb(kb)
        self.vectors: VectorIndex | None = None
        with suppress(KBToolsError):
            self.vectors = self.answerer.kb.vectors()
        super().__init__(vocab, self.vectors.dim if self.vectors else VECTOR_LENGTH)

    def get_candidates(self, mention: Span) -> Iterable[Candidate]:
        """List the entities that bear the words of a span, best first."""
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
        """Give the vector of an entity, a zero where it has none."""
        (row,) = self.answerer.kb.rows([entity])
        vector = None if row is None or self.vectors is None else self.vectors.vector(row)
        components = np.zeros(self.entity_vector_length, dtype=np.float32) if vector is None else vector
        floats: list[float] = components.tolist()
        return floats

    def to_bytes(self, **_: object) -> bytes:
        """Write the path: the content stays in its folder."""
        return json.dumps({"kb": self.path, "limit": self.limit}).encode()

    def from_bytes(self, bytes_data: bytes, *, exclude: tuple[str, ...] = ()) -> "SpacyKnowledgeBase":
        """Open the knowledge base of a path that was written."""
        record = json.loads(bytes_data)
        self.__init__(self.vocab, record["kb"], limit=record["limit"])  # type: ignore[misc]
        return self

    def to_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> None:
        Path(path).write_bytes(self.to_bytes())

    def from_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> "SpacyKnowledgeBase":
        return self.from_bytes(Path(path).read_bytes())


def load_knowledge_base(kb: str, limit: int = CANDIDATES) -> Callable[[Vocab], SpacyKnowledgeBase]:
    """Make a `kb_loader` for `EntityLinker.set_kb`, and for `kbtools.knowledge_base.v1` in a config of training."""
    return lambda vocab: SpacyKnowledgeBase(vocab, kb, limit=limit)
