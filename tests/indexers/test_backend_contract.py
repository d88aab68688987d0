"""The contract of backends: one suite, and random worlds in which all agree with the reference."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rapidfuzz import fuzz

from kbtools.answering.answerer import Answerer
from kbtools.indexers.folder.column_files import gather
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows, Grouped
from kbtools.linking import similarity
from kbtools.pruning import UNGUIDED
from kbtools.text.normaliser import normal_form
from kbtools.text.rungs import Form
from tests.conftest import World

TYPOS = [
    "pirates of the carribean", "harry poter", "sasha vujacik", "dvorzak", "antonin dvorak", "nizke tatri", "lile",
    "pittsburg pirates", "simon and garfunkle", "beetles", "the beatle", "machine lerning", "frankenstien", "solariss",
    "mercuri", "portlnd", "springfeild", "freddy mercury", "harder fastr", "red cloud war", "metamorphosys", "hamlt",
    "clockwork orage", "pride and prejudise", "the simpson", "tolkein", "nitendo", "moskow", "bjork gudmundsdottir",
    "war and peece", "user100", "1984", "2001 a space odissey", "avatr", "united state of america", "x", "zzzzzzzzzz",
]  # fmt: skip


def rows_of(kb: KnowledgeBase, *ids: str) -> EntityRows:
    return np.array(kb.rows(ids), dtype=np.uint32)


def found(kb: KnowledgeBase, *forms: str) -> dict[str, dict[tuple[Form, str], set[str]]]:
    """Read a lookup as sets: the ids of entities by form, kind and spelling."""
    return {
        form: {(match.form, match.name): set(kb.ids(match.entities)) for match in matches}
        for form, matches in kb.lookup(forms).items()
    }


def runs(kb: KnowledgeBase, grouped: Grouped, labels: Sequence[str]) -> list[list[str]]:
    """Write groups out as lists of labels."""
    return [[labels[value] for value in grouped.values[a:b]] for a, b in pairwise(grouped.starts.tolist())]


# lookup


def test_a_shared_name_gives_every_bearer(tiny: KnowledgeBase) -> None:
    assert found(tiny, "paris") == {
        "paris": {(Form.NORMAL, "Paris"): {"m.01paris", "m.02paris"}, (Form.COMMA, "Paris, Texas"): {"m.02paris"}}
    }


def test_a_form_gathers_its_spellings_each_with_the_rewriting_that_led_there(tiny: KnowledgeBase) -> None:
    assert found(tiny, "who", "the who", "ac dc", "lodz") == {
        "who": {(Form.NORMAL, "Who"): {"m.13who"}, (Form.ARTICLE, "The Who"): {"m.12who"}},
        "the who": {(Form.NORMAL, "The Who"): {"m.12who"}},
        "ac dc": {(Form.NORMAL, "AC/DC"): {"m.08acdc"}, (Form.NORMAL, "AC\\DC"): {"m.08acdc"}},
        "lodz": {(Form.NORMAL, "Łódź"): {"m.04lodz"}, (Form.NORMAL, "Lodz"): {"m.04lodz"}},
    }


def test_spellings_come_in_one_order_by_kind_then_text(tiny: KnowledgeBase) -> None:
    matches = [(match.form, match.name) for match in tiny.lookup(["paris", "ac dc", "lodz"])["ac dc"]]

    assert matches == sorted(matches)


def test_the_bearers_of_a_name_ascend_and_stand_once(tiny: KnowledgeBase) -> None:
    (match,) = [match for match in tiny.lookup(["paris"])["paris"] if match.name == "Paris"]

    assert match.entities.dtype == np.uint32
    assert tiny.ids(match.entities) == ["m.01paris", "m.02paris"]


def test_quotes_and_backslashes_are_part_of_a_spelling_but_of_no_form(tiny: KnowledgeBase) -> None:
    assert found(tiny, "heroes") == {"heroes": {(Form.NORMAL, '"Heroes"'): {"m.06heroes"}}}


def test_a_name_of_punctuation_is_found_by_its_marks(tiny: KnowledgeBase) -> None:
    assert found(tiny, "!!!", "!!") == {"!!!": {(Form.NORMAL, "!!!"): {"m.14bang"}}}


def test_an_alias_of_ten_thousand_characters_is_found_by_all_of_it(tiny: KnowledgeBase, tiny_world: World) -> None:
    ((_, alias),) = [pair for pair in tiny_world.aliases if len(pair[1]) == 10_000]
    form = normal_form(alias)

    assert found(tiny, form) == {form: {(Form.NORMAL, alias): {"m.11titin"}}}
    assert found(tiny, form[:-6], form + " x") == {}


def test_long_forms_that_share_their_first_bytes_stay_apart(tiny: KnowledgeBase, tiny_world: World) -> None:
    long = {entity: text for entity, text in tiny_world.names if len(text.encode()) > 511}
    forms = {normal_form(text): entity for entity, text in long.items()}

    assert len(forms) == 2
    assert {form: set().union(*groups.values()) for form, groups in found(tiny, *forms).items()} == {
        form: {entity} for form, entity in forms.items()
    }


def test_what_nothing_is_stored_under_is_left_out(tiny: KnowledgeBase) -> None:
    assert found(tiny, "", "zebra", "Paris", "paris ", "pari", "paris texas x") == {}
    assert tiny.lookup([]) == {}


def test_a_form_asked_twice_is_answered_once(tiny: KnowledgeBase) -> None:
    assert list(tiny.lookup(["paris", "paris"])) == ["paris"]


# similar


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("pariss", "paris"),
        ("atlantas", "atlantis"),
        ("david bowi", "david bowie"),
        ("titn", "titin"),
        ("lodzz", "lodz"),
    ],
)
def test_a_misspelt_form_finds_the_name(tiny: KnowledgeBase, asked: str, near: str) -> None:
    first = tiny.similar([asked])[0][0]

    assert (first.form, first.similarity) == (near, pytest.approx(fuzz.ratio(asked, near)))


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("thebedroomphilosopher folk", "the bedroom philosopher"),
        ("rocknroll", "rock and roll"),
        ("californian", "new california"),
    ],
)
def test_a_name_many_edits_away_is_found_if_it_is_similar(
    backend: str, make_kb: Callable[[str, World], Any], new_world: type[World], asked: str, near: str
) -> None:
    names = ("The Bedroom Philosopher", "Rock and Roll", "New California", "California Dreaming", "Rock Hall")
    kb = make_kb(backend, new_world(facts=(("a", "r", "b"),), names=tuple(("a", name) for name in names)))

    assert [found.form for found in kb.similar([asked])[0]] == [near]


def test_digits_are_never_exchanged(tiny: KnowledgeBase) -> None:
    assert tiny.similar(["1984"], cutoff=0)[0] == []
    assert [near.form for near in tiny.similar(["1985x"], cutoff=50)[0]] == ["1985"]


def test_a_form_is_not_similar_to_itself(tiny: KnowledgeBase) -> None:
    assert "paris" not in [near.form for near in tiny.similar(["paris"], cutoff=0)[0]]


def test_rewritings_of_names_are_no_normal_forms_and_so_not_similar(
    backend: str, make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    kb = make_kb(backend, new_world(facts=(("a", "r", "b"),), names=(("a", "The Beatlesque"),)))

    assert kb.similar(["beatlesqu"])[0] == []
    assert [near.form for near in kb.similar(["the beatlesqu"])[0]] == ["the beatlesque"]


def test_similar_forms_end_at_the_cutoff_and_the_limit_and_come_closest_first(sample: Answerer) -> None:
    everything = sample.kb.similar(["harry poter"], limit=100, cutoff=40)[0]

    assert everything == sorted(everything, key=lambda near: -near.similarity)
    assert len({near.form for near in everything}) == len(everything) > 3
    assert all(40 <= near.similarity <= 100 for near in everything)
    assert sample.kb.similar(["harry poter"], limit=2, cutoff=40)[0] == everything[:2]
    assert sample.kb.similar(["harry poter"], limit=0)[0] == []
    assert sample.kb.similar(["harry poter"], cutoff=73)[0] == everything[:2]


def test_nothing_is_similar_to_nothing_nor_to_what_is_too_long(tiny: KnowledgeBase) -> None:
    assert tiny.similar([""])[0] == []
    assert tiny.similar(["one prefix of many words " * 24 + "firs"])[0] == []


def test_one_short_name_is_not_similar_to_nothing() -> None:
    assert MemoryKB([], [("a", "It")]).similar([""], cutoff=0.0) == [[]]


@pytest.mark.parametrize("typo", TYPOS)
def test_every_backend_finds_the_same_similar_names(sample: Answerer, sample_memory: Answerer, typo: str) -> None:
    assert sample.kb.similar([typo])[0] == sample_memory.kb.similar([typo])[0]


@pytest.mark.parametrize("typo", TYPOS)
def test_among_many_names_every_backend_lists_those_within_edits_alone_where_one_is_close(
    sample: Answerer, sample_memory: Answerer, monkeypatch: pytest.MonkeyPatch, typo: str
) -> None:
    monkeypatch.setattr(similarity, "MANY_NAMES", 0)
    # Another limit than that of the test before, so that no backend remembers its list.
    assert sample.kb.similar([typo], limit=19)[0] == sample_memory.kb.similar([typo], limit=19)[0]
    assert sample.kb.similar(TYPOS, limit=19, edits_only=True) == sample_memory.kb.similar(
        TYPOS, limit=19, edits_only=True
    )


def test_among_many_names_what_only_resembles_a_form_is_left_out_where_one_is_close(
    backend: str, make_kb: Callable[[str, World], Any], new_world: type[World], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = (("m.1", "Frankenstein"), ("m.2", "Frankenstein Jr"))
    kb = make_kb(backend, new_world((("m.1", "r", "m.2"),), names))
    few = [near.form for near in kb.similar(["frankenstien"], limit=19)[0]]

    monkeypatch.setattr(similarity, "MANY_NAMES", 0)

    assert few == ["frankenstein", "frankenstein jr"]
    assert [near.form for near in kb.similar(["frankenstien"])[0]] == ["frankenstein"]
    assert [near.form for near in kb.similar(["frankenstein j"])[0]] == ["frankenstein jr", "frankenstein"]
    assert [near.form for near in kb.similar(["frankenstien"], cutoff=79)[0]] == few


def test_of_equally_similar_names_that_of_the_entity_with_more_names_comes_first(
    backend: str, make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    names = (("m.1", "Carla Stone"), ("m.2", "Darla Stone"), ("m.3", "Earla Stone"))
    aliases = (("m.2", "Mrs Smith"), ("m.2", "The Novelist"), ("m.3", "Mrs Brown"))
    kb = make_kb(backend, new_world((("m.1", "r", "m.2"),), names, aliases=aliases))

    assert [near.form for near in kb.similar(["arla stone"])[0]] == ["darla stone", "earla stone", "carla stone"]
    assert [near.form for near in kb.similar(["arla stone"], limit=1)[0]] == ["darla stone"]


def test_the_near_names_of_one_entity_stand_together(
    backend: str, make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    names = (("m.1", "Garla Stone"), ("m.2", "Karla Stone"), ("m.3", "Marla Stone"))
    aliases = (("m.1", "Marla Stones"), ("m.2", "Mrs Brown"), ("m.3", "Mrs Smith"))
    kb = make_kb(backend, new_world((("m.1", "r", "m.2"),), names, aliases=aliases))

    assert [near.form for near in kb.similar(["arla stone"])[0]][:2] == ["garla stone", "marla stones"]


# words


def test_the_frequency_of_a_word_counts_distinct_normal_forms(tiny: KnowledgeBase) -> None:
    asked = ["paris", "rock", "who", "the", "dc", "!!!", "texas", "many", "zebra", "", "paris texas"]

    assert tiny.name_frequency(asked) == [2, 2, 2, 1, 1, 1, 2, 2, 0, 0, 0]
    assert tiny.name_frequency([]) == []


def test_every_backend_counts_the_same_words(sample: Answerer, sample_memory: Answerer) -> None:
    assert isinstance(sample_memory.kb, MemoryKB)

    words = sorted({word for form in sample_memory.kb.normal_forms for word in form.split(" ")})
    assert sample.kb.name_frequency(words) == sample_memory.kb.name_frequency(words)


# facts and types


def test_relations_of_unsorted_and_repeated_entities_come_in_the_order_asked(tiny: KnowledgeBase) -> None:
    asked = rows_of(tiny, "m.08acdc", "m.01paris", "m.0grock", "m.08acdc", "m.19atlantis")

    assert runs(tiny, tiny.relations_of(asked), tiny.relations) == [
        ["music.artist.genre"],
        ["location.containedby", "location.time_zone"],
        [],
        ["music.artist.genre"],
        [],
    ]


def test_types_of_unsorted_and_repeated_entities_come_in_the_order_asked(tiny: KnowledgeBase) -> None:
    asked = rows_of(tiny, "m.19atlantis", "m.08acdc", "m.01paris", "m.19atlantis")

    assert runs(tiny, tiny.types_of(asked), tiny.types) == [
        ["common.topic"],
        [],
        ["common.topic", "location.citytown"],
        ["common.topic"],
    ]


def test_fact_counts_count_distinct_facts_of_a_subject(tiny: KnowledgeBase) -> None:
    asked = rows_of(tiny, "m.08acdc", "m.01paris", "m.09unnamed", "m.08acdc", "m.19atlantis")

    assert tiny.fact_counts(asked).tolist() == [3, 2, 0, 3, 0]


def test_incoming_counts_count_distinct_facts_of_an_object(tiny: KnowledgeBase) -> None:
    counts = tiny.incoming_counts(rows_of(tiny, "m.05poland", "m.03france", "m.01paris", "m.05poland", "m.19atlantis"))

    assert counts is not None
    assert counts.tolist() == [2, 1, 0, 2, 0]


def test_no_entities_have_no_facts_types_names_or_ids(tiny: KnowledgeBase) -> None:
    nobody = np.empty(0, dtype=np.uint32)
    for grouped in (tiny.relations_of(nobody), tiny.types_of(nobody)):
        assert (grouped.starts.tolist(), grouped.values.tolist()) == ([0], [])
        assert (grouped.starts.dtype, grouped.values.dtype) == (np.int64, np.uint32)

    assert tiny.fact_counts(nobody).tolist() == []
    assert (tiny.ids(nobody), tiny.names(nobody)) == ([], [])
    assert tiny.rows([]) == []


def test_relations_and_types_are_listed_by_id(tiny: KnowledgeBase) -> None:
    assert list(tiny.relations) == sorted(tiny.relations)
    assert list(tiny.types) == ["common.topic", "location.citytown", "music.artist"]


@pytest.mark.parametrize(
    ("subject", "relation", "objects"),
    [
        ("m.08acdc", "music.artist.genre", ["m.0gblues", "m.0ghard", "m.0grock"]),
        ("m.01paris", "location.time_zone", ["m.09unnamed"]),
        ("m.11titin", "biology.gene.chromosome", ['"2"@en']),
        ("an id, with a space", "music.album.artist", ["m.07bowie"]),
        ("m.01paris", "music.artist.genre", []),
        ("m.19atlantis", "location.containedby", []),
    ],
)
def test_objects_of_a_pair(tiny: KnowledgeBase, subject: str, relation: str, objects: list[str]) -> None:
    (row,) = tiny.rows([subject])
    found_objects = tiny.objects_of([(row, list(tiny.relations).index(relation))])[0]

    assert sorted(tiny.ids(found_objects)) == objects
    assert found_objects.tolist() == sorted(found_objects.tolist())


def test_a_world_without_types_has_none(
    backend: str, make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    kb = make_kb(backend, new_world(facts=(("a", "r", "b"),), names=(("a", "Anne"),)))

    assert list(kb.types) == []
    assert kb.types_of(rows_of(kb, "b", "a")).starts.tolist() == [0, 0, 0]


# ids and names


def test_ids_and_rows_undo_each_other(tiny: KnowledgeBase, tiny_world: World) -> None:
    ids = sorted({s for s, _, _ in tiny_world.facts} | {o for _, _, o in tiny_world.facts}, reverse=True)

    assert tiny.ids(rows_of(tiny, *ids)) == ids


def test_an_unknown_id_has_no_row(tiny: KnowledgeBase) -> None:
    assert tiny.rows(["m.99stranger", "", "m.01pari", "m.01parisx", "zzz", "/m/01paris"]) == [None] * 6


def test_a_name_is_the_first_name_else_the_first_alias_else_nothing(tiny: KnowledgeBase) -> None:
    asked = rows_of(tiny, "m.16orwell", "m.10nameless", "m.06heroes", "m.16orwell", "m.08acdc")

    assert tiny.names(asked) == ["George Orwell", None, '"Heroes"', "George Orwell", "AC/DC"]


@pytest.mark.parametrize(
    ("entity", "aliases"),
    [
        ("m.01paris", ["Paris", "City of Light"]),
        ("m.02paris", ["Paris", "Paris, Texas"]),
        ("m.08acdc", ["AC/DC", "AC\\DC"]),
        ("m.09unnamed", []),
    ],
)
def test_aliases_list_names_first_each_once(tiny: KnowledgeBase, entity: str, aliases: list[str]) -> None:
    assert [name.text for name in tiny.names_of(np.array(tiny.rows([entity]), dtype=np.uint32))[0]] == aliases


def test_the_manifest_tells_counts_and_the_lengths_of_names(tiny: KnowledgeBase) -> None:
    manifest = tiny.manifest

    assert (manifest.counts["facts"].unique, manifest.counts["names"].unique) == (17, 27)
    assert manifest.statistics["relations"] == len(tiny.relations)
    assert set(manifest.lengths) >= {1, 2, 3, 121}


def test_gathered_runs_equal_a_plain_loop() -> None:
    random = np.random.default_rng(7)
    starts = np.concatenate([[0], np.cumsum(random.integers(0, 4, 30))]).astype("<i8")
    values = random.integers(0, 99, starts[-1]).astype("<u4")
    rows = random.integers(0, 30, 50).astype(np.uint32)
    looped = [values[int(starts[row]) : int(starts[row + 1])].tolist() for row in rows]

    grouped = gather(starts, values, rows)

    assert [grouped.values[a:b].tolist() for a, b in pairwise(grouped.starts)] == looped


# random worlds

NAMES = [
    "Jaws", "jaws", "JAWS", "The Who", "Who", "It", "!!!", "?", "C", "C++", "1984", "1985", "O'Neil", "oneil", "Łódź",
    "Lodz", "Björk", "Emma", "Emma (film)", "Rio, Ana", "AC/DC", "Syrj00e4", "東京", "Solar", "Solari", "a \"b\" \\c",
]  # fmt: skip
WORDS = ["who", "wrote", "genre", "is", "emmma", "solarr", "jaw", "the", "?", "..", "oneil's", "bjork", "1986", "tokyo"]
IDS = ["m.0a", "m.0b", "m.0c", "m.0d", "e f", "Z", "é", "Q42", "\U0001f600"]
RELATIONS = ["book.author", "music.genre", "film.directed_by", "place.a..b"]

entity, relation, name = st.sampled_from(IDS), st.sampled_from(RELATIONS), st.sampled_from(NAMES)
facts = st.lists(st.tuples(entity, relation, entity), min_size=1, max_size=14)
named = st.lists(st.tuples(entity, name), min_size=1, max_size=12)
typed = st.lists(st.tuples(entity, st.sampled_from(["t.a", "t.b", "t.c"])), max_size=5)
spoken = st.lists(st.tuples(entity, name, st.sampled_from(["en", "de", "fr"])), max_size=6)
described = st.dictionaries(entity, st.sampled_from(["a film", "a name"]), max_size=3)
words = st.lists(st.sampled_from(NAMES + WORDS), min_size=1, max_size=5)


@pytest.mark.parametrize("other", ["embedded", "elasticsearch"])
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    facts=facts, names=named, aliases=named, types=typed, questions=st.lists(words, min_size=3, max_size=5),
    spoken=spoken, spoken_aliases=spoken, described=described, language=st.sampled_from(["en,de,fr", "fr,de,en"]),
)  # fmt: skip
def test_in_any_world_a_backend_agrees_with_the_reference(
    make_kb: Callable[[str, World], Any],
    new_world: type[World],
    other: str,
    facts: list[tuple[str, str, str]],
    names: list[tuple[str, str]],
    aliases: list[tuple[str, str]],
    types: list[tuple[str, str]],
    questions: list[str],
    spoken: list[tuple[str, str, str]],
    spoken_aliases: list[tuple[str, str, str]],
    described: dict[str, str],
    language: str,
) -> None:
    names.append((facts[0][0], "Jaws"))
    world = new_world(
        tuple(facts), tuple(names), tuple(types), tuple(aliases), tuple(described.items()), tuple(spoken),
        tuple(spoken_aliases), language,
    )  # fmt: skip
    kb, reference = make_kb(other, world), make_kb("memory", world)
    assert account(kb) == account(reference)

    asked = [" ".join(question) for question in questions]
    assert answers(kb, asked) == answers(reference, asked)


def account(kb: KnowledgeBase) -> dict[str, Any]:
    """Tell all that a knowledge base holds, by ids."""
    known = [one for one in IDS if kb.rows([one]) != [None]]
    rows = rows_of(kb, *known)
    forms = sorted({normal_form(text) for text in NAMES + WORDS} | {"who", "neil o", "rio ana", "ana rio", "syrja"})
    return {
        "ids": kb.ids(rows),
        "names": kb.names(rows),
        "all names": kb.names_of(rows),
        "relations": (list(kb.relations), runs(kb, kb.relations_of(rows), kb.relations)),
        "types": (list(kb.types), runs(kb, kb.types_of(rows), kb.types)),
        "objects": [
            [set(kb.ids(objects)) for objects in kb.objects_of([(row, at) for at in range(len(kb.relations))])]
            for row in rows.tolist()
        ],
        "counts": kb.fact_counts(rows).tolist(),
        "incoming": [
            [
                (kb.relations[relation], kb.ids(np.array([subject])))
                for relation, subject in zip(facts.relations, facts.subjects, strict=True)
            ]
            for facts in kb.subjects_of(rows)
        ],
        "incoming counts": kb.incoming_counts(rows).tolist(),
        "descriptions": kb.descriptions(rows),
        "languages": kb.manifest.languages,
        "roles of names": [
            [
                role.tolist()
                for role in kb.parts_of([match for matches in kb.lookup(forms).values() for match in matches], tags)
            ]
            for tags in (frozenset({"de"}), frozenset({"en", "fr"}), frozenset({"und"}))
        ],
        "lookup": found(kb, *forms),
        "frequency": kb.name_frequency(sorted({word for form in forms for word in form.split(" ")})),
        "similar": [kb.similar([form])[0] for form in forms],
        "lengths": kb.manifest.lengths,
        "forms": kb.manifest.statistics["forms"],
    }


def answers(kb: KnowledgeBase, questions: list[str]) -> list[dict[str, Any]]:
    """Answer questions under every pruner, times left out."""
    answerer = Answerer(kb)
    results = [answerer.query(text, pruning=pruner, top=None) for text in questions for pruner in UNGUIDED]
    return [result.to_json() | {"milliseconds": None} for result in results]


@pytest.mark.parametrize("backend", ["memory", "embedded"])
def test_forms_are_listed_by_their_beginning(
    make_kb: Callable[[str, World], Any], tiny_world: World, backend: str
) -> None:
    kb = make_kb(backend, tiny_world)

    assert kb.forms_with_prefix("par", limit=5) == ["paris", "paris texas"]
    assert kb.forms_with_prefix("par", limit=1) == ["paris"]
    assert kb.forms_with_prefix("zzz", limit=5) == []
