"""Readers of Wikidata's dumps: JSON, an array with one entity per line, and truthy statements in N-Triples."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, ClassVar

import msgspec
import numpy as np

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import ALIAS, Block, RecordBatch, Rows, Skips, flaw, keep_description, keep_name
from kbtools.indexers.readers.ntriples import NTriplesReader
from kbtools.indexers.readers.reading import Keep, ReadOptions, Source
from kbtools.indexers.readers.sources import BLOCK
from kbtools.indexers.readers.wikidata_entities import SUBCLASS, TYPE, EntityParser, ParsedBlock
from kbtools.indexers.readers.wikidata_values import ENTITY, spell_address, spell_typed
from kbtools.processes import in_order

_DIRECT = "http://www.wikidata.org/prop/direct/"
SITELINKS = "http://wikiba.se/ontology#sitelinks"
_DOCUMENT = re.compile(rb'\s*(?:\[\s*)?\{\s*(?:\n|"entities"\s*:)')
"""The beginning of a single document instead of one entity per line: an indented object, or the output of
Special:EntityData, entities by id.
"""

_LARGEST_DOCUMENT = 256 << 20
"""Largest document in bytes; it is read as a whole and takes some 1.5 GB of memory."""

_CHUNK = 16
"""Bits of an entity's number within a chunk: ids are mostly dense, and a stray one costs 64 KiB."""


