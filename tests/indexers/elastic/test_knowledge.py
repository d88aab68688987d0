"""A knowledge base on a cluster asks little, loses nothing and says so when something is missing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.answering.answerer import Answerer
from kbtools.errors import KBMissing, ServerError, Unreachable
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.elastic import names, searches
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.loading import Loaded
from kbtools.indexers.elastic.mapping import IndexSettings, index_body, index_name
from kbtools.indexers.elastic.searches import Cache, Searches
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.readers.batches import SourceKind
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.kb.contract import KnowledgeBase, NameMatch
from kbtools.kb.rows import EntityRows
from kbtools.linking import similarity
from kbtools.ranking.opened_system import Ranking
from kbtools.text.question import Question
from kbtools.text.rungs import Form
from tests.conftest import World
from tests.indexers.elastic.conftest import SmallServer
from tests.kbtools.test_languages import SPEAKING

QUESTION = "who created the character harry potter"


@pytest.fixture
def requests(proxy: Callable[..., SmallServer]) -> SmallServer:
    """Stand in front of the cluster and list what is asked."""
    return proxy(lambda number, method, path: None)


@pytest.fixture
def opened(
    load_sample: Callable[..., Loaded], requests: SmallServer, connect: Callable[..., Cluster], kb_name: str
) -> ElasticKB:
    """Open the sample through the list of requests, its relations and types at hand."""
    load_sample()
    kb = ElasticKB(kb_name, connect(requests.url))
    assert kb.relation_rows
    assert kb.type_rows
    assert kb.relation_names
    requests.requests.clear()
    return kb


def as_rows(*rows: int) -> EntityRows:
    return np.array(rows, dtype=np.uint32)


def describe(match: NameMatch) -> tuple[str, Form, list[int]]:
    return match.name, match.form, match.entities.tolist()


def describe_entity(kb: KnowledgeBase, row: int) -> list[Any]:
    """List all that a question asks of an entity: its lists come as row numbers, which both homes share."""
    rows = as_rows(row)
    lists = [kb.relations_of(rows).values.tolist(), kb.types_of(rows).values.tolist(), kb.fact_counts(rows).tolist()]
    return [*kb.ids(rows), *kb.names(rows), *lists]


def ranked_pool(kb: ElasticKB, text: str, *, pruning: str) -> Ranking:
    answerer = Answerer(kb)
    opened = answerer.opened(answerer.system(pruning=pruning, scorer="lexical"))
    _, _, (ranking,) = opened.rank(opened.gather([Question.read(text)]), top=None)
    return ranking


# requests


@pytest.mark.parametrize("pruning", ["n-gram", "n-gram+", "n-gram-idf"])
def test_a_question_is_linked_and_ranked_in_one_request(opened: ElasticKB, requests: SmallServer, pruning: str) -> None:
    ranked = ranked_pool(opened, QUESTION, pruning=pruning)
    assert len(ranked.pool)
    assert len(requests.requests) == 1


def test_types_names_and_ids_of_linked_entities_are_at_hand(opened: ElasticKB, requests: SmallServer) -> None:
    (match, *_) = opened.lookup(["harry potter"])["harry potter"]
    opened.types_of(match.entities), opened.names(match.entities), opened.ids(match.entities)
    opened.relations_of(match.entities), opened.fact_counts(match.entities), opened.name_frequency(["harry", "potter"])
    assert len(requests.requests) == 1


def test_a_question_in_a_language_takes_no_more_requests_than_one_without(
    make_kb: Callable[[str, World], Any], requests: SmallServer, connect: Callable[..., Cluster]
) -> None:
    kb = ElasticKB(make_kb("elasticsearch", SPEAKING).name, connect(requests.url))
    asked = []
    for text, lang in (("gift opposite", "de"), ("Kölln country", "de"), ("gift opposite", None)):
        answerer = Answerer(ElasticKB(kb.name, kb.cluster))
        assert answerer.kb.relations, answerer.kb.types
        assert answerer.kb.relation_names
        requests.requests.clear()
        assert answerer.query(text, lang=lang, inverse=False).candidates
        asked.append(len(requests.requests))
    assert asked[0] == asked[2] == 3
    assert asked[1] <= 7


def test_answers_take_two_more_requests_and_a_question_asked_again_none(
    opened: ElasticKB, requests: SmallServer
) -> None:
    answerer = Answerer(opened)
    first = answerer.query(QUESTION, inverse=False)
    assert len(requests.requests) == 3
    again = answerer.query(QUESTION, inverse=False)
    assert len(requests.requests) == 3
    assert first.to_json() | {"milliseconds": 0} == again.to_json() | {"milliseconds": 0}


def test_reading_backwards_takes_one_more_request_for_relations_and_one_for_subjects(
    opened: ElasticKB, requests: SmallServer, sample_kb: EmbeddedKB
) -> None:
    directed = "what films did stanley kubrick direct"
    there = Answerer(opened).query(directed, inverse=True)
    here = Answerer(sample_kb).query(directed, inverse=True)
    assert there.to_json() | {"milliseconds": 0} == here.to_json() | {"milliseconds": 0}
    assert there.inverse
    assert len(requests.requests) == 3 + 2


def test_fuzzy_linking_takes_two_more_requests(opened: ElasticKB, requests: SmallServer) -> None:
    ranked = ranked_pool(opened, "who wrote frankenstien", pruning="n-gram-idf")
    assert "fuzzy" in [link.rung.label for link in ranked.links]
    assert len(requests.requests) == 3


@pytest.mark.parametrize(("form", "made"), [("frankenstien", 1), ("pirates of carribean", 3)])
def test_among_many_names_trigrams_are_searched_only_where_edits_do_not_suffice(
    opened: ElasticKB, requests: SmallServer, monkeypatch: pytest.MonkeyPatch, form: str, made: int
) -> None:
    monkeypatch.setattr(similarity, "MANY_NAMES", 0)
    assert opened.similar([form])[0]
    # For names within edits; else words are counted and names searched by them too.
    assert len(requests.requests) == made


def test_a_question_that_is_linked_strictly_asks_for_nothing_fuzzy(opened: ElasticKB, requests: SmallServer) -> None:
    ranked = ranked_pool(opened, QUESTION, pruning="n-gram-idf")
    assert "fuzzy" not in [link.rung.label for link in ranked.links]
    assert len(requests.requests) == 1


@pytest.mark.parametrize("typo", ["pirates of the carribean", "harry poter", "the beatle", "springfeild", "mercuri"])
def test_recalled_names_are_looked_up_in_one_request_with_all_that_is_asked_of_them(
    opened: ElasticKB, requests: SmallServer, sample_kb: EmbeddedKB, typo: str
) -> None:
    near = [found.form for found in opened.similar([typo], cutoff=60)[0]]
    requests.requests.clear()
    ours, theirs = opened.lookup(near), sample_kb.lookup(near)
    assert {form: list(map(describe, found)) for form, found in ours.items()} == {
        form: list(map(describe, found)) for form, found in theirs.items()
    }
    rows = np.concatenate([match.entities for found in theirs.values() for match in found])
    assert [describe_entity(opened, row) for row in rows] == [describe_entity(sample_kb, row) for row in rows]
    assert len(requests.requests) == 1


def test_the_description_of_what_bears_a_recalled_name_is_known(
    make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    world = new_world((("m.1", "r", "m.2"),), (("m.1", "Springfield"),), descriptions=(("m.1", "a town"),))
    kb = make_kb("elasticsearch", world)
    (near,) = kb.similar(["sprongfield"])[0]
    (match,) = kb.lookup([near.form])[near.form]
    assert kb.descriptions(match.entities) == ["a town"]


def test_a_recalled_name_of_many_bearers_is_looked_up(
    make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    facts = tuple((f"m.{number:03}", "r", "o") for number in range(500))
    world = new_world(facts, tuple((subject, "Springfield") for subject, _, _ in facts))
    kb, reference = make_kb("elasticsearch", world), make_kb("embedded", world)
    near = kb.similar(["sprongfield"])[0]
    assert near == reference.similar(["sprongfield"])[0]
    ours, theirs = (one.lookup([near[0].form])["springfield"] for one in (kb, reference))
    assert list(map(describe, ours)) == list(map(describe, theirs))


def test_many_questions_go_out_together(opened: ElasticKB, requests: SmallServer, examples: Path) -> None:
    questions = (examples / "questions.txt").read_text(encoding="utf-8").splitlines()
    answerer = Answerer(opened)
    together = [result.to_json() | {"milliseconds": 0} for result in answerer.query_many(questions)]
    few = len(requests.requests)
    apart = [Answerer(opened).query(question).to_json() | {"milliseconds": 0} for question in questions]
    assert together == apart
    assert few < len(questions)


@pytest.mark.parametrize("pruning", ["n-gram", "n-gram+", "n-gram-idf"])
def test_questions_pruned_together_take_one_request(opened: ElasticKB, requests: SmallServer, pruning: str) -> None:
    questions = [Question.read(text) for text in (QUESTION, "who wrote it", "where is paris")]
    answerer = Answerer(opened)
    linked = answerer.opened(answerer.system(pruning=pruning)).gather(questions)
    assert requests.paths() == ["/_msearch"]
    assert [bool(links) for links in linked.links] == [True, True, True]


def test_misspelt_questions_pruned_together_take_as_many_requests_as_one(
    opened: ElasticKB, requests: SmallServer
) -> None:
    texts = ("who wrote frankenstien", "Who directed Pirates of the Carribean?", "where is paris")
    answerer = Answerer(opened)
    linked = answerer.opened(answerer.system(pruning="n-gram-idf")).gather([Question.read(text) for text in texts])
    assert [any(link.rung.label == "fuzzy" for link in links) for links in linked.links] == [True, True, False]
    assert len(requests.requests) == 4


@pytest.mark.real_cluster
def test_more_forms_than_one_search_takes_are_still_one_request(opened: ElasticKB, requests: SmallServer) -> None:
    forms = [f"name {number}" for number in range(2 * names.TERMS_AT_ONCE)] + ["harry potter"]
    assert list(opened.lookup(forms)) == ["harry potter"]
    assert len(requests.requests) == 1


def test_names_of_relations_and_merged_ids_are_those_of_the_folder(
    tmp_path: Path, load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str
) -> None:
    files: dict[SourceKind, str] = {
        "facts": "subject\trelation\tobject\na\tr1\tb\nb\tr2\tc\n",
        "names": "id\tname\na\tAda\nb\tBo\n",
        "relations": "relation\tname\nr1\tis first\n",
        "redirects": "old\tnew\nolder\ta\noldest\tolder\n" + "x" * 9_000 + "\tb\n",
    }
    sources = []
    for kind, content in files.items():
        (tmp_path / f"{kind}.tsv").write_text(content)
        sources.append(Source(tmp_path / f"{kind}.tsv", kind))
    build(sources, tmp_path / "own.kb", options=ReadOptions(), watch=BuildProgress())
    embedded = EmbeddedKB(tmp_path / "own.kb")
    load_sample(embedded)
    opened = ElasticKB(kb_name, cluster)
    ids = ["a", "older", "oldest", "x" * 9_000, "b", "nobody", "older"]
    assert opened.rows(ids) == embedded.rows(ids)
    assert None not in embedded.rows(ids[:5])
    assert opened.relation_names == embedded.relation_names == ("is first", None)


@pytest.mark.real_cluster
def test_a_question_of_five_thousand_words_is_answered(opened: ElasticKB) -> None:
    assert Answerer(opened).query("harry potter " * 2_500).candidates


# size


def test_namesakes_beyond_one_page_are_all_found(make_kb: Callable[[str, World], Any], new_world: type[World]) -> None:
    facts = tuple((f"m.{number:05}", "r", "o") for number in range(2 * searches.PAGE + 5))
    world = new_world(facts, tuple((subject, "Springfield") for subject, _, _ in facts))
    kb = make_kb("elasticsearch", world)
    (match,) = kb.lookup(["springfield"])["springfield"]
    assert kb.ids(match.entities) == [subject for subject, _, _ in facts]
    (near,) = kb.similar(["sprongfield"])[0]
    assert near.form == "springfield"


def test_an_entity_in_parts_is_whole(make_kb: Callable[[str, World], Any], new_world: type[World]) -> None:
    facts = tuple(("giant", f"r.{number % 30_000 % 7}", f"object {number:05}") for number in range(45_000))
    names = (("giant", "Giant"), ("object 00007", "Seven"), ("small", "Giant"))
    aliases = tuple(("giant", f"Giant number {number}") for number in range(21_000))
    back = tuple((f"object {number:05}", f"r.{number % 3}", "giant") for number in range(30_000))
    world = new_world((*facts, *back, ("small", "r.0", "giant")), names, (("giant", "t.large"),), aliases)
    kb, reference = make_kb("elasticsearch", world), make_kb("embedded", world)
    rows = as_rows(*reference.rows(["giant", "small"]))
    giant = int(rows[0])
    assert kb.rows(["giant", "small"]) == rows.tolist()
    assert kb.fact_counts(rows).tolist() == [45_000, 1]
    assert kb.incoming_counts(rows).tolist() == [30_001, 0]
    for asked in ("relations_of", "types_of", "incoming_relations_of"):
        ours, theirs = getattr(kb, asked)(rows), getattr(reference, asked)(rows)
        assert (ours.starts.tolist(), ours.values.tolist()) == (theirs.starts.tolist(), theirs.values.tolist())
    assert kb.names(rows) == ["Giant", "Giant"]
    assert kb.names_of(rows) == reference.names_of(rows)
    assert kb.objects_of([(giant, 3)])[0].tolist() == reference.objects_of([(giant, 3)])[0].tolist()
    (ours,), (theirs,) = kb.subjects_of(rows[:1]), reference.subjects_of(rows[:1])
    assert ours.relations.tolist() == theirs.relations.tolist()
    assert ours.subjects.tolist() == theirs.subjects.tolist()
    late = kb.lookup(["giant number 20999", "giant"])
    assert late["giant number 20999"][0].entities.tolist() == [giant]
    assert late["giant"][0].entities.tolist() == sorted(rows.tolist())


def test_an_id_longer_than_a_term_is_found(make_kb: Callable[[str, World], Any], new_world: type[World]) -> None:
    literal = '"' + "long " * 9_000 + '"'
    kb = make_kb("elasticsearch", new_world((("a", "r", literal), ("a", "r", literal[:-2] + 'x"')), (("a", "A"),)))
    (row,) = kb.rows([literal])
    assert kb.ids(as_rows(row)) == [literal]
    assert len(kb.objects_of([(kb.rows(["a"])[0], 0)])[0]) == 2


# faults


def test_an_index_deleted_under_a_reader_is_a_clear_error(opened: ElasticKB, cluster: Cluster, kb_name: str) -> None:
    entities = index_name(kb_name, 1, "entities")
    cluster.ask("DELETE", f"/{entities}", to="delete it")
    for ask in (
        lambda: opened.lookup(["harry potter"]),
        lambda: opened.rows(["m.078ffw"]),
        lambda: opened.names(as_rows(3)),
        lambda: Answerer(opened).query(QUESTION),
    ):
        with pytest.raises(KBMissing, match=f"the index {entities} was deleted while '{kb_name}' was open"):
            ask()


def test_an_index_of_names_deleted_under_a_reader_is_a_clear_error(
    opened: ElasticKB, cluster: Cluster, kb_name: str
) -> None:
    cluster.ask("DELETE", f"/{index_name(kb_name, 1, 'names')}", to="delete it")
    with pytest.raises(KBMissing, match="was deleted while"):
        opened.similar(["frankenstien"])[0]
    with pytest.raises(KBMissing, match="was deleted while"):
        opened.lookup(["something new"])


def test_a_row_that_is_not_there_is_no_entity(opened: ElasticKB) -> None:
    with pytest.raises(IndexError, match="no entity at row 999999"):
        opened.names(as_rows(999_999))


@pytest.mark.parametrize(
    "answer",
    [
        {"timed_out": True, "_shards": {"failed": 0}, "hits": {"hits": []}},
        {"timed_out": False, "_shards": {"failed": 1, "failures": [{"reason": {"type": "x", "reason": "lost"}}]}},
    ],
)
def test_an_answer_without_all_shards_is_an_error_and_not_fewer_names(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    kb_name: str,
    answer: dict[str, Any],
) -> None:
    load_sample()
    server = proxy(lambda number, method, path: (200, {"responses": [answer] * 2}) if "_msearch" in path else None)
    kb = ElasticKB(kb_name, connect(server.url, patience=Patience(total=0)))
    with pytest.raises(Unreachable, match="some shards did not answer"):
        kb.lookup(["harry potter"])


def test_searches_that_pass_later_are_asked_again_alone(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    kb_name: str,
    impatient: Patience,
) -> None:
    load_sample()
    busy = {"error": {"type": "es_rejected_execution_exception", "reason": "full"}, "status": 429}
    seen = []

    def watch(number: int, method: str, path: str) -> Any:
        if "_msearch" in path:
            seen.append(path)
            return 200, {"responses": [busy, busy]} if len(seen) == 1 else None
        return None

    server = proxy(lambda *asked: told if (told := watch(*asked)) and told[1] else None)
    kb = ElasticKB(kb_name, connect(server.url, patience=impatient))
    assert kb.lookup(["harry potter"])
    assert len(seen) == 2


def test_a_search_that_cannot_pass_says_why(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    kb_name: str,
    impatient: Patience,
) -> None:
    load_sample()
    wrong = {"error": {"type": "parsing_exception", "reason": "odd"}, "status": 400}
    server = proxy(lambda number, method, path: (200, {"responses": [wrong] * 2}) if "_msearch" in path else None)
    kb = ElasticKB(kb_name, connect(server.url, patience=impatient))
    with pytest.raises(ServerError, match=r"could not search .*parsing_exception: odd"):
        kb.lookup(["harry potter"])


def test_a_cluster_without_some_shards_is_refused_at_the_door(
    load_sample: Callable[..., Loaded], proxy: Callable[..., SmallServer], connect: Callable[..., Cluster], kb_name: str
) -> None:
    load_sample()
    red = {"status": "red", "unassigned_shards": 1}
    server = proxy(lambda number, method, path: (200, red) if "_cluster/health" in path else None)
    with pytest.raises(Unreachable, match="lacks 1 of its shards, the cluster's health is red"):
        ElasticKB(kb_name, connect(server.url, patience=Patience(sleep=lambda seconds: None)))


@pytest.mark.real_cluster
def test_a_shard_that_no_node_takes_is_named_after_a_moment(
    load_sample: Callable[..., Loaded], cluster: Cluster, connect: Callable[..., Cluster], url: str, kb_name: str
) -> None:
    load_sample()
    name = index_name(kb_name, 1, "names")
    body = index_body("names", kb=kb_name, version=1, settings=IndexSettings())
    body["settings"]["index"]["routing.allocation.require._name"] = "no such node"
    cluster.ask("DELETE", f"/{name}", to="replace it")
    cluster.ask("PUT", f"/{name}", body, to="replace it", params={"wait_for_active_shards": "0"})
    with pytest.raises(Unreachable, match="lacks 1 of its shards, the cluster's health is red"):
        ElasticKB(kb_name, connect(url, patience=Patience(sleep=lambda seconds: None)))


def test_a_reader_that_may_not_ask_for_the_health_reads(
    load_sample: Callable[..., Loaded], proxy: Callable[..., SmallServer], connect: Callable[..., Cluster], kb_name: str
) -> None:
    load_sample()
    server = proxy(lambda number, method, path: (403, {"error": "no"}) if "_cluster/health" in path else None)
    assert ElasticKB(kb_name, connect(server.url)).lookup(["harry potter"])


# cache


def test_a_cache_forgets_the_longest_unused_and_stays_small() -> None:
    cache = Cache(10)
    for number in range(100):
        cache.put(number, str(number))
        assert cache.get(0) == "0"
        assert len(cache.young) + len(cache.old) <= 20
    assert cache.get(50) is None
    assert cache.missing([0, 99, 50, 50, 51]) == [50, 51]


def test_what_was_forgotten_is_fetched_again(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str, sample_kb: EmbeddedKB
) -> None:
    load_sample()
    kb = ElasticKB(kb_name, cluster)
    kb.known, kb.known_objects = Cache(2), Cache(2)
    kb.named.matches, kb.named.frequencies = Cache(2), Cache(2)
    words = [word for form in ("harry potter", "who is who", "the lord of the rings") for word in form.split()]
    assert kb.name_frequency(words) == sample_kb.name_frequency(words)
    ours = [Answerer(kb).query(text, top=None).to_json() | {"milliseconds": 0} for text in (QUESTION, "who is who")]
    theirs = [
        Answerer(sample_kb).query(text, top=None).to_json() | {"milliseconds": 0} for text in (QUESTION, "who is who")
    ]
    assert ours == theirs


# Searches, in front of a small server


WHOLE_ANSWER = {"timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": []}}
LOST_SHARD = {"timed_out": False, "_shards": {"failed": 1, "failures": [{"reason": {"type": "x", "reason": "lost"}}]}}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("answer", "reason"), [(WHOLE_ANSWER | {"timed_out": True}, "timed out"), (LOST_SHARD, "x: lost")]
)
def test_an_answer_of_some_shards_is_refused(
    small_server: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    answer: dict[str, Any],
    reason: str,
    count: int,
) -> None:
    answers = [WHOLE_ANSWER] * (count - 1) + [answer]
    server = small_server(lambda *_: (200, answer if count == 1 else {"responses": answers}))

    with pytest.raises(Unreachable, match=rf"some shards did not answer \({reason}\)"):
        Searches(connect(server.url), "kb").run([("names", {"size": 1})] * count)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7])
def test_searches_are_answered_in_their_order_in_bounded_requests(
    small_server: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    monkeypatch: pytest.MonkeyPatch,
    count: int,
) -> None:
    monkeypatch.setattr(searches, "MOST_SEARCHES", 3)
    partial: list[bool] = []

    def reply(method: str, path: str, body: bytes) -> tuple[int, object]:
        lines = [json.loads(line) for line in body.splitlines()]
        if "_msearch" not in path:
            partial.append("allow_partial_search_results=false" not in path)
            return 200, WHOLE_ANSWER | {"echo": [path.split("/")[1], *lines]}
        partial.extend(line["allow_partial_search_results"] for line in lines[::2])
        pairs = zip(lines[::2], lines[1::2], strict=True)
        return 200, {"responses": [WHOLE_ANSWER | {"echo": [head["index"], query]} for head, query in pairs]}

    server = small_server(reply)
    asked = [(f"index-{number}", {"size": number}) for number in range(count)]

    answers = Searches(connect(server.url), "kb").run(asked)

    assert [tuple(answer["echo"]) for answer in answers] == asked
    assert len(server.requests) == -(-count // 3)
    assert partial == [False] * count


def test_only_searches_that_a_busy_cluster_refused_are_repeated(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster], impatient: Patience
) -> None:
    busy = {"error": {"type": "rejected", "reason": "full"}, "status": 429}
    first, second = ({**WHOLE_ANSWER, "number": number} for number in (1, 2))
    replies: list[object] = [{"responses": [first, busy]}, second]
    server = small_server(lambda *_: (200, replies.pop(0)))

    answers = Searches(connect(server.url, patience=impatient), "kb").run([("names", {})] * 2)

    assert [answer["number"] for answer in answers] == [1, 2]
    assert server.paths() == ["/_msearch", "/names/_search"]


@pytest.mark.parametrize(
    ("error", "status", "expected", "sentence"),
    [
        ({"type": "rejected", "reason": "full"}, 429, Unreachable, "could not search kb .*full"),
        ({"type": "parsing_exception", "reason": "no field"}, 400, ServerError, "could not search kb .*no field"),
        ({"type": "index_not_found_exception", "index": "names"}, 404, KBMissing, "the index names was deleted while"),
    ],
)
def test_a_search_that_fails_among_others_is_an_error_with_its_reason(
    small_server: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    impatient: Patience,
    error: dict[str, str],
    status: int,
    expected: type[Exception],
    sentence: str,
) -> None:
    failed = {"error": error, "status": status}
    server = small_server(lambda *_: (200, {"responses": [failed] * 2}))

    with pytest.raises(expected, match=sentence):
        Searches(connect(server.url, patience=impatient), "kb").run([("names", {})] * 2)

    assert (len(server.requests) > 1) is (status == 429)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=60), st.integers(1, 3))
def test_what_was_looked_at_of_late_is_remembered_and_little_else(steps: list[tuple[bool, int]], size: int) -> None:
    cache: Cache[int, str] = Cache(size)
    latest: dict[int, str] = {}
    for number, (puts, key) in enumerate(steps):
        known = cache.get(key)
        assert known in (None, latest.get(key))
        recent = list(dict.fromkeys(key for _, key in reversed(steps[:number])))[:size]
        assert known is not None or key not in recent or key not in latest
        if puts or known is None:
            latest[key] = str(number)
            cache.put(key, latest[key])
    assert sum(cache.get(key) is not None for key in range(6)) <= 2 * size
