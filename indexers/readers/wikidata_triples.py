"""Wikidata's truthy dump in N-Triples, whose ids and values come out as those of the JSON dump."""

from typing import Any

from kbtools.indexers.readers.batches import ALIAS, Rows, flaw
from kbtools.indexers.readers.labels import keep_description, keep_name
from kbtools.indexers.readers.ntriples import NTriplesReader
from kbtools.indexers.readers.wikidata_entities import SUBCLASS, TYPE
from kbtools.indexers.readers.wikidata_values import ENTITY, spell_address, spell_typed

DIRECT = "http://www.wikidata.org/prop/direct/"
SITELINKS = "http://wikiba.se/ontology#sitelinks"


class TruthyReader(NTriplesReader):
    """A reader of truthy statements of items, labels of items and properties, descriptions, and merged items."""

    def keep(self, number: int, triple: Any, rows: Rows) -> None:
        """Turn a triple into the rows that the JSON dump would give, or count why not."""
        subject, predicate = self.spell(triple.subject), self.spell(triple.predicate)
        entity_id = subject.removeprefix(ENTITY)
        is_property = entity_id.startswith("P")
        text = f"{subject} {predicate}"
        if entity_id == subject or not entity_id[1:].isdecimal() or entity_id[0] not in "QP":
            self.skips.add("statement about no item and no property", line=number, text=text, bad=False)
        elif predicate in self.names | self.aliases | self.descriptions:
            self.keep_label(entity_id, predicate, triple.object, number, rows)
        elif predicate in self.same:
            rows.redirects.append((entity_id, self.spell(triple.object).removeprefix(ENTITY)))
        elif predicate == SITELINKS and isinstance(triple.object, self.oxigraph.Literal):
            self.keep_count(entity_id, triple.object.value, number, rows)
        elif is_property or not predicate.startswith(DIRECT):
            self.skips.add("statement that is no truthy one of an item", line=number, text=text, bad=False)
        else:
            self.keep_fact(entity_id, predicate.removeprefix(DIRECT), triple.object, number, rows)
        rows.mark(number)

    def keep_label(self, entity_id: str, predicate: str, term: Any, number: int, rows: Rows) -> None:
        """Keep a label, an alias or a description in one of the languages asked for."""
        rank = self.languages.rank(term.language)
        if rank is None:
            kind = f"literal in another language than {self.language!r}"
            self.skips.add(kind, line=number, text=f"{entity_id} {term.value}", bad=False)
        elif predicate in self.descriptions:
            if not entity_id.startswith("P"):
                keep_description(entity_id, rank, term.value, number, rows, self.skips)
        elif not entity_id.startswith("P"):
            rank = ALIAS if predicate in self.aliases else rank
            keep_name(entity_id, rank, term.value, term.language, number, rows, self.skips)
        elif predicate in self.names and not flaw(term.value):
            rows.labels.append((entity_id, rank, term.value, (term.language or "").lower()))

    def keep_count(self, entity_id: str, sitelinks: str, number: int, rows: Rows) -> None:
        """Keep the number of an entity's sitelinks."""
        if not sitelinks.isdecimal():
            self.skips.add("number of sitelinks that is none", line=number, text=f"{entity_id} {sitelinks}")
        elif int(sitelinks) and not entity_id.startswith("P"):
            rows.counts.append((entity_id, 0, int(sitelinks)))

    def keep_fact(self, entity_id: str, relation: str, term: Any, number: int, rows: Rows) -> None:
        """Keep a statement; a blank node stands for a value that nobody knows."""
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