class WikidataReader:
    """A reader of Wikidata's dumps: JSON (names, best statements and types of each entity) or truthy N-Triples."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    sample: ClassVar[bytes] = (
        b'[\n{"type": "item", "id": "Q42", "labels": {"en": {"language": "en", "value": "Douglas Adams"}}, "claims": '
        b'{"P31": [{"rank": "normal", "mainsnak": {"snaktype": "value", "datavalue": {"type": "wikibase-entityid", '
        b'"value": {"id": "Q5"}}}}]}},\nbroken,\n'
        b'{"type": "property", "id": "P31", "labels": {"en": {"language": "en", "value": "instance of"}}}\n]\n'
    )

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        self.source = source
        self.options = options
        self.skips = skips
        self.seen = _SeenNumbers()
        self.unclosed = 0

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        """Read each block on any core; then check that the array is complete."""
        blocks = iter(blocks)
        first = next(blocks)
        if first.text.lstrip().startswith((b"<", b"_:")):
            if self.options.keep != Keep():
                options = "--min-sitelinks, --keep-type, --keep-property and --keep-ids"
                problem = f"N-Triples spread an entity over many lines, from which {options} cannot choose"
                raise WrongFormat.at(self.source.path, f"{problem}; use the JSON dump")
            yield from _TruthyReader(self.source, self.options, self.skips).read(chain([first], blocks))
            return
        blocks = chain([first], blocks)
        if _DOCUMENT.match(first.text):
            blocks = iter([self.entity_lines(blocks)])
        parser = EntityParser(str(self.source.path), self.options)
        for parsed in in_order(parser.parse, blocks, jobs=self.options.jobs, worthwhile=are_full):
            self.account(parsed)
            yield from parsed.batches
        if self.unclosed > 0:
            self.skips.add("array without its end", line=self.skips.lines, text="no ] after the last entity")

    def entity_lines(self, blocks: Iterable[Block]) -> Block:
        """Write the entities of a JSON document one per line; raise WrongFormat if it is not one, or too large."""
        path, text = self.source.path, b""
        for block in blocks:
            text += block.text
            if len(text) > _LARGEST_DOCUMENT:
                problem = f"found one document of JSON of over {_LARGEST_DOCUMENT >> 20} MiB"
                cure = "write them with: jq -c '.[]' FILE > FILE.jsonl"
                raise WrongFormat.at(path, f"{problem}, expected one entity per line; {cure}")
        try:
            content = msgspec.json.decode(text)
        except (ValueError, RecursionError) as error:
            raise WrongFormat.at(path, f"invalid JSON ({error}); download it again") from error
        if isinstance(content, dict):
            entities = content.get("entities", content)
            content = list(entities.values()) if isinstance(entities, dict) and "id" not in entities else [entities]
        return Block(b"".join(msgspec.json.encode(entity) + b"\n" for entity in content), 1)

    def account(self, parsed: ParsedBlock) -> None:
        """Add the account of a block to that of the file; report repeated ids."""
        self.unclosed += parsed.unclosed
        self.skips.absorb(parsed.skips)
        repeated = self.seen.add(parsed.numbers)
        for number, line in zip(parsed.numbers[repeated].tolist(), parsed.lines[repeated].tolist(), strict=True):
            entity_id = f"Q{number}" if number > 0 else f"P{-number}"
            self.skips.add("id that repeats", line=line, text=entity_id)


def are_full(blocks: list[Block]) -> bool:
    """Return whether blocks are nearly full, unlike those of a small file."""
    return sum(len(block.text) for block in blocks) >= len(blocks) * BLOCK // 2


class _SeenNumbers:
    """A set of entity numbers with one byte each: a hundred million take 100 MB."""

    def __init__(self) -> None:
        self.chunks: dict[int, np.ndarray[Any, np.dtype[np.bool_]]] = {}

    def add(self, numbers: "np.ndarray[Any, np.dtype[np.int64]]") -> "np.ndarray[Any, np.dtype[np.bool_]]":
        """Add numbers; return a mask of those already present or repeated within the array."""
        repeated = np.ones(len(numbers), dtype=bool)
        repeated[np.unique(numbers, return_index=True)[1]] = False
        chunks = numbers >> _CHUNK
        for chunk in np.unique(chunks).tolist():
            seen = self.chunks.setdefault(chunk, np.zeros(1 << _CHUNK, dtype=bool))
            inside = chunks == chunk
            places = numbers[inside] & ((1 << _CHUNK) - 1)
            repeated[inside] |= seen[places]
            seen[places] = True
        return repeated


class _TruthyReader(NTriplesReader):
    """A reader of truthy statements of items, labels of items and properties, descriptions, and merged items."""

    def keep(self, number: int, triple: Any, rows: Rows) -> None:
        """Convert a triple into the rows that the JSON dump would give, or count why not."""
        subject, predicate = self.spell(triple.subject), self.spell(triple.predicate)
        entity_id = subject.removeprefix(ENTITY)
        is_property = entity_id.startswith("P")
        text = f"{subject} {predicate}"
        if entity_id == subject or not entity_id[1:].isdecimal() or entity_id[0] not in "QP":
            self.skips.add("statement about neither an item nor a property", line=number, text=text, bad=False)
        elif predicate in self.names | self.aliases | self.descriptions:
            self.keep_label(entity_id, predicate, triple.object, number, rows)
        elif predicate in self.same:
            rows.redirects.append((entity_id, self.spell(triple.object).removeprefix(ENTITY)))
        elif predicate == SITELINKS and isinstance(triple.object, self.oxigraph.Literal):
            self.keep_count(entity_id, triple.object.value, number, rows)
        elif is_property or not predicate.startswith(_DIRECT):
            self.skips.add("statement that is not a truthy statement of an item", line=number, text=text, bad=False)
        else:
            self.keep_fact(entity_id, predicate.removeprefix(_DIRECT), triple.object, number, rows)
        rows.mark(number)

    def keep_label(self, entity_id: str, predicate: str, term: Any, number: int, rows: Rows) -> None:
        """Keep a label, alias or description in a wanted language."""
        rank = self.languages[term.language]
        if rank is None:
            kind = f"literal in a language other than {self.language!r}"
            self.skips.add(kind, line=number, text=f"{entity_id} {term.value}", bad=False)
        elif predicate in self.descriptions:
            if not entity_id.startswith("P"):
                keep_description(entity_id, rank, term.value, term.language, number, rows, self.skips)
        elif not entity_id.startswith("P"):
            rank = ALIAS if predicate in self.aliases else rank
            keep_name(entity_id, rank, term.value, term.language, number, rows, self.skips)
        elif predicate in self.names and not flaw(term.value):
            rows.labels.append((entity_id, rank, term.value, (term.language or "").lower()))

    def keep_count(self, entity_id: str, sitelinks: str, number: int, rows: Rows) -> None:
        """Keep the number of an entity's sitelinks."""
        if not sitelinks.isdecimal():
            self.skips.add("invalid number of sitelinks", line=number, text=f"{entity_id} {sitelinks}")
        elif int(sitelinks) and not entity_id.startswith("P"):
            rows.counts.append((entity_id, 0, int(sitelinks)))

    def keep_fact(self, entity_id: str, relation: str, term: Any, number: int, rows: Rows) -> None:
        """Keep a statement, unless its value is unknown (a blank node)."""
        if isinstance(term, self.oxigraph.BlankNode):
            self.skips.add("statement of somevalue", line=number, text=f"{entity_id} {relation}", bad=False)
            return
        if isinstance(term, self.oxigraph.NamedNode):
            value = term.value.removeprefix(ENTITY)
            value = spell_address(value) if value == term.value else value
        elif not term.value.strip():
            self.skips.add("claim without a value", line=number, text=f"{entity_id} {relation}")
            return
        else:
            value = spell_typed(term.value, term.datatype.value)
            value += f"@{term.language}" if term.language else ""
        if fault := flaw(value):
            self.skips.add(fault, line=number, text=f"{entity_id} {relation}")
            return
        rows.facts.append((entity_id, relation, value))
        if relation == TYPE:
            rows.types.append((entity_id, value))
        if relation == SUBCLASS and self.closure:
            rows.subclasses.append((entity_id, value))
