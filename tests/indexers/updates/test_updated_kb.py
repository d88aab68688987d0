"""An updated knowledge base answers as a fresh build of the same facts, whatever the updates were."""

import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from kbtools.answering.answerer import Answerer
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.folder.kb_folder import find_damage
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.updates.compacting import compact
from kbtools.indexers.updates.overlay import open_folder
from kbtools.indexers.updates.update_sources import UpdateSource
from kbtools.indexers.updates.updating import update
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import Grouped
from kbtools.pruning import UNGUIDED
from kbtools.suites.backend_suite import check_kb
from kbtools.text.variants import name_forms
from tests.conftest import World, write_world

Record = dict[str, Any]

NAMES = [
    "Jaws", "jaws", "The Who", "Who", "It", "!!!", "C++", "1984", "O'Neil", "oneil", "Łódź", "Lodz", "Emma",
    "Emma (film)", "Rio, Ana", "AC/DC", "東京", "Solaris", "Solari", "one prefix of many words " * 24 + "first",
]  # fmt: skip
IDS = ["m.0a", "m.0b", "m.0c", "m.0d", "e f", "Z", "é", "Q42"]
RELATIONS = ["book.author", "music.genre", "film.directed_by", "place.a..b"]
KINDS = ["t.a", "t.b", "t.c"]
DESCRIPTIONS = ["a book", "a town", "somebody"]
QUESTIONS = ["who wrote jaws", "genre of the who", "emmma author", "solarr", "ana rio directed by", "oneil 1984"]
MISSPELT = ["jawz", "emmma", "solarr", "lodzz", "the whoo", "oneill"]

ids, relations, names, kinds = (st.sampled_from(values) for values in (IDS, RELATIONS, NAMES, KINDS))


def some(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=1, max_size=3, unique=True)


facts = st.dictionaries(relations, some(ids), min_size=1, max_size=2)
additions = st.fixed_dictionaries(
    {"id": ids},
    optional={
        "names": some(names),
        "aliases": some(names),
        "types": some(kinds),
        "facts": facts,
        "description": st.sampled_from(DESCRIPTIONS),
    },
).filter(lambda record: len(record) > 1)
removals = st.fixed_dictionaries(
    {},
    optional={
        "names": st.just(True) | some(names),
        "aliases": st.just(True) | some(names),
        "types": st.just(True) | some(kinds),
        "description": st.just(True),
        "facts": st.just(True) | st.dictionaries(relations, st.just(True) | some(ids), max_size=2),
    },
)
records = st.one_of(
    additions,
    additions,
    st.builds(lambda entity, removed: {"id": entity, "remove": removed}, ids, removals),
    st.builds(lambda entity, old, new: {"id": entity, "rename": {old: new}}, ids, names, names),
    st.builds(lambda entity: {"remove": entity}, ids),
    st.builds(lambda old, new: {"merge": old, "into": new}, ids, ids),
)
triples_of_worlds = st.lists(st.tuples(ids, relations, ids), min_size=1, max_size=12)
named_of_worlds = st.lists(st.tuples(ids, names), max_size=8)
aliases_of_worlds = st.lists(st.tuples(ids, names), max_size=4)
descriptions_of_worlds = st.dictionaries(ids, st.sampled_from(DESCRIPTIONS), max_size=6)
types_of_worlds = st.lists(st.tuples(ids, kinds), max_size=5)
steps = st.lists(st.lists(records, min_size=1, max_size=5), min_size=1, max_size=4)


