"""What a build derives from the rows of all sources: names of units and relations, lent labels, linked cells."""

from pathlib import Path
from typing import Any

import pytest

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.errors import MemoryExhausted
from kbtools.indexers.building import staging
from kbtools.indexers.building.derived_rows import lend_labels, link_cells, name_relations, name_units, widen_types
from kbtools.indexers.building.staging import Staging
from kbtools.indexers.readers.batches import Rows

UNIT = "http://www.wikidata.org/entity/Q11573"


def staged(folder: Path, **rows: Any) -> Staging:
    """Return work tables with these rows by kind."""
    tables, read = Staging(folder, threads=1), Rows(**rows)
    read.mark(1)
    for batch in read.batches():
        tables.add("relation_names" if batch.kind == "relations" else batch.kind, batch.table)
    return tables


def column(tables: Staging, query: str) -> list[Any]:
    return [value for (value,) in tables.connection.execute(query).fetchall()]


@pytest.mark.parametrize(
    ("names", "labels", "shown"),
    [
        ([], [], f'"5"^^<{UNIT}>'),
        ([("Q11573", 0, "metre", "en"), ("Q11573", 0, "m", "en")], [], '"5 m"'),
        ([("Q11573", 1, "m", "de"), ("Q11573", 0, "metre", "en")], [], '"5 metre"'),
        ([("Q1", 0, "x", "en")], [("Q11573", 0, 'a "foot" \\ ft', "en")], '"5 a \\"foot\\" \\\\ ft"'),
    ],
)
def test_a_quantity_has_the_shortest_name_of_its_unit(
    tmp_path: Path, names: list[Any], labels: list[Any], shown: str
) -> None:
    facts = [("Q2", "P1", f'"5"^^<{UNIT}>'), ("Q2", "P2", '"5"^^<http://a/unit>'), ("Q2", "P3", "Q4")]
    with staged(tmp_path, facts=facts, names=names, labels=labels) as tables:
        name_units(tables)

        ids = column(tables, "SELECT id FROM fact_ids WHERE NOT is_subject ORDER BY number")

    assert ids == ['"5 Q11573"' if not names and not labels else shown, '"5"^^<http://a/unit>', "Q4"]


def test_labels_are_lent_to_the_nameless_of_facts_alone(tmp_path: Path) -> None:
    texts = [(entity, 0, f"label of {entity}", "en") for entity in ("Q1", "Q2", "Q3", "P5")]
    facts = [("Q1", "r", "Q2"), ("Q1", "r", "P5")]
    with staged(tmp_path, facts=facts, names=[("Q1", 0, "Ada", "en")], labels=texts) as tables:
        lend_labels(tables)

        assert sorted(column(tables, "SELECT text FROM names")) == ["Ada", "label of Q2"]


def test_superclasses_of_every_step_are_types(tmp_path: Path) -> None:
    subclasses = [("a", "b"), ("b", "c"), ("c", "a"), ("x", "y")]
    with staged(tmp_path, types=[("Q1", "a"), ("Q1", "a"), ("Q2", "c"), ("Q3", "z")], subclasses=subclasses) as tables:
        widen_types(tables)

        kinds = [column(tables, f"SELECT type FROM types WHERE entity = '{entity}'") for entity in ("Q1", "Q2", "Q3")]

    assert list(map(sorted, kinds)) == [["a", "b", "c"], ["a", "b", "c"], ["z"]]


