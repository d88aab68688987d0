"""Names on a cluster: what is asked of it, what is kept, and that its answers are those of the reference."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from rapidfuzz.distance import OSA

from kbtools.indexers.elastic import names, searches
from kbtools.indexers.elastic.cluster_vectors import _nearest_search
from kbtools.indexers.elastic.mapping import ENTITIES, NAMES
from kbtools.indexers.elastic.names import Names
from kbtools.indexers.elastic.searches import LINKED, terms_search
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import NameMatch
from kbtools.text.variants import name_forms

NAMED = (
    ("a", "Solaris"), ("b", "Solaris"), ("b", "Stalker"), ("c", "Solar"), ("d", "The Who"), ("e", "Who"), ("f", "It"),
    ("g", "Harry Potter"), ("h", "Harry Porter"), ("h", "Harold Porter"), ("i", "Potter, Harry"), ("j", "Sol"),
    ("k", "Mirror of the lake"), ("l", "Miror"), ("m", "y" * 199 + "z"),
)  # fmt: skip
ALIASES = (("c", "Solaris"), ("e", "It"), ("l", "Mirror lake"))


class Fake:
    """A stand-in for the searches of a cluster, over the names of a knowledge base in memory."""

    def __init__(self, kb: MemoryKB) -> None:
        self.kb, self.asked = kb, list[list[dict[str, Any]]]()
        self.bearers = {form: kb.bearers([form])[0] for form in sorted(kb.normal_forms)}

    def run(self, asked: Sequence[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        self.asked += [[body for _, body in asked]] if asked else []
        assert len(self.asked) < 1_000, "pages without an end"
        return [self.answer(index, body) for index, body in asked]

    def answer(self, index: str, body: dict[str, Any]) -> dict[str, Any]:
        if index == ENTITIES:
            return {"hits": {"hits": list(self.entities(body))}}
        if "aggs" in body:
            words = body["aggs"]["words"]["filters"]["filters"]
            counts = {
                word: {"doc_count": count} for word, count in zip(words, self.kb.name_frequency([*words]), strict=True)
            }
            return {"aggregations": {"words": {"buckets": counts}}}
        forms = [form for form in self.bearers if self.fits(form, body["query"])]
        bearers = [(form, self.bearers[form]) for form in forms]
        fields = [
            {"fields": {"form": [form], "popularity": [bearer.names], "bearer": [bearer.row]}}
            for form, bearer in bearers
        ]
        return {"hits": {"hits": [*fields[: body["size"]], {}]}}

    def entities(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        terms, after = set(body["query"]["constant_score"]["filter"]["terms"]["forms"]), body.get("search_after", [-1])
        rows = [row for row in range(len(self.kb.entity_ids)) if row > after[0] and terms & self.forms_of(row)]
        for row in rows[: body["size"]]:
            texts = self.kb.texts[self.kb.entity_ids[row]]
            aliases = {text for entity, text in ALIASES if entity == self.kb.entity_ids[row]}
            split = {"names": [t for t in texts if t not in aliases], "aliases": [t for t in texts if t in aliases]}
            yield {"_source": {"row": row, "part": 0, **split}, "sort": [row, 0]}

    def forms_of(self, row: int) -> set[str]:
        return {form for text in self.kb.texts[self.kb.entity_ids[row]] for form in name_forms(text)}

    def fits(self, form: str, query: Mapping[str, Any]) -> bool:
        if "fuzzy" in query:
            ((field, fuzzy),) = query["fuzzy"].items()
            words = [form] if field == "form" else form.split(" ")
            return any(OSA.distance(fuzzy["value"], word) <= fuzzy["fuzziness"] for word in words)
        if "match" in query:
            text = query["match"]["trigrams"]
            return any(text[place : place + 3] in form for place in range(len(text) - 2))
        if "term" in query:
            return query["term"]["words"] in form.split(" ")
        return any(self.fits(form, part) for part in query["bool"]["should"])


@pytest.fixture
def memory() -> MemoryKB:
    return MemoryKB([], NAMED, aliases=ALIASES)


@pytest.fixture
def fake(memory: MemoryKB) -> Fake:
    return Fake(memory)


@pytest.fixture
def noted() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def own(memory: MemoryKB, fake: Fake, noted: list[dict[str, Any]]) -> Names:
    index: Any = fake
    indexes = {ENTITIES: ENTITIES, NAMES: NAMES}
    return Names(index, indexes, count=memory.manifest.statistics["forms"], note=noted.append)


def plain(matches: Mapping[str, Sequence[NameMatch]]) -> dict[str, list[tuple[Any, ...]]]:
    return {
        form: [(match.name, match.form, match.is_alias, match.entities.tolist()) for match in of_form]
        for form, of_form in matches.items()
    }


FORMS = ["solaris", "it", "who", "harry potter", "harry", "nobody", "", "mirror lake", "solar", "sol", "the who"]


@pytest.mark.parametrize("page", [2, 1_000])
def test_names_are_those_of_the_reference_and_asked_once(
    own: Names, memory: MemoryKB, fake: Fake, noted: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(searches, "PAGE", page)
    expected = plain(memory.lookup(FORMS))

    assert plain(own.lookup(FORMS)) == expected
    asked = len(fake.asked)
    assert plain(own.lookup(FORMS[::-1])) == expected
    assert (asked, len(fake.asked)) == (1 if page > 2 else asked, asked)
    assert {entity["row"] for entity in noted} == {row for matches in memory.lookup(FORMS).values() for match in matches
                                                   for row in match.entities.tolist()}  # fmt: skip
    # Words of unknown forms were counted in the same request.
    words = [word for form in FORMS for word in form.split(" ") if word]
    assert own.frequency(words) == memory.name_frequency(words)
    assert len(fake.asked) == asked
    assert own.frequency(["lake", "", "x" * 500, "lake", "stalker"]) == [2, 0, 0, 2, 1]
    assert len(fake.asked) == asked + 1


@pytest.mark.parametrize("at_once", [1, 4_000])
def test_searches_are_cut_to_what_a_cluster_takes(
    own: Names, memory: MemoryKB, fake: Fake, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(names, "TERMS_AT_ONCE", at_once)

    assert plain(own.lookup(["who", "it", "solar"])) == plain(memory.lookup(["who", "it", "solar"]))
    assert [len(bodies) for bodies in fake.asked] == [6 if at_once == 1 else 2]
    terms = [body["query"]["constant_score"]["filter"]["terms"]["forms"] for body in fake.asked[0] if "query" in body]
    assert [len(forms) for forms in terms] == ([1, 1, 1] if at_once == 1 else [3])


@pytest.mark.parametrize("edits_only", [False, True])
@pytest.mark.parametrize("count", [30, 10_000_000])
def test_similar_names_are_those_of_the_reference_whatever_was_asked_before(
    own: Names, memory: MemoryKB, fake: Fake, edits_only: bool, count: int
) -> None:
    own.count = count
    memory.manifest = replace(memory.manifest, statistics={"forms": count})
    forms = [
        "solari",
        "harry poter",
        "mirrors of the lake",
        "whoo",
        "iit",
        "",
        "x" * 300,
        "lake mirror",
        "y" * 200,
        "harry pottr x",
        "solari",
    ]
    for limit, cutoff in ((20, 80.0), (1, 80.0), (20, 95.0), (20, 60.0)):
        options: dict[str, Any] = {"limit": limit, "cutoff": cutoff, "edits_only": edits_only}
        expected = memory.similar(forms, **options)
        assert own.similar(forms, **options) == expected
        asked = len(fake.asked)
        assert own.similar(forms[:3], **options) == expected[:3]
        assert len(fake.asked) == asked
    assert own.similar(forms[:2], limit=20, cutoff=80.0, edits_only=not edits_only) == memory.similar(
        forms[:2], limit=20, cutoff=80.0, edits_only=not edits_only
    )


def test_requests_say_what_docs_say_of_them(own: Names, fake: Fake) -> None:
    own.similar(["harry potterr"], limit=20, cutoff=80.0, edits_only=False)
    assert names._word_query("potterr", True) == {"term": {"words": "potterr"}}
    assert [names._word_query(word, False) for word in ("1985", "it")] == [
        {"term": {"words": word}} for word in ("1985", "it")
    ]

    usual = {"track_total_hits": False, "_source": False, "stored_fields": "_none_"}
    usual |= {"docvalue_fields": ["form", "popularity", "bearer"]}
    fuzzy = {"value": "harry potterr", "fuzziness": 2, "prefix_length": 0, "max_expansions": 1_000,
             "transpositions": True}  # fmt: skip
    near = {"value": "potterr", "fuzziness": 1, "prefix_length": 0, "max_expansions": 200, "boost": 8}
    words = [{"term": {"words": "harry"}}, {"fuzzy": {"words": near}}]
    assert fake.asked[-1] == [
        {**usual, "size": 1_000, "query": {"fuzzy": {"form": fuzzy}}},
        {**usual, "size": 100, "query": {"match": {"trigrams": "harry potterr"}}},
        {**usual, "size": 100, "query": {"bool": {"should": words}}},
    ]
    assert terms_search("id", ("a", "b")) == {
        "size": 1_000, "query": {"constant_score": {"filter": {"terms": {"id": ["a", "b"]}}}}, "sort": ["row", "part"],
        "_source": LINKED, "track_total_hits": False,
    }  # fmt: skip
    assert _nearest_search([1.0], 3, 200) == {
        "size": 3, "knn": {"field": "vector", "query_vector": [1.0], "k": 3, "num_candidates": 200}, "_source": False,
        "docvalue_fields": ["row"], "track_total_hits": False,
    }  # fmt: skip