class Plain:
    """The facts, names, types and descriptions that there should be, changed by records in the plainest way."""

    def __init__(self, world: World) -> None:
        self.facts = set(world.facts)
        self.texts: dict[str, dict[str, int]] = defaultdict(dict)
        self.kinds = set(world.types)
        self.described = dict(world.descriptions)
        self.merged: dict[str, str] = {}
        for entity, text in world.names:
            self.texts[entity][text] = 0
        for entity, text in world.aliases:
            self.texts[entity].setdefault(text, 1)
        self.forget()

    def forget(self) -> None:
        """Leave out the types and descriptions of what has neither fact nor name."""
        known = {entity for s, _, o in self.facts for entity in (s, o)} | {
            e for e, texts in self.texts.items() if texts
        }
        self.kinds = {(entity, kind) for entity, kind in self.kinds if entity in known}
        self.described = {entity: text for entity, text in self.described.items() if entity in known}
        left = {old: self.canonical(new) for old, new in self.merged.items()}
        self.merged = {old: new for old, new in left.items() if new in known and old not in known}

    def canonical(self, entity: str) -> str:
        while entity in self.merged:
            entity = self.merged[entity]
        return entity

    def change(self, record: Record) -> None:
        if record.keys() == {"remove"}:
            if (removed := record["remove"]) not in self.merged:
                self.take(removed)
                self.merged = {old: new for old, new in self.merged.items() if self.canonical(old) != removed}
            return
        if "merge" in record:
            self.merge(record["merge"], record["into"])
            return
        entity = self.canonical(record["id"])
        self.remove(entity, record.get("remove", {}))
        for old, new in record.get("rename", {}).items():
            if old != new and old in self.texts[entity]:
                rank = self.texts[entity].pop(old)
                self.texts[entity][new] = min(rank, self.texts[entity].get(new, 1))
        for field, rank in (("names", 0), ("aliases", 1)):
            for text in record.get(field, ()):
                self.texts[entity][text] = min(rank, self.texts[entity].get(text, 1))
        self.kinds |= {(entity, kind) for kind in record.get("types", ())}
        if "description" in record:
            self.described[entity] = record["description"]
        self.facts |= {
            (entity, relation, self.canonical(target))
            for relation, targets in record.get("facts", {}).items()
            for target in targets
        }

    def remove(self, entity: str, removed: Record) -> None:
        texts = self.texts[entity]
        for field, wanted in (("names", min), ("aliases", max)):
            listed = removed.get(field, [])
            first = min(texts.values(), default=1)
            everything = [text for text, rank in texts.items() if (rank == 1 or rank > first) is (wanted is max)]
            for text in everything if listed is True else listed:
                texts.pop(text, None)
        gone = KINDS if removed.get("types") is True else removed.get("types", [])
        self.kinds -= {(entity, kind) for kind in gone}
        if "description" in removed:
            self.described.pop(entity, None)
        pairs = removed.get("facts", {})
        for relation in RELATIONS if pairs is True else pairs:
            targets = IDS if pairs is True or pairs[relation] is True else pairs[relation]
            self.facts -= {(entity, relation, self.canonical(target)) for target in targets}

    def take(self, entity: str) -> None:
        self.facts = {fact for fact in self.facts if entity not in (fact[0], fact[2])}
        self.texts[entity] = {}
        self.described.pop(entity, None)
        self.kinds = {(other, kind) for other, kind in self.kinds if other != entity}

    def merge(self, old: str, new: str) -> None:
        old, new = self.canonical(old), self.canonical(new)
        if old == new:
            return
        for text, rank in self.texts[old].items():
            self.texts[new][text] = min(rank, self.texts[new].get(text, 1))
        self.facts |= {(new if s == old else s, r, new if o == old else o) for s, r, o in self.facts if old in (s, o)}
        self.kinds |= {(new, kind) for entity, kind in self.kinds if entity == old}
        if old in self.described:
            self.described.setdefault(new, self.described[old])
        self.take(old)
        self.merged[old] = new

    def world(self) -> World:
        ranked = [(entity, text, rank) for entity, texts in self.texts.items() for text, rank in texts.items()]
        return World(
            facts=tuple(self.facts),
            names=tuple((entity, text) for entity, text, rank in ranked if not rank),
            aliases=tuple((entity, text) for entity, text, rank in ranked if rank),
            types=tuple(self.kinds),
            descriptions=tuple(self.described.items()),
        )


def runs(grouped: Grouped, labels: Any) -> list[list[str]]:
    return [[labels[value] for value in grouped.values[a:b]] for a, b in pairwise(grouped.starts.tolist())]


