"""A component of spaCy pipelines that links entities to a knowledge base: `nlp.add_pipe("kbtools_linker", ...)`."""

from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span

from kbtools.answering.answerer import Answerer, open_kb
from kbtools.answering.records import EntityMatch
from kbtools.answering.running_text import CANDIDATES, THRESHOLD
from kbtools.errors import BadArgument

FACTORY = "kbtools_linker"
LABEL = "ENTITY"
"""The label of a span that no earlier component labelled."""

Span.set_extension("kbtools", default=(), force=True)


@Language.factory(
    FACTORY,
    default_config={
        "kb": None,
        "backend": "embedded",
        "threshold": THRESHOLD,
        "limit": CANDIDATES,
        "label": LABEL,
    },
    assigns=["doc.ents", "token.ent_kb_id", "span._.kbtools"],
)
def make_linker(
    nlp: Language, name: str, kb: str | None, backend: str, threshold: float, limit: int, label: str
) -> "SpacyLinker":
    """Make the component; a pipeline that is saved keeps the path of the knowledge base, not its content.

    Raises BadArgument where no knowledge base is named, and as `open_kb` does.
    """
    if not kb:
        raise BadArgument(
            f'name the knowledge base: nlp.add_pipe("{FACTORY}", config={{"kb": "sample.kb"}})', name="kb"
        )
    return SpacyLinker(open_kb(kb, backend=backend), threshold=threshold, limit=limit, label=label)


class SpacyLinker:
    """A linker of the entities that a document has or, where it has none, those that running text mentions."""

    def __init__(self, answerer: Answerer, *, threshold: float, limit: int, label: str) -> None:
        self.answerer = answerer
        self.threshold, self.limit, self.label = threshold, limit, label

    def __call__(self, doc: Doc) -> Doc:
        """Set `ent.kb_id_` where an entity is certain enough, and `ent._.kbtools`, its candidates as JSON types."""
        doc.ents = tuple(self.linked(span) for span in doc.ents) if doc.ents else self.mentions(doc)
        return doc

    def linked(self, span: Span) -> Span:
        """Link a span that another component found."""
        matches = self.answerer.lookup(span.text, limit=self.limit).matches if span.text.strip() else ()
        score = matches[0].prior * matches[0].similarity / 100 if matches else 0.0
        return with_candidates(span, span.label_, matches, known=score >= self.threshold)

    def mentions(self, doc: Doc) -> tuple[Span, ...]:
        """Find the mentions of a text, whole tokens, the earlier where two would share one."""
        if not doc.text.strip():
            return ()
        spans: list[Span] = []
        for mention in self.answerer.link(doc.text, threshold=self.threshold, limit=self.limit).mentions:
            span = doc.char_span(mention.start, mention.end, alignment_mode="expand")
            if span is not None and (not spans or span.start >= spans[-1].end):
                spans.append(with_candidates(span, self.label, mention.candidates, known=True))
        return tuple(spans)


def with_candidates(span: Span, label: str, matches: tuple[EntityMatch, ...], *, known: bool) -> Span:
    """Make a span that has its candidates and, if it is known, the id of the first."""
    linked = Span(span.doc, span.start, span.end, label=label, kb_id=matches[0].id if known and matches else "")
    candidates: list[dict[str, Any]] = [match.to_dict() for match in matches]
    linked._.kbtools = candidates
    return linked
