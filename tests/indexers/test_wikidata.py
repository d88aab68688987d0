"""Wikidata's dumps: values, ranks, labels, filters, closure, bad input, and the truthy N-Triples beside the JSON."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.errors import NothingBuilt, TooManyBadLines, WrongFormat
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.readers import wikidata
from kbtools.indexers.readers.batches import ALIAS, Block
from kbtools.indexers.readers.reading import Keep, Reading, ReadOptions, Source
from kbtools.indexers.readers.sources import BLOCK
from kbtools.indexers.readers.wikidata import are_full
from kbtools.indexers.readers.wikidata_entities import EntityParser
from kbtools.indexers.readers.wikidata_values import SPELLINGS, WikidataValue, spell_address, spell_typed
from kbtools.kb.ids import literal_text

Rows = dict[str, list[tuple[Any, ...]]]
XSD = "http://www.w3.org/2001/XMLSchema#"
WD = "http://www.wikidata.org/"


def item(entity_id: str = "Q1", label: str | None = "One", **fields: Any) -> dict[str, Any]:
    labels = {"en": {"language": "en", "value": label}} if label else {}
    return {"type": "item", "id": entity_id, "labels": labels, **fields}


def claim(value: Any, kind: str = "wikibase-entityid", rank: str = "normal") -> dict[str, Any]:
    value = {"id": value} if kind == "wikibase-entityid" else value
    return {"rank": rank, "mainsnak": {"snaktype": "value", "datavalue": {"type": kind, "value": value}}}


def dump(path: Path, *lines: dict[str, Any] | str, end: str = "\n]\n") -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("[\n" + ",\n".join(texts) + end, encoding="utf-8", errors="surrogatepass")
    return path


def read(path: Path, **options: Any) -> tuple[Rows, Reading]:
    reading = Reading(Source(path, "any", format="wikidata"), ReadOptions(**{"max_bad": 1.0, **options}))
    rows: Rows = {}
    for batch in reading.batches():
        rows.setdefault(batch.kind, []).extend(tuple(row.values()) for row in batch.table.to_pylist())
    return rows, reading


def skipped(reading: Reading) -> dict[str, tuple[int, bool]]:
    return {kind: (skip.count, skip.bad) for kind, skip in reading.skips.kinds.items()}


def build_dump(path: Path, out: Path, **options: Any) -> EmbeddedKB:
    build([Source(path, "any", format="wikidata")], out, options=ReadOptions(**options), watch=BuildProgress())
    return EmbeddedKB(out)


def facts_of(kb: EmbeddedKB) -> set[tuple[str, str, str]]:
    ids = list(kb.entity_ids)
    rows = kb.facts_of(kb.entity_rows()).tolist()
    return {(ids[subject], kb.relations[relation], ids[target]) for subject, relation, target in rows}


def types_of(kb: EmbeddedKB, entity_id: str) -> set[str]:
    return {kb.types[number] for number in kb.types_of(np.array(kb.rows([entity_id]), dtype=np.uint32)).values}


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("string", 'a "b" \\ c\nd', 'a "b" \\ c\nd'),
        ("monolingualtext", {"text": "salut", "language": "fr"}, "salut"),
        ("quantity", {"amount": "+3", "unit": "1"}, "3"),
        ("quantity", {"amount": "-3.50", "unit": "1"}, "-3.50"),
        ("time", {"time": "+1952-03-11T00:00:00Z", "precision": 11}, "1952-03-11"),
        ("time", {"time": "+1952-03-00T00:00:00Z", "precision": 10}, "1952-03"),
        ("time", {"time": "+1952-00-00T00:00:00Z", "precision": 9}, "1952"),
        ("time", {"time": "-0044-03-15T00:00:00Z", "precision": 11}, "-0044-03-15"),
        ("time", {"time": "+1957-00-00T00:00:00Z", "precision": 8}, "1950s"),
        ("time", {"time": "+1901-00-00T00:00:00Z", "precision": 7}, "20th century"),
        ("time", {"time": "-0500-00-00T00:00:00Z", "precision": 7}, "5th century BCE"),
        ("time", {"time": "+1801-00-00T00:00:00Z", "precision": 6}, "2nd millennium"),
        ("time", {"time": "-13798000000-00-00T00:00:00Z", "precision": 3}, "about 13,798,000,000 years BCE"),
        ("globecoordinate", {"latitude": 48.85, "longitude": -2, "globe": f"{WD}entity/Q2"}, "48.85, -2"),
        ("time", {"time": "+1800-00-00T00:00:00Z", "precision": 5}, "about 1,800 years"),
        ("time", {"time": "+1789-00-00T00:00:00Z", "precision": 8}, "1780s"),
        ("time", {"time": "-0044-00-00T00:00:00Z", "precision": 8}, "40s BCE"),
        ("time", {"time": "+2100-00-00T00:00:00Z", "precision": 7}, "21st century"),
        ("time", {"time": "+1200-00-00T00:00:00Z", "precision": 7}, "12th century"),
        ("time", {"time": "+2300-00-00T00:00:00Z", "precision": 7}, "23rd century"),
        ("time", {"time": "+11150-00-00T00:00:00Z", "precision": 7}, "112th century"),
        ("time", {"time": "+1000-00-00T00:00:00Z", "precision": 6}, "1st millennium"),
        ("time", {"time": "+1952-03-11T10:00:00Z", "precision": 14}, "1952-03-11"),
        ("time", {"time": "+1952-03-00T00:00:00Z", "precision": 11}, "1952-03"),
        ("time", {"time": "+1952-00-00T00:00:00Z", "precision": 10}, "1952"),
        ("time", {"time": "+00000000476-09-04T00:00:00Z", "precision": 9}, "0476"),
        ("quantity", {"amount": "+10", "unit": f"{WD}entity/Q11573"}, "10"),
        ("globecoordinate", {"latitude": 1.5, "longitude": 2.25, "globe": f"{WD}entity/Q111"}, "1.5, 2.25"),
        ("wikibase-entityid", {"id": "Q42"}, "Q42"),
        ("wikibase-entityid", {"entity-type": "item", "numeric-id": 42}, "Q42"),
    ],
)
def test_a_value_prints_well(kind: str, value: Any, text: str) -> None:
    assert literal_text(SPELLINGS[kind](msgspec.convert(value, WikidataValue | str))) == text


@pytest.mark.parametrize(
    ("text", "datatype", "spelt"),
    [
        ("1952-03-11T00:00:00Z", f"{XSD}dateTime", f'"1952-03-11"^^<{XSD}date>'),
        ("-0043-03-15T00:00:00Z", f"{XSD}dateTime", f'"-0044-03-15"^^<{XSD}date>'),
        ("0000-03-15T00:00:00Z", f"{XSD}dateTime", f'"-0001-03-15"^^<{XSD}date>'),
        ("+3.50", f"{XSD}decimal", f'"3.50"^^<{XSD}decimal>'),
        ("Point(2.25 48.5)", "http://a#wktLiteral", '"48.5, 2.25"'),
        (f"<{WD}entity/Q111> point(2 48.5)", "http://a#wktLiteral", f'"48.5, 2"^^<{WD}entity/Q111>'),
        ("Point(2 48)", f"{XSD}string", '"Point(2 48)"'),
        ('a "b"', f"{XSD}string", r'"a \"b\""'),
    ],
)
def test_a_literal_of_rdf_is_spelt_as_in_json(text: str, datatype: str, spelt: str) -> None:
    assert spell_typed(text, datatype) == spelt


@pytest.mark.parametrize(
    ("address", "spelt"),
    [
        ("http://commons.wikimedia.org/wiki/Special:FilePath/A%20b_c.jpg", '"A b c.jpg"'),
        ("http://commons.wikimedia.org/data/main/Data:X.map", '"Data:X.map"'),
        ("https://a.example/b_c%20d", '"https://a.example/b_c%20d"'),
    ],
)
def test_an_address_is_spelt_as_in_json(address: str, spelt: str) -> None:
    assert spell_address(address) == spelt


def test_an_item_gives_names_facts_and_types(tmp_path: Path) -> None:
    adams = item(
        "Q42", "Douglas Adams",
        aliases={"en": [{"language": "en", "value": "DNA"}], "fr": [{"language": "fr", "value": "ADN"}]},
        claims={"P31": [claim("Q5")], "P19": [claim("Q350")]},
    )  # fmt: skip
    rows, reading = read(dump(tmp_path / "d.json", adams))
    assert rows == {
        "names": [("Q42", 0, "Douglas Adams", "en"), ("Q42", ALIAS, "DNA", "en")],
        "facts": [("Q42", "P31", "Q5"), ("Q42", "P19", "Q350")],
        "types": [("Q42", "Q5")],
    }
    assert (reading.skips.lines, skipped(reading)) == (3, {})


@pytest.mark.parametrize(
    ("ranks", "kept"),
    [
        (["normal", "preferred", "deprecated", "preferred"], ["Q1", "Q3"]),
        (["normal", "deprecated", "normal"], ["Q0", "Q2"]),
        (["deprecated"], []),
        (["normal"], ["Q0"]),
    ],
)
def test_the_best_rank_counts(tmp_path: Path, ranks: list[str], kept: list[str]) -> None:
    claims = {"P19": [claim(f"Q{place}", rank=rank) for place, rank in enumerate(ranks)]}
    rows, _ = read(dump(tmp_path / "d.json", item("Q7", claims=claims)))
    assert [target for _, _, target in rows.get("facts", [])] == kept


def test_names_are_in_the_languages_asked_for_in_their_order(tmp_path: Path) -> None:
    labels = {tag: {"language": tag, "value": tag.upper()} for tag in ("fr", "mul", "de", "en-gb")}
    path = dump(tmp_path / "d.json", {"type": "item", "id": "Q1", "labels": labels})
    rows, _ = read(path, language="de,en,mul")
    assert sorted(rows["names"]) == [("Q1", 0, "DE", "de"), ("Q1", 1, "EN-GB", "en-gb"), ("Q1", 2, "MUL", "mul")]


def test_a_property_names_relations_and_is_no_entity(sample: EmbeddedKB) -> None:
    names = dict(zip(sample.relations, sample.relation_names, strict=True))
    assert (names["P19"], names["P569"]) == ("place of birth", "date of birth")
    assert [entity_id for entity_id in sample.entity_ids if entity_id.startswith("P")] == []


@pytest.fixture(scope="module")
def sample(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> EmbeddedKB:
    return build_dump(examples / "sample.wikidata.json", tmp_path_factory.mktemp("wikidata") / "s.kb")


def test_a_quantity_shows_the_name_of_its_unit_or_its_id(sample: EmbeddedKB) -> None:
    heights = {fact for fact in facts_of(sample) if fact[0] == "Q903004"}
    assert heights == {
        ("Q903004", "P2044", '"-1200.50 metre"'),
        ("Q903004", "P2048", '"3 Q903999"'),
        ("Q903004", "P625", '"-10, 20.5 Q405"'),
    }


def test_a_merged_item_is_what_it_was_merged_into(sample: EmbeddedKB) -> None:
    assert ("Q903011", "P19", "Q900103") in facts_of(sample)
    assert sample.rows(["Q903012"]) == sample.rows(["Q900103"])


def test_values_without_one_and_of_unknown_kinds_are_counted(examples: Path) -> None:
    _, reading = read(examples / "sample.wikidata.json")
    assert skipped(reading) == {
        "statement of somevalue": (1, False),
        "statement of novalue": (1, False),
        "entity without a label in 'en,mul'": (2, False),
        "value of the unknown kind 'hologram', kept as text": (1, False),
    }


def test_the_sample_is_what_its_script_writes(examples: Path) -> None:
    script = examples.parent / "benchmarks" / "make_wikidata_sample.py"
    code = compile(script.read_text(), script.stem, "exec")
    names: dict[str, Any] = {"__name__": "made"}
    exec(code, names)
    written = (examples / "sample.wikidata.json").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line.removesuffix(",")) for line in written[1:-1]] == names["entities"]()


FILTERED = (
    item("Q1", "Kept", claims={"P31": [claim("Q5")], "P19": [claim("Q2")]}, sitelinks={"enwiki": {}, "dewiki": {}}),
    item("Q2", "Birthplace", claims={"P31": [claim("Q515")]}, sitelinks={"enwiki": {}}),
    item("Q3", "Nobody names it", claims={"P31": [claim("Q515")], "P17": [claim("Q4")]}, sitelinks=[]),
)


@pytest.mark.parametrize(
    ("keep", "reason"),
    [
        (Keep(sitelinks=2), "entity with fewer than 2 sitelinks"),
        (Keep(types=frozenset({"Q5", "Q6"})), "entity of another type than --keep-type"),
        (Keep(ids=frozenset({"Q1"})), "entity that is not listed in --keep-ids"),
    ],
)
def test_what_a_filter_leaves_out_still_names_what_facts_speak_of(tmp_path: Path, keep: Keep, reason: str) -> None:
    path = dump(tmp_path / "d.json", *FILTERED)
    _, reading = read(path, keep=keep)
    kb = build_dump(path, tmp_path / "d.kb", keep=keep)
    ids = list(kb.entity_ids)
    names = kb.names(np.arange(len(ids), dtype=np.uint32))
    named = {entity_id: name for entity_id, name in zip(ids, names, strict=True) if name}
    assert named == {"Q1": "Kept", "Q2": "Birthplace"}
    assert facts_of(kb) == {("Q1", "P31", "Q5"), ("Q1", "P19", "Q2")}
    assert list(kb.types) == ["Q5"]
    assert skipped(reading) == {reason: (2, False)}


def test_sitelinks_count_for_an_entity_whatever_it_is_called(tmp_path: Path) -> None:
    rows, _ = read(dump(tmp_path / "d.json", *FILTERED))
    assert rows["counts"] == [("Q1", 0, 2), ("Q2", 0, 1)]


def test_properties_can_be_chosen_and_types_stay(tmp_path: Path) -> None:
    rows, _ = read(dump(tmp_path / "d.json", FILTERED[0]), keep=Keep(properties=frozenset({"P19"})))
    assert rows["facts"] == [("Q1", "P19", "Q2")]
    assert rows["types"] == [("Q1", "Q5")]


def test_closure_gives_the_superclasses_of_types_in_circles_too(tmp_path: Path) -> None:
    path = dump(
        tmp_path / "d.json",
        item("Q1", claims={"P31": [claim("Q10")]}),
        item("Q10", "city", claims={"P279": [claim("Q11")]}),
        item("Q11", "settlement", claims={"P279": [claim("Q10"), claim("Q12")]}),
    )
    plain, closed = build_dump(path, tmp_path / "a.kb"), build_dump(path, tmp_path / "b.kb", closure=True)
    assert types_of(closed, "Q1") == {"Q10", "Q11", "Q12"}
    assert types_of(plain, "Q1") == {"Q10"}


BAD: dict[str, tuple[str, str]] = {
    "invalid JSON": ('{"type": "item", "id": "Q2", "labels": {"en": {"lang', "a line that is not JSON"),
    "not a Wikidata entity": ('{"type": "item", "labels": {}}', "an entity without an id"),
    "claim without a value": (
        '{"type": "item", "id": "Q2", "labels": {"en": {"value": "Two"}}, '
        '"claims": {"P19": [{"mainsnak": {"snaktype": "value"}, "rank": "normal"}]}}',
        "a claim without a value",
    ),
    "id that repeats": ('{"type": "item", "id": "Q1", "labels": {"en": {"value": "Again"}}}', "an id that repeats"),
    "redirect loop": (
        '{"entity": "Q8", "redirect": "Q9"},\n{"entity": "Q9", "redirect": "Q8"}',
        "a redirect that leads back",
    ),
    "NUL byte": ('{"type": "item", "id": "Q2", "labels": {"en": {"value": "a\\u0000"}}}', "no text either"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_bad_is_counted_and_costs_no_other_row(tmp_path: Path, kind: str) -> None:
    good = item("Q1", claims={"P19": [claim("Q5")]})
    rows, reading = read(dump(tmp_path / "d.json", good, BAD[kind][0], item("Q3", "Three")))
    assert skipped(reading) == {kind: (1, True)}
    assert f"{tmp_path / 'd.json'}:{4 if kind == 'redirect loop' else 3}: " in reading.skips.kinds[kind].example
    assert ("Q1", "P19", "Q5") in rows["facts"]
    assert ("Q3", 0, "Three", "en") in rows["names"]


def test_a_line_with_half_a_surrogate_pair_is_no_json(tmp_path: Path) -> None:
    half = '{"type": "item", "id": "Q2", "labels": {"en": {"value": "\\ud800"}}}'
    rows, reading = read(dump(tmp_path / "d.json", item("Q1", "One"), half))
    assert skipped(reading) == {"invalid JSON": (1, True)}
    assert rows["names"] == [("Q1", 0, "One", "en")]


def test_a_value_of_an_unknown_kind_is_kept_whole(tmp_path: Path) -> None:
    first, second = ({"id": "x", "colour": [colour]} for colour in ("red", "blue"))
    claims = {"P10": [claim(value, "hologram") for value in (first, second)]}
    rows, _ = read(dump(tmp_path / "d.json", item("Q1", claims=claims)))
    assert [json.loads(literal_text(target)) for _, _, target in rows["facts"]] == [first, second]


@pytest.mark.parametrize(
    "datavalue",
    [
        {"type": "hologram"},
        {"value": "no type"},
        {"type": "wikibase-entityid", "value": {"id": 42}},
        {"type": "wikibase-entityid", "value": "Q42"},
        {"type": "string", "value": {"text": "salut"}},
        {"type": "string", "value": " "},
        {"type": "time", "value": {"time": "+1952-03-11T00:00:00Z"}},
        {"type": "quantity", "value": {"amount": 3, "unit": "1"}},
        {"type": "monolingualtext", "value": {"text": "salut"}},
        {"type": "globecoordinate", "value": {"latitude": 48.85, "globe": None}},
    ],
)
def test_a_claim_without_a_part_of_its_value_is_counted_and_the_others_stay(
    tmp_path: Path, datavalue: dict[str, Any]
) -> None:
    broken = {"rank": "normal", "mainsnak": {"snaktype": "value", "datavalue": datavalue}}
    rows, reading = read(dump(tmp_path / "d.json", item("Q1", claims={"P19": [broken, claim("Q5")]})))
    assert skipped(reading) == {"claim without a value": (1, True)}
    assert rows["facts"] == [("Q1", "P19", "Q5")]


@pytest.mark.parametrize("kind", BAD)
def test_too_much_that_is_bad_is_refused_and_nothing_written(tmp_path: Path, kind: str) -> None:
    path = dump(tmp_path / "d.json", item("Q1", claims={"P19": [claim("Q5")]}), BAD[kind][0])
    with pytest.raises(TooManyBadLines, match="--max-bad"):
        build_dump(path, tmp_path / "d.kb", max_bad=0.1)
    assert sorted(child.name for child in tmp_path.iterdir()) == ["d.json"]


@pytest.mark.parametrize(
    ("end", "kinds"),
    [
        ("", {"array without its end": (1, True)}),
        (',\n{"type": "item", "id": "Q2", "lab', {"invalid JSON": (1, True), "array without its end": (1, True)}),
        (",\n]", {}),
        ("]", {}),
    ],
)
def test_a_dump_that_is_cut_is_told_from_one_that_ends(
    tmp_path: Path, end: str, kinds: dict[str, tuple[int, bool]]
) -> None:
    rows, reading = read(dump(tmp_path / "d.json", item(claims={"P19": [claim("Q5")]}), end=end))
    assert skipped(reading) == kinds
    assert rows["facts"] == [("Q1", "P19", "Q5")]


@pytest.mark.parametrize("end", ["\n", "\n]\n"])
def test_lines_without_an_array_around_them_are_read(tmp_path: Path, end: str) -> None:
    (tmp_path / "d.json").write_text(json.dumps(item()) + "\n" + json.dumps(item("Q2", "Two")) + end)
    rows, reading = read(tmp_path / "d.json")
    assert (len(rows["names"]), skipped(reading)) == (2, {})


def test_lexemes_and_empty_arrays_are_no_damage(tmp_path: Path) -> None:
    bare = item("Q1", None, labels=[], aliases=[], claims=[], sitelinks=[])
    lexeme = {"type": "lexeme", "id": "L7", "lemmas": {}}
    _, reading = read(dump(tmp_path / "d.json", bare, lexeme))
    assert reading.skips.bad == 0


@pytest.mark.parametrize("jobs", [1, 2])
def test_many_processes_read_what_one_does(monkeypatch: pytest.MonkeyPatch, examples: Path, jobs: int) -> None:
    monkeypatch.setattr("kbtools.processes.WORTHWHILE", 1)
    monkeypatch.setattr(wikidata, "are_full", bool)
    source, options = Source(examples / "sample.wikidata.json", "any", format="wikidata"), ReadOptions(jobs=jobs)
    reading = Reading(source, options, block=50_000)
    rows = [row for batch in reading.batches() if batch.kind == "facts" for row in batch.table.to_pylist()]
    parsed = EntityParser("d", options).parse(Block(source.path.read_bytes(), 1))
    whole = [row for batch in parsed.batches if batch.kind == "facts" for row in batch.table.to_pylist()]
    assert rows == whole
    assert reading.skips.lines == parsed.skips.lines


@given(st.lists(st.lists(st.integers(-70_000, 140_000), max_size=5), max_size=4))
def test_numbers_seen_before_are_those_of_a_set_in_a_byte_each(blocks: list[list[int]]) -> None:
    seen, before = wikidata._SeenNumbers(), set[int]()
    for numbers in blocks:
        repeated = [number in before or number in numbers[:place] for place, number in enumerate(numbers)]
        assert seen.add(np.array(numbers, dtype=np.int64)).tolist() == repeated
        before.update(numbers)
    assert len(seen.chunks) == len({number >> 16 for number in before})


def test_blocks_a_line_short_of_full_are_worth_processes() -> None:
    full, small = Block(b"x" * (BLOCK - 1), 1), Block(b"x" * 1_000, 1)

    assert are_full([full] * 3 + [small])
    assert not are_full([small] * 4)


SITELINKS = "http://wikiba.se/ontology#sitelinks"
LABELS = ("www.w3.org/2000/01/rdf-schema#label", "www.w3.org/2004/02/skos/core#prefLabel", "schema.org/name")


def truthy(entity: dict[str, Any]) -> list[str]:
    """Write an entity of the sample as Wikibase's export of RDF does."""
    if "redirect" in entity:
        same = "<http://www.w3.org/2002/07/owl#sameAs>"
        return [f"<{WD}entity/{entity['entity']}> {same} <{WD}entity/{entity['redirect']}> ."]
    subject, lines = f"<{WD}entity/{entity['id']}>", []
    lines.append(f'{subject} <{SITELINKS}> "{len(entity.get("sitelinks") or ())}"^^<{XSD}integer> .')
    for tag, label in (entity["labels"] or {}).items():
        lines += [f'{subject} <http://{predicate}> "{label["value"]}"@{tag} .' for predicate in LABELS]
    for tag, described in (entity.get("descriptions") or {}).items():
        lines.append(f'{subject} <http://schema.org/description> "{described["value"]}"@{tag} .')
    for tag, aliases in (entity["aliases"] or {}).items():
        lines += [
            f'{subject} <http://www.w3.org/2004/02/skos/core#altLabel> "{alias["value"]}"@{tag} .' for alias in aliases
        ]
    for relation, statements in (entity["claims"] or {}).items():
        preferred = [one for one in statements if one["rank"] == "preferred"]
        for statement in preferred or [one for one in statements if one["rank"] == "normal"]:
            target = exported(statement["mainsnak"])
            lines.append(f"{subject} <{WD}prop/direct/{relation}> {target} .")
            lines.append(f"{subject} <{WD}prop/{relation}> <{WD}entity/statement/x> .")
    return lines


