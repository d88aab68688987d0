"""N-Triples, Freebase's RDF dump among them, through Oxigraph's parser: which predicate means what is configurable."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kbtools.errors import MissingDependency
from kbtools.indexers.readers.records import Rows, flaw
from kbtools.indexers.readers.release import keep_name, read_lines, speaks
from kbtools.indexers.readers.skips import Skips
from kbtools.indexers.readers.sources import Block
from kbtools.kb.ids import FREEBASE_NAMESPACE, canonical_id

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
PLACE = re.compile(r"^Parser error (?:at|between) .*?: | \(.*, line \d+\)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Predicates:
    """Which predicates give names, aliases and types; every other one is a relation."""

    name: frozenset[str] = frozenset(
        {
            "http://www.w3.org/2000/01/rdf-schema#label",
            f"{FREEBASE_NAMESPACE}type.object.name",
            f"{SKOS}prefLabel",
            "http://schema.org/name",
        }
    )
    alias: frozenset[str] = frozenset({f"{FREEBASE_NAMESPACE}common.topic.alias", f"{SKOS}altLabel"})
    type: frozenset[str] = frozenset(
        {f"{RDF}type", f"{FREEBASE_NAMESPACE}type.object.type", "http://www.wikidata.org/prop/direct/P31"}
    )


def parser() -> Any:
    """Import the parser, which is optional."""
    try:
        import pyoxigraph
    except ImportError as error:
        raise MissingDependency(
            "reading N-Triples needs the package pyoxigraph; install it with: pip install 'kbtools[rdf]'"
        ) from error
    return pyoxigraph


def read_ntriples(block: Block, *, predicates: Predicates, language: str, skips: Skips) -> Rows:
    """Read a block of N-Triples; a literal in another language is left out, and counted."""
    oxigraph = parser()
    names, aliases, types = (
        {canonical_id(predicate) for predicate in kind} for kind in (predicates.name, predicates.alias, predicates.type)
    )

    def keep(number: int, triple: Any, rows: Rows) -> None:
        target, literal = triple.object, isinstance(triple.object, oxigraph.Literal)
        entity, relation = spell(oxigraph, triple.subject), spell(oxigraph, triple.predicate)
        value = spell(oxigraph, target)
        fault = flaw(entity, relation, target.value if literal else value)
        if fault:
            skips.add(fault, line=number, text=f"{entity} {relation} {value}")
        elif literal and not speaks(target.language, language):
            kind = f"literal in another language than {language!r}"
            skips.add(kind, line=number, text=f"{entity} {relation} {value}", bad=False)
        elif literal and relation in names | aliases:
            keep_name(entity, relation in aliases, target.value, number, rows, skips)
        elif relation in types and not literal:
            rows.types.append((entity, value))
        else:
            rows.facts.append((entity, relation, value))
        rows.mark(number)

    def read_line(number: int, line: str, rows: Rows, skips: Skips) -> None:
        if line.lstrip().startswith("#"):
            skips.add("comment", line=number, text=line, bad=False)
            return
        try:
            (triple,) = parse(oxigraph, line.encode())
        except (SyntaxError, ValueError) as error:
            skips.add("no N-Triple", line=number, text=line, reason=PLACE.sub("", str(error)))
        else:
            keep(number, triple, rows)

    triples = parse_clean(oxigraph, block.text)
    if triples is None:
        return read_lines(block, read_line, skips)
    rows = Rows()
    skips.lines += len(triples)
    for number, triple in enumerate(triples, block.first_line):
        keep(number, triple, rows)
    return rows


def spell(oxigraph: Any, term: Any) -> str:
    """Write a term as an id, or as N-Triples do if it is a literal or a blank node."""
    return canonical_id(term.value) if isinstance(term, oxigraph.NamedNode) else str(term)


def parse(oxigraph: Any, text: bytes) -> Iterator[Any]:
    """Parse N-Triples, real-world IRIs included."""
    return oxigraph.parse(text, format=oxigraph.RdfFormat.N_TRIPLES, lenient=True)  # type: ignore[no-any-return]


def parse_clean(oxigraph: Any, text: bytes) -> list[Any] | None:
    """Parse a block at once; nothing unless every line of it is a triple.

    After a quote that is never closed the parser reads on across lines, so that a block with an error is read
    line by line instead.
    """
    if b"\0" in text or b"\r" in text:
        return None
    try:
        triples = list(parse(oxigraph, text))
    except SyntaxError:
        return None
    return triples if len(triples) == text.count(b"\n") else None