def contents(kb: KnowledgeBase, merged: dict[str, str]) -> dict[str, Any]:
    """Tell all that a knowledge base holds and finds, by ids."""
    known = [entity for entity in IDS if entity not in merged and kb.rows([entity]) != [None]]
    rows = np.array(kb.rows(known), dtype=np.uint32)
    forms = sorted({form for text in NAMES for form in name_forms(text)})
    incoming = kb.subjects_of(rows)
    relations, types = runs(kb.relations_of(rows), kb.relations), runs(kb.types_of(rows), kb.types)
    return {
        "known": kb.ids(rows),
        "count": len(kb.entity_rows()),
        "names": kb.names(rows),
        "descriptions": kb.descriptions(rows),
        "aliases": kb.names_of(rows),
        "relations": list(map(sorted, relations)),
        "types": list(map(sorted, types)),
        "objects": [
            {
                relation: sorted(kb.ids(objects))
                for row_of, relation in enumerate(kb.relations)
                for objects in kb.objects_of([(row, row_of)])
                if len(objects)
            }
            for row in rows.tolist()
        ],
        "fact counts": kb.fact_counts(rows).tolist(),
        "incoming": [
            sorted(zip([kb.relations[row] for row in facts.relations], kb.ids(facts.subjects), strict=True))
            for facts in incoming
        ],
        "incoming counts": kb.incoming_counts(rows).tolist(),
        "lookup": {
            form: {(match.form, match.name, match.is_alias): sorted(kb.ids(match.entities)) for match in matches}
            for form, matches in kb.lookup(forms).items()
        },
        "frequency": kb.name_frequency(sorted({word for form in forms for word in form.split(" ")})),
        "similar": [kb.similar([form])[0] for form in MISSPELT],
        # Of long forms the exact index keeps no more than a hash.
        "beginnings": [
            [form for form in kb.forms_with_prefix(prefix, limit=99) if len(form) < 200] for prefix in ("", "so", "e")
        ],
    }


def memory_of(world: World) -> MemoryKB:
    descriptions = world.descriptions
    return MemoryKB(world.facts, world.names, world.types, aliases=world.aliases, descriptions=descriptions)


def number_alike(fresh: MemoryKB, kb: KnowledgeBase) -> None:
    """Give relations and types the rows of an updated knowledge base, which appends new ones and takes none away."""
    assert {*fresh.relations} <= {*kb.relations}
    assert {*fresh.types} <= {*kb.types}
    fresh.relations, fresh.types = kb.relations, kb.types


def answers(kb: KnowledgeBase) -> list[dict[str, Any]]:
    """Answer questions under every pruner, times left out."""
    answerer = Answerer(kb)
    results = [result for pruner in UNGUIDED for result in answerer.query_many(QUESTIONS, pruning=pruner, top=None)]
    return [result.to_json() | {"milliseconds": None} for result in results]


def counts(kb: KnowledgeBase) -> dict[str, Any]:
    manifest = kb.manifest
    return {kind: count.unique for kind, count in manifest.counts.items()} | manifest.statistics


def apply_records(path: Path, changes: list[Record], options: ReadOptions | None = None) -> dict[str, int]:
    """Update a folder; return what was made, by kind."""
    file = path.with_name("changes.jsonl")
    file.write_text("".join(json.dumps(record) + "\n" for record in changes))
    return update(path, [UpdateSource(Source(file, "any"), "changes")], options=options or ReadOptions()).changes


