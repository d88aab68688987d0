"""The contract of backends: a backend must agree with the reference in memory on everything that it lists."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from kbtools.entry_points import BACKENDS, construct, load_class
from kbtools.errors import KBMissing, KBUnusable
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import ABSENT, KnowledgeBase
from kbtools.kb.language_tags import UND, part_among
from kbtools.kb.rows import EntityRows, Grouped
from kbtools.linking.similarity import LONGEST_NAME
from kbtools.suites.claims import Claim, check_claims
from kbtools.text.ngrams import every_run

MOST_ENTITIES = 20_000
"""The most entities of the knowledge base, since the reference compares every name with every misspelling."""

_ENTITIES_AT_ONCE = 100
"""Entities whose objects are requested together, for every relation."""

_MISSPELT = 50
"""Names that are requested with a letter missing."""


def check_backend(name: str, sample: Path | None = None) -> Iterator[str]:
    """Open a small knowledge base with a backend, and yield each claim that holds."""
    if sample is None:
        raise KBMissing(f"backend {name!r} is checked on a small knowledge base that it opens; name one with --sample")
    backend = load_class(BACKENDS, name)
    yield from check_kb(name, construct(name, lambda: backend(sample)))


def check_kb(name: str, kb: KnowledgeBase) -> Iterator[str]:
    """Check an open knowledge base, and yield each claim that holds."""
    entities = kb.manifest.counts["entities"].unique
    if entities > MOST_ENTITIES:
        raise KBUnusable(f"has {entities:,} entities; a backend is checked on one with at most {MOST_ENTITIES:,}")
    yield from check_claims(name, Contract.over(kb, kb.entity_rows()).claims())


@dataclass(frozen=True, slots=True, eq=False)
class Contract:
    """A knowledge base and its reference, with the rows of all entities in each."""

    kb: KnowledgeBase
    rows: EntityRows
    reference: MemoryKB
    there: EntityRows

    @classmethod
    def over(cls, kb: KnowledgeBase, rows: EntityRows) -> "Contract":
        """Return a contract with a reference that holds everything a knowledge base lists."""
        ids, relations, types = kb.ids(rows), kb.relations, kb.types
        by_row = dict(zip(rows.tolist(), ids, strict=True))
        reference = MemoryKB(
            [(by_row[s], relations[r], by_row[o]) for s, r, o in kb.facts_of(rows).tolist()],
            [(entity, name.text) for entity, names in zip(ids, kb.names_of(rows), strict=True) for name in names],
            [
                (entity, types[kind])
                for entity, kinds in zip(ids, _runs(kb.types_of(rows)), strict=True)
                for kind in kinds
            ],
        )
        there = [row for row in reference.rows(ids) if row is not None]
        return cls(kb, rows, reference, np.array(there, dtype=np.uint32))

    def claims(self) -> list[Claim]:
        return [
            ("ids and rows undo each other, and an unknown id has no row", self.ids_and_rows),
            ("an entity has a fact, a name or is an object", lambda: len(self.there) == len(self.rows)),
            ("relations and types are listed once each, a relation with its name or without", self.labels),
            (
                "relations of entities are those of their facts, ascending",
                lambda: self.groups("relations_of", "relations"),
            ),
            ("types of entities ascend, in the order asked", lambda: self.groups("types_of", "types")),
            ("facts are counted", self.counts),
            ("incoming facts are those of the objects, by relation and subject, or not indexed", self.incoming),
            ("objects ascend, and there are none without a fact", self.objects),
            ("facts of entities are listed in order", self.facts),
            ("a name is the first of all names", self.names),
            ("the languages of names are counted", self.languages),
            ("a text is a name or an alias as its languages say", self.parts),
            ("every form finds what is stored under it", self.forms_are_found),
            ("stored runs of words are likely, and no run has another length", self.likely),
            ("a misspelt form finds the names that the reference finds", self.similar),
            ("words are counted in normal forms", self.words),
            ("the manifest lists the numbers of words that names have", self.lengths),
            ("without entities, it returns no facts, types, names or ids", self.nobody),
        ]

    def ids_and_rows(self) -> bool:
        return self.kb.rows([*self.kb.ids(self.rows), "no such id", ""]) == [*self.rows.tolist(), None, None]

    def labels(self) -> bool:
        unique = all(len(set(labels)) == len(labels) for labels in (self.kb.relations, self.kb.types))
        return unique and len(self.kb.relation_names) == len(self.kb.relations)

    def groups(self, method: str, labels: str) -> bool:
        """Compare the groups of entities in random order, each twice."""
        order = np.random.default_rng(7).permutation(np.tile(np.arange(len(self.rows)), 2))
        own, other = (
            _runs(getattr(self.kb, method)(self.rows[order])),
            _runs(getattr(self.reference, method)(self.there[order])),
        )
        names, others = getattr(self.kb, labels), getattr(self.reference, labels)
        return all(run == sorted(set(run)) for run in own) and [{names[value] for value in run} for run in own] == [
            {others[value] for value in run} for run in other
        ]

    def counts(self) -> bool:
        return bool(np.array_equal(self.kb.fact_counts(self.rows), self.reference.fact_counts(self.there)))

    def incoming(self) -> bool:
        counts = self.kb.incoming_counts(self.rows)
        if counts is None:
            return True
        facts = self.kb.facts_of(self.rows)
        into: dict[int, list[tuple[int, int]]] = {row: [] for row in self.rows.tolist()}
        for subject, relation, target in facts[np.lexsort(facts.T[[0, 1]])].tolist():
            into[target].append((relation, subject))
        expected = list(into.values())
        listed = self.kb.subjects_of(self.rows)
        pairs = [list(zip(facts.relations.tolist(), facts.subjects.tolist(), strict=True)) for facts in listed]
        relations = [sorted({relation for relation, _ in facts}) for facts in expected]
        counted = counts.tolist() == [len(facts) for facts in expected]
        return counted and pairs == expected and _runs(self.kb.incoming_relations_of(self.rows)) == relations

    def objects(self) -> bool:
        """Compare the objects of every entity and relation."""
        known = {relation: row for row, relation in enumerate(self.reference.relations)}
        labels = list(enumerate(self.kb.relations))
        for start in range(0, len(self.rows), _ENTITIES_AT_ONCE):
            rows, there = (every[start : start + _ENTITIES_AT_ONCE].tolist() for every in (self.rows, self.there))
            own = self.kb.objects_of([(row, relation) for row in rows for relation, _ in labels])
            pairs = [(row, known[label]) for row in there for _, label in labels if label in known]
            stored = dict(zip(pairs, self.reference.objects_of(pairs), strict=True))
            expected = [
                stored.get((row, known.get(label, ABSENT)), self.there[:0]) for row in there for _, label in labels
            ]
            for objects, other in zip(own, expected, strict=True):
                if objects.tolist() != sorted(objects.tolist()) or set(self.kb.ids(objects)) != set(
                    self.reference.ids(other)
                ):
                    return False
        return True

    def facts(self) -> bool:
        whole = self.kb.facts_of(self.rows)
        parts = [self.kb.facts_of(part) for part in np.array_split(self.rows, 2)]
        in_order = whole.tolist() == sorted(whole.tolist())
        return (
            in_order
            and bool(np.array_equal(whole, np.concatenate(parts)))
            and self.kb.facts_of(self.rows[:0]).shape == (0, 3)
        )

    def names(self) -> bool:
        return self.kb.names(self.rows) == [names[0].text if names else None for names in self.kb.names_of(self.rows)]

    def languages(self) -> bool:
        counts = Counter(tag for names in self.kb.names_of(self.rows) for name in names for tag in name.languages)
        return ({} if counts.keys() <= {UND} else dict(counts)) == self.kb.manifest.languages

    def parts(self) -> bool:
        """Compare the roles of all names in each language with the names of their bearers."""
        matches = [match for matches in self.kb.lookup(list(self.reference.forms)).values() for match in matches]
        spoken = dict(zip(self.rows.tolist(), self.kb.names_of(self.rows), strict=True))
        return all(
            [part.tolist() for part in self.kb.parts_of(matches, frozenset([tag]))]
            == [[part_among(spoken[row], match.name, [tag]) for row in match.entities.tolist()] for match in matches]
            for tag in [*self.kb.manifest.languages, "no-language"]
        )

    def forms_are_found(self) -> bool:
        forms = [*self.reference.forms, "no such name", ""]
        return _look_up(self.kb, forms) == _look_up(self.reference, forms)

    def likely(self) -> bool:
        forms = list(self.reference.forms)[:_MISSPELT]
        words = [word for form in forms for word in form.split(" ")]
        lengths = frozenset(self.kb.manifest.lengths)
        likely = [tuple(run) for run in self.kb.likely_runs(words, lengths)]
        possible = every_run(words, lengths)
        stored = [run for run in possible if self.kb.lookup([" ".join(words[run[0] : run[1] + 1])])]
        return set(stored) <= set(likely) and [run for run in possible if run in set(likely)] == likely

    def similar(self) -> bool:
        # Longer than four letters, so that a missing letter keeps the similarity above the cutoff.
        names = [form for form in sorted(self.reference.normal_forms) if len(form) > 4][:_MISSPELT]
        misspelt = [name[:2] + name[3:] for name in names]
        edited = [*misspelt, "", "x" * (LONGEST_NAME + 1)]
        return all(
            self.kb.similar(asked, edits_only=edits_only) == self.reference.similar(asked, edits_only=edits_only)
            for asked in (edited, edited[:1])
            for edits_only in (False, True)
        )

    def words(self) -> bool:
        words = sorted({word for form in self.reference.forms for word in form.split(" ")} | {"nosuchword"})
        return self.kb.name_frequency(words) == self.reference.name_frequency(words)

    def lengths(self) -> bool:
        return set(self.reference.manifest.lengths) <= set(self.kb.manifest.lengths)

    def nobody(self) -> bool:
        none = self.rows[:0]
        groups = (self.kb.relations_of(none), self.kb.types_of(none))
        lists = (self.kb.ids(none), self.kb.names(none), self.kb.rows([]), self.kb.fact_counts(none).tolist())
        return all(_runs(group) == [] for group in groups) and not any(lists) and not self.kb.lookup([])


def _runs(grouped: Grouped) -> list[list[int]]:
    """Return groups as lists."""
    return [grouped.values[first:last].tolist() for first, last in pairwise(grouped.starts.tolist())]


def _look_up(kb: KnowledgeBase, forms: list[str]) -> dict[str, dict[tuple[int, str], set[str]]]:
    """Return a look-up as sets of ids by form, rewriting and spelling, with names and aliases alike."""
    bearers: dict[str, dict[tuple[int, str], set[str]]] = {}
    for form, matches in kb.lookup(forms).items():
        for match in matches:
            bearers.setdefault(form, {}).setdefault((match.form, match.name), set()).update(kb.ids(match.entities))
    return bearers
