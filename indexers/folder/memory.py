"""The reference implementation: a knowledge base in dictionaries, with which every other backend must agree.

For tests and knowledge bases of some thousand facts; it never writes to disk.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz

from kbtools.errors import VectorsMissing
from kbtools.indexers.folder.language_sets import set_text, spoken
from kbtools.indexers.readers.batches import ALIAS
from kbtools.indexers.readers.labels import DEFAULT_LANGUAGES, Languages
from kbtools.kb.contract import BackendDefaults, NameMatch, SimilarName, match_kind
from kbtools.kb.ids import canonical_id
from kbtools.kb.language_tags import UND, SpokenName
from kbtools.kb.manifest import Count, Manifest
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts
from kbtools.kb.vector_index import VectorIndex
from kbtools.linking.near_ranking import NO_ENTITY, Bearer
from kbtools.linking.similarity import rescore, within_edits
from kbtools.text.normaliser import normal_form
from kbtools.text.rungs import Form
from kbtools.text.variants import name_forms

_Name = tuple[str, str] | tuple[str, str, str]


class MemoryKB(BackendDefaults):
    """A knowledge base of triples (subject, relation, object), names (entity, name) and types (entity, type).

    A name or alias may include its language: (entity, name, language); names in the first available language of
    `language` are the names of an entity. Counts are (name, entity, count), with an empty name for a count of the
    entity under all its names.
    """

    vector_index: VectorIndex | None = None
    """Vectors of its entities, assigned by the caller."""

    def __init__(
        self,
        facts: Iterable[tuple[str, str, str]],
        names: Iterable[_Name] = (),
        types: Iterable[tuple[str, str]] = (),
        *,
        aliases: Iterable[_Name] = (),
        counts: Iterable[tuple[str, str, int]] = (),
        descriptions: Iterable[tuple[str, str]] = (),
        language: str = DEFAULT_LANGUAGES,
    ) -> None:
        triples = {(canonical_id(s), canonical_id(r), canonical_id(o)) for s, r, o in facts}
        texts: dict[str, dict[str, int]] = defaultdict(dict)
        self.parts: dict[str, dict[str, dict[str, bool]]] = defaultdict(lambda: defaultdict(dict))
        languages = Languages.read(language)
        for is_alias, rows in ((False, names), (True, aliases)):
            for entity_id, text, *tags in rows:
                entity, tag = canonical_id(entity_id), tags[0] if tags else ""
                rank = ALIAS if is_alias else languages[tag] or 0
                # A text that is both a name and an alias is a name, in each language and overall.
                texts[entity][text] = min(rank, texts[entity].get(text, rank))
                self.parts[entity][text].setdefault(tag or UND, is_alias)
        self.first_rank = {entity: min(ranks.values()) for entity, ranks in texts.items()}
        self.entity_ids = sorted({s for s, _, _ in triples} | {o for _, _, o in triples} | set(texts))
        self.row = {entity: row for row, entity in enumerate(self.entity_ids)}
        typed = {(canonical_id(entity), canonical_id(kind)) for entity, kind in types}
        self.relations: Sequence[str] = tuple(sorted({r for _, r, _ in triples}))
        self.types: Sequence[str] = tuple(sorted({kind for _, kind in typed}))
        self.facts: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self.incoming: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for subject, relation, target in triples:
            self.facts[subject][relation].add(target)
            self.incoming[target].append((relation, subject))
        self.kinds: dict[str, set[str]] = defaultdict(set)
        for entity, kind in typed:
            self.kinds[entity].add(kind)
        self.texts = {
            entity: sorted(orders, key=lambda text, orders=orders: (orders[text], text))  # type: ignore[misc]
            for entity, orders in texts.items()
        }
        self.forms: dict[str, dict[tuple[int, str], set[int]]] = defaultdict(lambda: defaultdict(set))
        for entity, own_texts in self.texts.items():
            for text in own_texts:
                for form, rewriting in name_forms(text).items():
                    rank = texts[entity][text]
                    number = match_kind(rewriting, is_alias=rank == ALIAS or rank > self.first_rank[entity])
                    self.forms[form][number, text].add(self.row[entity])
        self.counts: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for name, entity, count in counts:
            if canonical_id(entity) in self.row:
                self.counts[normal_form(name)][self.row[canonical_id(entity)]] += count
        self.described: dict[str, str] = {}
        for entity, text in descriptions:
            self.described.setdefault(canonical_id(entity), text)
        normal = match_kind(Form.NORMAL, is_alias=True)
        self.normal_forms = {form for form, groups in self.forms.items() if any(kind <= normal for kind, _ in groups)}
        named = sum(map(len, self.texts.values()))
        tag_counts = Counter(tag for own_names in self.parts.values() for parts in own_names.values() for tag in parts)
        content = (sorted(triples), sorted(self.texts.items()), sorted(typed))
        self.manifest = Manifest(
            digest=hashlib.sha256(repr(content).encode(errors="surrogatepass")).hexdigest(),
            counts={
                "facts": Count(len(triples), len(triples)),
                "names": Count(named, named),
                "entities": Count(len(self.entity_ids), len(self.entity_ids)),
            },
            sources=(),
            lengths=tuple(sorted({form.count(" ") + 1 for form in self.forms})),
            statistics={"forms": len(self.forms), "relations": len(self.relations), "types": len(self.types)},
            languages={} if tag_counts.keys() <= {UND} else dict(tag_counts.most_common()),
        )

    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        matches = {}
        for form in forms:
            if form in self.forms:
                groups = sorted(self.forms[form].items())
                matches[form] = [NameMatch.of_kind(kind, text, _as_rows(entities)) for (kind, text), entities in groups]
        return matches

    def similar(
        self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0, edits_only: bool = False
    ) -> list[list[SimilarName]]:
        names = sorted(self.normal_forms)
        options: dict[str, Any] = {"limit": limit, "cutoff": cutoff, "names": self.manifest.statistics["forms"]}
        similar = []
        for form in forms:
            near = [] if edits_only else [near for near in names if fuzz.ratio(form, near) >= cutoff]
            recalled = within_edits(form, names) + near if form else []
            similar.append(rescore(form, recalled, **options, bearers=self.bearers))
        return similar

    def bearers(self, forms: Sequence[str]) -> list[Bearer]:
        """Return for each form its entity with the most names."""
        matches = self.lookup(forms)
        bearers = []
        for form in forms:
            names = {
                row: len(self.texts[self.entity_ids[row]]) for match in matches[form] for row in match.entities.tolist()
            }
            most = [row for row, count in names.items() if count == max(names.values())]
            bearers.append(Bearer(max(names.values()), most[0] if len(most) == 1 else NO_ENTITY))
        return bearers

    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]:
        return sorted(form for form in self.normal_forms if form.startswith(prefix))[:limit]

    def name_frequency(self, words: Sequence[str]) -> list[int]:
        return [sum(word in form.split(" ") for form in self.normal_forms) for word in words]

    def relations_of(self, entities: EntityRows) -> Grouped:
        order = {relation: row for row, relation in enumerate(self.relations)}
        return Grouped.of([sorted(order[relation] for relation in self.facts_from(row)) for row in entities.tolist()])

    def facts_from(self, row: int) -> dict[str, set[str]]:
        return self.facts.get(self.entity_ids[row], {})

    def objects_of(self, pairs: Sequence[tuple[int, int]]) -> list[EntityRows]:
        targets = [self.facts_from(subject).get(self.relations[relation], ()) for subject, relation in pairs]
        return [_as_rows(self.row[target] for target in ids) for ids in targets]

    def types_of(self, entities: EntityRows) -> Grouped:
        order = {kind: row for row, kind in enumerate(self.types)}
        groups = [self.kinds.get(self.entity_ids[row], set()) for row in entities.tolist()]
        return Grouped.of([sorted(order[kind] for kind in kinds) for kinds in groups])

    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        counts = [sum(map(len, self.facts_from(row).values())) for row in entities.tolist()]
        return np.array(counts, dtype=np.int64)

    def incoming_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        counts = [len(self.incoming.get(self.entity_ids[row], ())) for row in entities.tolist()]
        return np.array(counts, dtype=np.int64)

    def subjects_of(self, entities: EntityRows) -> list[IncomingFacts]:
        order = {relation: row for row, relation in enumerate(self.relations)}
        incoming = []
        for entity_id in self.ids(entities):
            facts = self.incoming.get(entity_id, ())
            pairs = sorted((order[relation], self.row[subject]) for relation, subject in facts)
            relations, subjects = np.array(pairs, dtype=np.uint32).reshape(-1, 2).T
            incoming.append(IncomingFacts(relations, subjects))
        return incoming

    def name_counts(self, form: str, entities: EntityRows) -> NDArray[np.int64] | None:
        counts = self.counts.get(form)
        return None if counts is None else np.array([counts.get(row, 0) for row in entities.tolist()], dtype=np.int64)

    def ids(self, entities: EntityRows) -> list[str]:
        return [self.entity_ids[row] for row in entities.tolist()]

    def names_of(self, entities: EntityRows) -> list[list[SpokenName]]:
        return [
            [spoken(text, set_text(self.parts[entity_id][text])) for text in self.texts.get(entity_id, ())]
            for entity_id in self.ids(entities)
        ]

    def descriptions(self, entities: EntityRows) -> list[str | None]:
        return [self.described.get(entity_id) for entity_id in self.ids(entities)]

    def vectors(self) -> VectorIndex:
        if self.vector_index is None:
            raise VectorsMissing("has no entity vectors; put an index of them into `vector_index`")
        return self.vector_index

    def rows(self, ids: Sequence[str]) -> list[int | None]:
        return [self.row.get(entity_id) for entity_id in ids]


def _as_rows(rows: Iterable[int]) -> EntityRows:
    return np.array(sorted(rows), dtype=np.uint32)