def compact_alike(path: Path) -> None:
    """Merge updates; nothing is counted otherwise than before, but for relations and types that are left of none."""
    before = counts(open_folder(path))
    compact(path, watch=BuildProgress())
    after = counts(open_folder(path))
    unlike = ("relations", "types", "types_of_unknown_entities")
    assert before | dict.fromkeys(unlike) == after | dict.fromkeys(unlike)


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # each example builds a knowledge base: to find a smaller one takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    triples=triples_of_worlds,
    named=named_of_worlds,
    aliases=aliases_of_worlds,
    types=types_of_worlds,
    described=descriptions_of_worlds,
    updates=steps,
    merges=st.sets(st.integers(0, 3)),
)
def test_after_any_updates_it_answers_as_a_fresh_build_of_the_same_facts(
    tmp_path_factory: Any,
    triples: list[tuple[str, str, str]],
    named: list[tuple[str, str]],
    aliases: list[tuple[str, str]],
    types: list[tuple[str, str]],
    described: dict[str, str],
    updates: list[list[Record]],
    merges: set[int],
) -> None:
    named.append((triples[0][0], "Jaws"))
    plain = Plain(
        World(tuple(triples), tuple(named), tuple(types), tuple(aliases), descriptions=tuple(described.items()))
    )
    folder = tmp_path_factory.mktemp("updated")
    build(write_world(plain.world(), folder), folder / "x.kb", options=ReadOptions(), watch=BuildProgress())
    for number, changes in enumerate(updates):
        before = open_folder(folder / "x.kb")
        former = len(plain.facts), sum(map(len, plain.texts.values()))
        made = apply_records(folder / "x.kb", changes)
        for record in changes:
            plain.change(record)
        plain.forget()
        latter = len(plain.facts), sum(map(len, plain.texts.values()))
        for kind, old, new in zip(("facts", "names"), former, latter, strict=True):
            assert made.get(f"{kind} added", 0) - made.get(f"{kind} removed", 0) == new - old
        kb, world = open_folder(folder / "x.kb"), plain.world()
        assert (kb.relations[: len(before.relations)], kb.types[: len(before.types)]) == (
            before.relations,
            before.types,
        )
        fresh = memory_of(world)
        number_alike(fresh, kb)
        assert contents(kb, plain.merged) == contents(fresh, {})
        assert [kb.ids(np.array([row])) for row in kb.rows(list(plain.merged))] == [
            [plain.canonical(old)] for old in plain.merged
        ]
        assert answers(kb) == answers(fresh)
        assert list(find_damage(kb.path, kb.manifest)) == []
        assert list(check_kb("embedded", kb))
        if number in merges:
            compact_alike(folder / "x.kb")
    compact_alike(folder / "x.kb")
    fresh = memory_of(world)
    assert contents(open_folder(folder / "x.kb"), plain.merged) == contents(fresh, {})
    assume(world.facts and {entity for entity, _ in world.names + world.aliases} & {s for s, _, _ in world.facts})
    built = build(write_world(world, folder), folder / "fresh.kb", options=ReadOptions(), watch=BuildProgress())
    merged_kb = open_folder(folder / "x.kb")
    assert (merged_kb.relations, merged_kb.types) == (fresh.relations, fresh.types)
    assert merged_kb.manifest.digest == built.manifest.digest or plain.merged
    assert counts(merged_kb) == counts(open_folder(folder / "fresh.kb"))


TEXTS = ["Köln", "Cologne", "Kölle", "cologne", "Roma", "Rom", "The Who", "Solaris"]
TAGS = ["en", "de"]
SPOKEN_IDS = ["Q1", "Q2", "Q3", "Q4"]
texts_in = st.dictionaries(st.sampled_from(TAGS), some(st.sampled_from(TEXTS)), min_size=1)
spoken_records = st.one_of(
    st.builds(
        lambda entity, field, texts: {"id": entity, field: texts},
        st.sampled_from(SPOKEN_IDS),
        st.sampled_from(["names", "aliases"]),
        texts_in,
    ),
    st.builds(
        lambda entity, texts: {"id": entity, "remove": {"names": texts}},
        st.sampled_from(SPOKEN_IDS),
        some(st.sampled_from(TEXTS)),
    ),
    st.builds(
        lambda entity, old, new: {"id": entity, "rename": {old: new}},
        st.sampled_from(SPOKEN_IDS),
        st.sampled_from(TEXTS),
        st.sampled_from(TEXTS),
    ),
    st.builds(
        lambda old, new: {"merge": old, "into": new}, st.sampled_from(SPOKEN_IDS[1:]), st.sampled_from(SPOKEN_IDS)
    ),
)