@pytest.mark.parametrize(
    ("relations", "names", "shown"),
    [
        ([("r", 0, "the long name", "en")], [("r", 0, "short", "en")], "the long name"),
        ([("r", 0, "longer", "en"), ("r", 0, "long", "en")], [], "long"),
        ([("r", 1, "kurz", "de"), ("r", 0, "longer", "en")], [], {"en": "longer", "de": "kurz"}),
        ([], [("r", 0, "bb", "en"), ("r", 0, "aa", "en")], "aa"),
        ([("r", 0, " two \n lines ", "en")], [], "two lines"),
        ([("s", 0, "other", "en")], [], None),
    ],
)
def test_a_relation_is_called_by_its_file_then_by_the_shortest_name(
    tmp_path: Path, relations: list[Any], names: list[Any], shown: Any
) -> None:
    with staged(tmp_path, facts=[("Q1", "r", "Q2")], relations=relations, names=names) as tables:
        name_relations(tables)

        (text,) = column(tables, "SELECT text FROM relation_labels") or [None]

    by_tag = dict(part.split("\x1f") for part in text.split("\x1e")) if text and "\x1f" in text else text
    assert by_tag == shown
    assert list(by_tag) == list(shown) if isinstance(shown, dict) else True


@pytest.mark.parametrize(
    ("cell", "kind", "spelt"),
    [
        ("Q2", "text", "Q2"),
        ("Q2", "name", "Q2"),
        ("7", "key", "7"),
        ("7", "number", '"7"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
        ("ada", "name", "Q2"),
        ("ADA", "name", "Q2"),
        ("ada", "text", '"ada"'),
        ("ada", "key", '"ada"'),
        ("Bo", "name", '"Bo"'),
        ("old", "key", "old"),
        ("T", "text", "T"),
        ("2001-02-03", "date", '"2001-02-03"^^<http://www.w3.org/2001/XMLSchema#date>'),
        ("2001-02-03T04:05", "date", '"2001-02-03T04:05"^^<http://www.w3.org/2001/XMLSchema#dateTime>'),
        ("http://a", "url", '"http://a"^^<http://www.w3.org/2001/XMLSchema#anyURI>'),
    ],
)
def test_a_cell_is_the_entity_whose_id_or_only_name_it_is(tmp_path: Path, cell: str, kind: str, spelt: str) -> None:
    names = [("Q2", 0, "Ada", ""), ("7", 0, "Seven", ""), ("Q3", 0, "Bo", ""), ("Q4", 0, "bo", "")]
    facts = [("Q1", "r", f'"{cell}"^^<cell:{kind}>')]
    with staged(tmp_path, facts=facts, names=names, types=[("T", "t")], redirects=[("old", "Q2")]) as tables:
        link_cells(tables)

        assert column(tables, "SELECT id FROM fact_ids WHERE NOT is_subject") == [spelt]


def test_half_of_the_free_memory_is_advised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "free_memory", lambda: 100_000_000)
    monkeypatch.setattr("kbtools.free_memory.free_memory", lambda: 100_000_000)
    with Staging(tmp_path, threads=1, memory="400MB") as tables:
        tables.require_memory(99_000_000)
        with pytest.raises(MemoryExhausted, match="--memory 50MB fits") as raised:
            tables.require_memory(10**12)
    assert 399_000_000 < raised.value.facts["needed"] < 401_000_000


def test_names_are_names_or_aliases_in_each_language(tmp_path: Path) -> None:
    with kbtools.index(
        out=tmp_path / "x.kb",
        facts=[("Q1", "r", "Q2")],
        names=[("Q1", "Ada", "en"), ("Q1", "Xa", "de"), ("Q1", "Aa", "fr")],
        aliases=[("Q1", "Ada", "en"), ("Q1", "Ada", "de"), ("Q1", "Bo", "en")],
        language="en,de,fr",
    ) as answerer:
        names, ranked = spoken(answerer)

    assert names == [("Ada", ("en",), ("de",)), ("Xa", ("de",), ()), ("Aa", ("fr",), ()), ("Bo", (), ("en",))]
    assert ranked == [0, 1, 254, 255]


def spoken(answerer: Answerer) -> tuple[list[tuple[str, tuple[str, ...], tuple[str, ...]]], list[int]]:
    kb: Any = answerer.kb
    rows = kb.entity_rows()[:1]
    return [tuple(name) for name in kb.names_of(rows)[0]], [rank for _, rank in kb.ranked_names(rows)[0]]