def exported(snak: dict[str, Any]) -> str:
    """Write a value as Wikibase's export of RDF does."""
    if snak["snaktype"] != "value":
        return "_:genid1"
    kind, value = snak["datavalue"]["type"], snak["datavalue"]["value"]
    if snak.get("datatype") in ("url", "commonsMedia"):
        file = f"http://commons.wikimedia.org/wiki/Special:FilePath/{quote(value)}"
        return f"<{file if snak['datatype'] == 'commonsMedia' else value}>"
    match kind:
        case "wikibase-entityid":
            return f"<{WD}entity/{value['id']}>"
        case "time":
            year, rest = int(value["time"][:5]), value["time"][5:]
            return f'"{year + 1 if year < 0 else year:05d}{rest}"^^<{XSD}dateTime>'.replace('"0', '"')
        case "quantity":
            return f'"{value["amount"]}"^^<{XSD}decimal>'
        case "globecoordinate":
            globe = value["globe"]
            at = "" if globe.endswith("/Q2") else f"<{globe}> "
            point = f"{at}Point({value['longitude']} {value['latitude']})"
            return f'"{point}"^^<http://www.opengis.net/ont/geosparql#wktLiteral>'
        case "monolingualtext":
            return f"{json.dumps(value['text'])}@{value['language']}"
    return json.dumps(value)


