"""Merged ids and names of relations: settled before ids become rows."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.errors import TooManyBadLines
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.building.derived_rows import merge_ids
from kbtools.indexers.building.staging import Staging
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.readers.batches import SourceKind
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.kb.contract import relation_texts

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
SAME = "<http://www.w3.org/2002/07/owl#sameAs>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
WD = "http://www.wikidata.org/"

Make = Callable[..., EmbeddedKB]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Build a knowledge base from lines by kind."""

    def make_kb(*, language: str = "en", **lines: Iterable[str]) -> EmbeddedKB:
        sources = []
        kinds: dict[str, SourceKind] = {"rdf": "any", "rdf2": "any", "redirects2": "redirects"}
        for name, content in lines.items():
            path = tmp_path / f"{name}.{'nt' if name.startswith('rdf') else 'tsv'}"
            path.write_text("".join(line + "\n" for line in content), encoding="utf-8")
            sources.append(Source(path, kinds.get(name, name)))  # type: ignore[arg-type]
        build(sources, tmp_path / "own.kb", options=ReadOptions(language=language), watch=BuildProgress())
        return EmbeddedKB(tmp_path / "own.kb")

    return make_kb


def facts_of(kb: EmbeddedKB) -> set[tuple[str, str, str]]:
    facts = kb.facts_of(kb.entity_rows()).tolist()
    return {(kb.entity_ids[s], kb.relations[r], kb.entity_ids[o]) for s, r, o in facts}


def names_of(kb: EmbeddedKB) -> dict[str, list[str]]:
    named = zip(kb.entity_ids, kb.names_of(kb.entity_rows()), strict=True)
    return {entity: [name.text for name in names] for entity, names in named if names}


HEAD = "subject\trelation\tobject"


def test_redirected_ids_are_the_entity_they_lead_to(make: Make) -> None:
    kb = make(
        facts=[HEAD, "old\tr\tb", "new\tr\tolder"],
        names=["id\tname", "older\tThing", "b\tB"],
        redirects=["old\tnew", "older\told", "old\tnew"],
    )

    assert facts_of(kb) == {("new", "r", "b"), ("new", "r", "new")}
    assert names_of(kb) == {"new": ["Thing"], "b": ["B"]}
    assert len(set(kb.rows(["new", "old", "older"]))) == 1
    assert kb.rows(["oldest"]) == [None]


def test_what_is_the_same_takes_the_id_that_has_facts(make: Make) -> None:
    kb = make(
        rdf=[
            f"<http://db/X> {SAME} <{WD}entity/Q1> .",
            "<http://db/X> <http://db/p> <http://db/Y> .",
            f'<http://db/X> {LABEL} "X"@en .',
            f"<{WD}entity/Q9> {SAME} <{WD}entity/Q8> .",
            f"<{WD}entity/Q8> <http://db/p> <{WD}entity/Q9> .",
        ]
    )

    assert facts_of(kb) == {
        ("http://db/X", "http://db/p", "http://db/Y"),
        (f"{WD}entity/Q8", "http://db/p", f"{WD}entity/Q8"),
    }
    assert kb.rows([f"{WD}entity/Q1"]) == kb.rows(["http://db/X"])


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_merged_ids_are_those_of_a_plain_union(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[int, int]]
) -> None:
    groups = {node: {node} for node in range(10)}
    for one, other in pairs:
        joined = groups[one] | groups[other]
        groups.update(dict.fromkeys(joined, joined))

    with Staging(tmp_path_factory.mktemp("work"), threads=1) as tables:
        for one, other in pairs:
            tables.run(f"INSERT INTO same VALUES ('{one}', '{other}')")
        merge_ids(tables)
        merged = dict(tables.connection.execute("SELECT old, new FROM merged").fetchall())

    found = {str(node): merged.get(str(node), str(node)) for node in range(10)}
    assert all(found[str(one)] == found[str(other)] for one in range(10) for other in groups[one])
    assert len(set(found.values())) == len({frozenset(group) for group in groups.values()})


def test_blank_nodes_of_two_files_are_never_one(make: Make) -> None:
    kb = make(
        rdf=["_:b0 <http://a/p> <http://a/one> .", f'<http://a/one> {LABEL} "one"@en .', f'_:b0 {LABEL} "x"@en .'],
        rdf2=["_:b0 <http://a/p> <http://a/two> ."],
    )

    assert len({subject for subject, _, _ in facts_of(kb)}) == 2