class Spoken:
    """The names of entities with their languages, changed by records in the plainest way.

    Each has an English name of its own, so that its first name is always in the first language.
    """

    def __init__(self) -> None:
        self.names = {entity: {f"entity {entity}": {"en": False}} for entity in SPOKEN_IDS}
        self.merged: dict[str, str] = {}

    def add(self, entity: str, text: str, parts: dict[str, bool]) -> None:
        own = self.names[entity].setdefault(text, {})
        own |= {tag: is_alias and own.get(tag, True) for tag, is_alias in parts.items()}

    def change(self, record: Record) -> None:
        if "merge" in record:
            old, new = self.canonical(record["merge"]), self.canonical(record["into"])
            if old != new:
                for text, parts in self.names.pop(old).items():
                    self.add(new, text, parts)
                self.merged[old] = new
            return
        entity = self.canonical(record["id"])
        for text in record.get("remove", {}).get("names", ()):
            self.names[entity].pop(text, None)
        for old, new in record.get("rename", {}).items():
            if old != new and old in self.names[entity]:
                self.add(entity, new, self.names[entity].pop(old))
        for field in ("names", "aliases"):
            for tag, texts in record.get(field, {}).items():
                for text in texts:
                    self.add(entity, text, {tag: field == "aliases"})

    def canonical(self, entity: str) -> str:
        while entity in self.merged:
            entity = self.merged[entity]
        return entity

    def world(self) -> World:
        rows = [(e, text, tag, alias) for e, own in self.names.items() for text, parts in own.items()
                for tag, alias in parts.items()]  # fmt: skip
        return World(
            facts=(("Q1", "r.r.r", "Q1"),),
            names=(),
            spoken=tuple((entity, text, tag) for entity, text, tag, alias in rows if not alias),
            spoken_aliases=tuple((entity, text, tag) for entity, text, tag, alias in rows if alias),
            language="en,de",
        )


@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    updates=st.lists(st.lists(spoken_records, min_size=1, max_size=6), min_size=2, max_size=4), merge=st.integers(0, 3)
)
def test_languages_are_those_of_a_fresh_build_after_any_updates(
    tmp_path_factory: Any, updates: list[list[Record]], merge: int
) -> None:
    plain, folder, options = Spoken(), tmp_path_factory.mktemp("spoken"), ReadOptions(language="en,de")
    build(write_world(plain.world(), folder), folder / "x.kb", options=options, watch=BuildProgress())
    for number, changes in enumerate(updates):
        apply_records(folder / "x.kb", changes, options)
        for record in changes:
            plain.change(record)
        kb, world = open_folder(folder / "x.kb"), plain.world()
        fresh = MemoryKB(world.facts, world.spoken, aliases=world.spoken_aliases, language="en,de")
        assert spoken_in(kb, plain.names) == spoken_in(fresh, plain.names)
        assert kb.manifest.languages == fresh.manifest.languages
        assert list(check_kb("embedded", kb))
        if number == merge:
            compact(folder / "x.kb", watch=BuildProgress())
    compact(folder / "x.kb", watch=BuildProgress())
    built = build(write_world(world, folder), folder / "fresh.kb", options=options, watch=BuildProgress())
    assert spoken_in(open_folder(folder / "x.kb"), plain.names) == spoken_in(fresh, plain.names)
    assert open_folder(folder / "x.kb").manifest.digest == built.manifest.digest or plain.merged


def spoken_in(kb: KnowledgeBase, ids: Iterable[str]) -> dict[str, Any]:
    """Tell the names of entities, with their languages, and who is found by each in German."""
    rows = np.array(kb.rows(list(ids)), dtype=np.uint32)
    matches = kb.lookup(sorted({form for text in TEXTS for form in name_forms(text)}))
    every = [match for own in matches.values() for match in own]
    german = kb.parts_of(every, frozenset(["de"]))
    return {
        "names": dict(zip(ids, kb.names_of(rows), strict=True)),
        "german": {
            (match.form, match.name, match.is_alias): dict(zip(kb.ids(match.entities), parts.tolist(), strict=True))
            for match, parts in zip(every, german, strict=True)
        },
    }
