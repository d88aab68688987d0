"""N-Triples, including Freebase's RDF dump, read with Oxigraph's parser and configurable predicates."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, ClassVar

from kbtools.entry_points import import_optional
from kbtools.indexers.readers.batches import (
    ALIAS,
    Block,
    RecordBatch,
    Rows,
    Skips,
    SourceKind,
    flaw,
    keep_description,
    keep_name,
    read_lines,
)
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.kb.ids import canonical_id

# Oxigraph counts lines from the start of the text it parses, so its position is removed and ours is shown.
PLACE = re.compile(r"^Parser error (?:at|between) .*?: | \(.*, line \d+\)$", re.DOTALL)
_SKOSXL = "http://www.w3.org/2008/05/skos-xl#"
_EXTENDED_NAMES = {f"{_SKOSXL}prefLabel": False, f"{_SKOSXL}altLabel": True, f"{_SKOSXL}hiddenLabel": True}
"""Predicates of names that are nodes, and whether they are of aliases."""

_LITERAL_FORM = f"{_SKOSXL}literalForm"
"""The predicate of the text of such a name."""

_FIRST, _REST = "http://www.w3.org/1999/02/22-rdf-syntax-ns#first", "http://www.w3.org/1999/02/22-rdf-syntax-ns#rest"
_MOST_LISTS = 1_000_000
"""Most facts with a blank node, which may begin a list, that are kept in memory: some 300 MB."""

_KEY_NAMESPACE = "http://rdf.freebase.com/key/"
_KEY_ESCAPE = re.compile(r"\$([0-9A-F]{4})")

_FREEBASE_TYPE = "type.object.type"
"""The only predicate of types that is not also a relation: every topic of Freebase has dozens, and its release none."""


class NTriplesReader:
    """The reader `n-triples`: facts, names, types and merged entities, recognised by predicate."""

    suffixes: ClassVar[tuple[str, ...]] = (".nt", ".ntriples")
    syntax: ClassVar[str] = "N_TRIPLES"
    called: ClassVar[str] = "N-Triples"
    sample: ClassVar[bytes] = (
        b"<http://a/s> <http://a/p> <http://a/o> .\nbroken\n"
        b'<http://a/s> <http://www.w3.org/2000/01/rdf-schema#label> "Name"@en .\n'
    )

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        self.oxigraph = import_optional("pyoxigraph", "reading RDF")
        self.skips = skips
        self.language = options.language
        self.closure = options.closure
        self.languages = Languages.read(options.language)
        predicates = options.predicates
        self.names, self.aliases, self.descriptions, self.types, self.same, self.subclass = (
            {canonical_id(predicate) for predicate in kind}
            for kind in (
                predicates.name, predicates.alias, predicates.description, predicates.type, predicates.same,
                predicates.subclass,
            )
        )  # fmt: skip
        self.blanks = ""
        self.extended: dict[str, tuple[list[tuple[str, bool]], list[tuple[int, str, str | None]]]] = {}
        """The owners and the texts of each name that is a node; either may come first."""
        self.lists: dict[str, dict[str, str]] = {}
        """The member and the rest at each node of a list."""
        self.heads: list[tuple[str, str, str]] = []
        """Facts whose object may begin a list."""

    @classmethod
    def sniff(cls, line: bytes, kind: SourceKind) -> bool:
        """Return whether a line begins like a triple; other syntaxes are recognised by the document's beginning."""
        return cls.syntax == "N_TRIPLES" and line.lstrip().startswith((b"<", b"_:"))

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        """Read each block; literals in other languages are counted and left out.

        Blank nodes belong to their file: their labels begin with a hash of its first block.
        """
        blocks = iter(blocks)
        first = next(blocks)
        self.blanks = hashlib.sha256(first.text).hexdigest()[:12]
        for block in chain([first], blocks):
            yield from self.read_block(block).batches()
        yield from self.list_facts()

    def read_block(self, block: Block) -> Rows:
        """Parse a block at once if each line is a triple, else line by line."""
        triples = self.parse_clean(block.text)
        if triples is None:
            return read_lines(block, self.read_line, self.skips)
        rows = Rows()
        self.skips.lines += len(triples)
        for number, triple in enumerate(triples, block.first_line):
            self.keep(number, triple, rows)
        return rows

    def read_line(self, number: int, line: str, rows: Rows, skips: Skips) -> None:
        if line.lstrip().startswith("#"):
            skips.add("comment", line=number, text=line, bad=False)
            return
        try:
            (triple,) = self.parse(line.encode())
        except (SyntaxError, ValueError) as error:
            skips.add(f"invalid {self.statement}", line=number, text=line, reason=PLACE.sub("", str(error)))
        except MemoryError:
            skips.add(f"invalid {self.statement}", line=number, text=line, reason="a term of over 16 MiB")
        else:
            self.keep(number, triple, rows)

    def keep(self, number: int, triple: Any, rows: Rows) -> None:
        target, literal = triple.object, isinstance(triple.object, self.oxigraph.Literal)
        entity, relation, value = self.spell(triple.subject), self.spell(triple.predicate), self.spell(target)
        rank = self.languages[target.language] if literal else 0
        fault = flaw(entity, relation, target.value if literal else value)
        if fault:
            self.skips.add(fault, line=number, text=f"{entity} {relation} {value}")
        elif rank is None:
            kind = f"literal in a language other than {self.language!r}"
            self.skips.add(kind, line=number, text=f"{entity} {relation} {value}", bad=False)
        elif literal and relation in self.names | self.aliases:
            text = _decode_key(target.value) if relation.startswith(_KEY_NAMESPACE) else target.value
            rank = ALIAS if relation in self.aliases else rank
            keep_name(entity, rank, text, target.language, number, rows, self.skips)
        elif literal and relation in self.descriptions:
            keep_description(entity, rank, target.value, target.language, number, rows, self.skips)
        elif relation in self.same and not literal:
            rows.redirects.append((entity, value))
        elif relation == _LITERAL_FORM if literal else relation in _EXTENDED_NAMES:
            self.keep_extended(entity, relation, triple.object, rank, number, rows)
        else:
            if relation in (_FIRST, _REST):
                self.lists.setdefault(entity, {})[relation] = value
            elif value.startswith("_:") and not literal and len(self.heads) < _MOST_LISTS:
                self.heads.append((entity, relation, value))
            if relation in self.types and not literal:
                rows.types.append((entity, value))
            if self.closure and relation in self.subclass and not literal:
                rows.subclasses.append((entity, value))
            # A type is a fact too (`what is an instance of novel`), except Freebase's.
            if literal or relation not in self.types or relation != _FREEBASE_TYPE:
                rows.facts.append((entity, relation, value))
        rows.mark(number)

    def keep_extended(self, entity: str, relation: str, term: Any, rank: int, number: int, rows: Rows) -> None:
        """Keep a part of a name that is a node, as in SKOS-XL: its owner or its text."""
        node = entity if relation == _LITERAL_FORM else self.spell(term)
        owners, forms = self.extended.setdefault(node, ([], []))
        if relation == _LITERAL_FORM:
            forms.append((rank, term.value, term.language))
            pairs = [(owner, forms[-1]) for owner in owners]
        else:
            owners.append((entity, _EXTENDED_NAMES[relation]))
            pairs = [(owners[-1], form) for form in forms]
        for (owner, alias), (place, text, language) in pairs:
            keep_name(owner, ALIAS if alias else place, text, language, number, rows, self.skips)

    def list_facts(self) -> Iterator[RecordBatch]:
        """Yield each member of a list as an object of the fact that has the list."""
        rows = Rows()
        for entity, relation, node in self.heads:
            passed = set()
            while node in self.lists and node not in passed:
                passed.add(node)
                if member := self.lists[node].get(_FIRST):
                    rows.facts.append((entity, relation, member))
                node = self.lists[node].get(_REST, "")
        rows.mark(max(self.skips.lines, 1))
        yield from rows.batches()

    def spell(self, term: Any) -> str:
        """Write a term as an id, or in N-Triples syntax if it is a literal or a blank node."""
        if isinstance(term, self.oxigraph.NamedNode):
            return canonical_id(term.value)
        if self.blanks and isinstance(term, self.oxigraph.BlankNode):
            return f"_:{self.blanks}.{term.value}"
        return str(term)

    @property
    def statement(self) -> str:
        """The name of a line of the syntax: N-Triple or N-Quad."""
        return self.called.removesuffix("s")

    def parse(self, text: bytes) -> Iterator[Any]:
        """Parse N-Triples, tolerating IRIs found in practice."""
        return self.oxigraph.parse(text, format=getattr(self.oxigraph.RdfFormat, self.syntax), lenient=True)  # type: ignore[no-any-return]

    def parse_clean(self, text: bytes) -> list[Any] | None:
        """Parse a block at once; return None unless every line is a triple.

        After an unclosed quote the parser reads on across lines, and it refuses terms of over 16 MiB; a block with an
        error is therefore read line by line.
        """
        if b"\0" in text or b"\r" in text:
            return None
        try:
            triples = list(self.parse(text))
        except (SyntaxError, MemoryError):
            return None
        return triples if len(triples) == text.count(b"\n") else None


def _decode_key(key: str) -> str:
    """Decode a key of Freebase into a name: `Barry_O$0027Branagh` is Barry O'Branagh."""
    return _KEY_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), key).replace("_", " ")