def test_names_of_predicates_are_names_of_relations_and_of_no_candidate(make: Make) -> None:
    kb = make(
        rdf=[
            f"<{WD}entity/Q1> <{WD}prop/direct/P19> <{WD}entity/Q2> .",
            f'<{WD}entity/Q1> {LABEL} "Ada"@en .',
            f'<{WD}entity/P19> {LABEL} "place of birth"@en .',
            f'<{WD}entity/P19> {LABEL} "Geburtsort"@de .',
            f'<{WD}entity/P20> {LABEL} "place of death"@en .',
            "<http://a/s> <http://a/knows> <http://a/o> .",
            f'<http://a/knows> {LABEL} "is acquainted with"@en .',
            "<http://a/knows> <http://a/domain> <http://a/Person> .",
            f"<http://a/knows> {TYPE} <http://www.w3.org/2002/07/owl#ObjectProperty> .",
        ],
        language="de,en",
    )

    names = dict(zip(kb.relations, kb.relation_names, strict=True))
    assert names[f"{WD}prop/direct/P19"] == "Geburtsort"
    assert names["http://a/knows"] == "is acquainted with"
    assert names["http://a/domain"] is None
    assert names_of(kb) == {f"{WD}entity/Q1": ["Ada"]}
    assert kb.lookup(["place of birth", "place of death", "is acquainted with"]) == {}


def test_a_thing_of_a_class_that_is_called_property_is_an_entity(make: Make) -> None:
    kb = make(
        rdf=[
            f"<http://a/land> {TYPE} <http://a/RealProperty> .",
            f'<http://a/land> {LABEL} "the old farm"@en .',
            f'<http://a/p> {LABEL} "no relation"@en .',
        ]
    )

    assert names_of(kb) == {"http://a/land": ["the old farm"], "http://a/p": ["no relation"]}


def test_types_in_rdf_stay_askable(make: Make) -> None:
    kb = make(rdf=[f"<http://a/s> {TYPE} <http://a/T> .", f'<http://a/s> {LABEL} "s"@en .'])

    assert facts_of(kb) == {("http://a/s", TYPE[1:-1], "http://a/T")}
    assert kb.types == ("http://a/T",)


def test_types_and_descriptions_are_those_of_what_their_ids_were_merged_into(make: Make) -> None:
    kb = make(
        rdf=[
            f"<http://a/s> {TYPE} <http://a/Old> .",
            f"<http://a/gone> {TYPE} <http://a/New> .",
            '<http://a/gone> <http://schema.org/description> "a tree"@en .',
            f'<http://a/s> {LABEL} "Oak"@en .',
        ],
        redirects=["old\tnew", "http://a/Old\thttp://a/New", "http://a/gone\thttp://a/kept"],
    )
    rows = np.array(kb.rows(["http://a/s", "http://a/kept"]), dtype=np.uint32)

    assert kb.types == ("http://a/New",)
    assert kb.types_of(rows).values.tolist() == [0, 0]
    assert kb.descriptions(rows) == [None, "a tree"]


def test_a_scorer_reads_the_names_of_relations(make: Make) -> None:
    kb = make(
        rdf=[
            f"<{WD}entity/Q1> <{WD}prop/direct/P19> <{WD}entity/Q2> .",
            f"<{WD}entity/Q1> <{WD}prop/direct/P20> <{WD}entity/Q3> .",
            f'<{WD}entity/Q1> {LABEL} "Ada"@en .',
            f'<{WD}entity/P19> {LABEL} "place of birth"@en .',
            f'<{WD}entity/P20> {LABEL} "place of death"@en .',
        ]
    )

    first = [Answerer(kb).query(f"what is the place of {what} of ada").candidates[0] for what in ("birth", "death")]

    assert [candidate.relation for candidate in first] == [f"{WD}prop/direct/P19", f"{WD}prop/direct/P20"]
    assert relation_texts(kb) == ["place of birth", "place of death"]


def test_relations_are_named_by_a_file_or_among_the_names(make: Make) -> None:
    kb = make(
        facts=[HEAD, "a\tr1\tb", "a\tr2\tpart", "a\tpart\tb"],
        names=["id\tname", "a\tA", "r2\tsecond", "r1\tignored", "part\tPart"],
        relations=["relation\tname", "r1\tfirst relation"],
    )

    assert dict(zip(kb.relations, kb.relation_names, strict=True)) == {
        "part": "Part",
        "r1": "first relation",
        "r2": "second",
    }
    assert names_of(kb) == {"a": ["A"], "part": ["Part"]}