def test_the_truthy_dump_gives_the_same_knowledge_base(examples: Path, tmp_path: Path) -> None:
    """Left out of the sample is what truthy triples do not hold: units, precision of times, kinds of tomorrow."""
    lines = (examples / "sample.wikidata.json").read_text(encoding="utf-8").splitlines()[1:-1]
    entities = [json.loads(line.removesuffix(",")) for line in lines]
    for entity in entities:
        for relation in {"P2044", "P2048", "P577", "P569", "P570", "P10000"} & set(entity.get("claims") or ()):
            values = [one["mainsnak"].get("datavalue", {}) for one in entity["claims"][relation]]
            if any(
                value.get("value", {}).get("precision", 11) != 11 or "time" not in value["value"] for value in values
            ):
                del entity["claims"][relation]
    as_json = dump(tmp_path / "d.json", *entities)
    as_triples = tmp_path / "d.nt"
    as_triples.write_text("".join(f"{line}\n" for entity in entities for line in truthy(entity)), encoding="utf-8")
    first, second = build_dump(as_json, tmp_path / "a.kb"), build_dump(as_triples, tmp_path / "b.kb")
    assert facts_of(first) == facts_of(second)
    assert first.manifest.digest == second.manifest.digest


@pytest.mark.parametrize(
    "subject", ["https://www.wikidata.org/wiki/Special:EntityData/Q1", f"{WD}entity/L1", f"{WD}entity/Q"]
)
def test_triples_about_neither_items_nor_properties_are_left_out(tmp_path: Path, subject: str) -> None:
    labels = [f'<{about}> <http://{LABELS[0]}> "One"@en .\n' for about in (subject, f"{WD}entity/Q1")]
    (tmp_path / "d.nt").write_text("".join(labels))
    rows, reading = read(tmp_path / "d.nt")
    assert [row[0] for row in rows["names"]] == ["Q1"]
    assert skipped(reading) == {"statement about neither an item nor a property": (1, False)}