@pytest.mark.parametrize(
    ("language", "names"),
    [
        ("en,mul,de", {"Q1": ["Ada", "Adele", "Ida"], "Q2": ["Hafen"], "Q3": ["Nim", "Dim"]}),
        ("de,en", {"Q1": ["Ida", "Ada"], "Q2": ["Hafen"]}),
        ("en,mul", {"Q1": ["Ada", "Adele"], "Q3": ["Nim", "Dim"]}),
        ("", {"Q1": ["Ada", "Adele", "Aida", "Ida"], "Q2": ["Hafen"], "Q3": ["Nim", "Dim"]}),
        ("fr,", {"Q1": ["Aida", "Ada", "Adele", "Ida"], "Q2": ["Hafen"], "Q3": ["Nim", "Dim"]}),
    ],
)
def test_the_name_shown_is_of_the_first_language_that_an_entity_has(
    make: Make, language: str, names: dict[str, list[str]]
) -> None:
    alias = "<http://www.w3.org/2004/02/skos/core#altLabel>"
    kb = make(
        rdf=[
            "<http://a/Q1> <http://a/p> <http://a/Q2> .",
            "<http://a/Q2> <http://a/p> <http://a/Q3> .",
            f'<http://a/Q1> {LABEL} "Ida"@de .',
            f'<http://a/Q1> {LABEL} "Ada"@en .',
            f'<http://a/Q1> {LABEL} "Aida"@fr .',
            f'<http://a/Q1> {LABEL} "Adele"@mul .',
            f'<http://a/Q2> {LABEL} "Hafen"@de .',
            f'<http://a/Q3> {LABEL} "Nim"@mul .',
            f'<http://a/Q3> {alias} "Dim"@mul .',
        ],
        language=language,
    )

    assert names_of(kb) == {f"http://a/{entity}": texts for entity, texts in names.items()}
    assert kb.names(np.array(kb.rows(["http://a/Q1"]), dtype=np.uint32)) == [names["Q1"][0]]


LOOPS = {
    "a pair": ("b\ta\n", 4, "b -> a"),
    "itself": ("c\tc\n", 4, "c -> c"),
    "three": ("b\tc\nc\td\nd\ta\n", 6, "d -> a"),
}


@pytest.mark.parametrize("case", LOOPS)
def test_a_redirect_loop_is_counted_with_its_line_and_refused_beyond_max_bad(tmp_path: Path, case: str) -> None:
    text, line, example = LOOPS[case]
    (tmp_path / "r.tsv").write_text("old\tnew\nxd.xb.xc.d1.b1.c1\tyc.ya.c1.a1\na\tb\n" + text)
    with pytest.raises(TooManyBadLines, match=rf"redirect loop, first at {tmp_path}/r\.tsv:{line}: '{example}'"):
        kbtools.index(out=tmp_path / "x.kb", facts=[("a", "r", "o")], names=[("a", "A")], redirects=tmp_path / "r.tsv")
    assert not (tmp_path / "x.kb").exists()
    with kbtools.index(
        out=tmp_path / "x.kb", facts=[("a", "r", "o")], names=[("a", "A")], redirects=tmp_path / "r.tsv", max_bad=1
    ) as answerer:
        assert answerer.lookup("A").matches[0].id in "abcd"
        (source,) = [source for source in answerer.kb.manifest.sources if source.kind == "redirects"]
        assert [(kind, count) for kind, count, _ in source.skipped] == [("redirect loop", 1)]


@pytest.mark.parametrize("first", ["old\tnew\na\tb\n", "old\tnew\nx\ty\na\tb\na\tc\n"])
def test_a_redirect_loop_through_two_files_is_counted_in_the_file_that_closes_it(tmp_path: Path, first: str) -> None:
    (tmp_path / "r.tsv").write_text(first)
    (tmp_path / "s.tsv").write_text("old\tnew\nd\te\nb\ta\n")
    files = [tmp_path / "r.tsv", tmp_path / "s.tsv"]
    with pytest.raises(TooManyBadLines, match=rf"redirect loop, first at {tmp_path}/s\.tsv:3: 'b -> a'"):
        kbtools.index(out=tmp_path / "x.kb", facts=[("a", "r", "o")], names=[("a", "A")], redirects=files)
    assert not (tmp_path / "x.kb").exists()
    with kbtools.index(
        out=tmp_path / "x.kb", facts=[("a", "r", "o")], names=[("a", "A")], redirects=files, max_bad=1
    ) as answerer:
        assert [match.id for match in answerer.lookup("A").matches] == ["b"]
        sources = [source for source in answerer.kb.manifest.sources if source.kind == "redirects"]
        assert [[kind for kind, _, _ in source.skipped] for source in sources] == [[], ["redirect loop"]]


def test_chains_and_what_leads_into_a_loop_are_no_loops(tmp_path: Path) -> None:
    chain = [(f"{number:03}", f"{number + 1:03}") for number in range(100)]
    chain.reverse()
    facts = [("000", "r", "o"), ("050", "r", "p")]
    with kbtools.index(out=tmp_path / "x.kb", facts=facts, names=[("000", "A")], redirects=chain) as answerer:
        assert [match.id for match in answerer.lookup("A").matches] == ["100"]
        assert answerer.kb.rows(["000", "099"]) == answerer.kb.rows(["100"]) * 2
    into_loop = [("x", "a"), ("a", "b"), ("b", "a")]
    with kbtools.index(
        out=tmp_path / "y.kb", facts=[("a", "r", "o")], names=[("a", "A")], redirects=into_loop, max_bad=1
    ) as answerer:
        assert answerer.kb.manifest.sources[-1].skipped[0][1] == 1
        assert answerer.kb.rows(["x", "a"]) == answerer.kb.rows(["b"]) * 2