def test_filters_need_the_json_dump(tmp_path: Path) -> None:
    (tmp_path / "d.nt").write_text(f"<{WD}entity/Q1> <{WD}prop/direct/P31> <{WD}entity/Q5> .\n")
    with pytest.raises(WrongFormat, match="use the JSON dump"):
        read(tmp_path / "d.nt", keep=Keep(sitelinks=1))


def test_a_dump_of_which_nothing_is_kept_is_named(tmp_path: Path) -> None:
    with pytest.raises(NothingBuilt):
        build_dump(dump(tmp_path / "d.json", *FILTERED), tmp_path / "d.kb", keep=Keep(ids=frozenset({"Q77"})))


@pytest.mark.parametrize("form", ["indented", "entities", "one"])
def test_documents_of_json_give_what_lines_give(tmp_path: Path, form: str) -> None:
    entity = {"type": "item", "id": "Q515", "labels": {"en": {"language": "en", "value": "city"}}, "claims": {}}
    content = {
        "indented": json.dumps([entity, entity | {"id": "Q5"}], indent=1),
        "entities": json.dumps({"entities": {"Q515": entity}}),
        "one": json.dumps(entity, indent=2),
    }[form]
    (tmp_path / "w.json").write_text(content)
    reading = Reading(Source(tmp_path / "w.json", "any", format="wikidata"), ReadOptions())
    names = [row["entity"] for batch in reading.batches() if batch.kind == "names" for row in batch.table.to_pylist()]
    assert names == (["Q515", "Q5"] if form == "indented" else ["Q515"])
    assert not any(skip.bad for skip in reading.skips.kinds.values())


def test_a_document_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text('[\n {\n  "type": "item",\n  "id": "Q5')
    with pytest.raises(WrongFormat, match=r"w\.json: invalid JSON .*; download it again"):
        list(Reading(Source(tmp_path / "w.json", "any", format="wikidata"), ReadOptions()).batches())
