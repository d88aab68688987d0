"""A cascade: the first ranker decides where it is sure, and the other scorers are asked about the rest alone."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.answering.explaining import explain
from kbtools.answering.questions import read_gold
from kbtools.answering.results import Result
from kbtools.comparison.system_training import train_cascade, train_ranker
from kbtools.errors import BadArgument, BrokenPlugin, CheckpointMismatch
from kbtools.ranking.cascade import complete, relation_shares, unruled_mentions, winner_shares
from kbtools.ranking.confidence import winner_confidence
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.model_store import Stamp, write_model
from kbtools.ranking.models import model_folder
from kbtools.ranking.pools import COLUMNS, Pools, concatenate_pools, take_questions
from kbtools.ranking.score import MICRO
from kbtools.text.question import MarkedQuestion, Question
from tests.kbtools.ranking.test_learned import BY_WORDS

pytestmark = pytest.mark.usefixtures("trusted_plugins")


class Reading:
    """A relation scorer that remembers what it was asked, and likes the relations of the first rows better."""

    made: ClassVar[list["Reading"]] = []
    asked: ClassVar[list[MarkedQuestion]] = []

    def __init__(self, relations: Sequence[str]) -> None:
        self.relations = relations
        self.made.append(self)

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        self.asked.extend(questions)
        return np.tile(-np.arange(len(self.relations), dtype=np.float64), (len(questions), 1))


class Failing(Reading):
    """A relation scorer that fails."""

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        raise ValueError("no")


READING, FAILING = f"{__name__}:Reading", f"{__name__}:Failing"
SCORERS = f"lexical,{READING}"
QUERY: dict[str, Any] = {"pruning": "n-gram", "scorer": SCORERS, "subject": "fact-count"}
QUESTIONS = [
    "who wrote dune",
    "zzz",
    "where is springfield",
    "what is the genre of harder..... faster?",
    "who wrote it",
]

Opened = Callable[..., Answerer]


@pytest.fixture
def valid(examples: Path) -> Path:
    return examples / "sample.valid.txt"


@pytest.fixture
def opened(sample_memory: Answerer, valid: Path, tmp_path: Path) -> Opened:
    """Train a cascade; open its folder of models with another threshold or margin."""
    answerer = Answerer(sample_memory.kb, models=tmp_path)
    questions = read_gold(valid, answerer.kb)
    system = train_cascade(answerer, questions, answerer.system(**QUERY), ranker=BY_WORDS, in_doubt=[READING]).system

    def open_again(**changes: Any) -> Answerer:
        assert system.cascade
        answerer.parts.keep(replace(system, cascade=replace(system.cascade, **changes)))
        Reading.made.clear()
        Reading.asked.clear()
        return Answerer(sample_memory.kb, models=tmp_path)

    return open_again


def untimed(results: Sequence[Result]) -> list[Result]:
    return [replace(result, milliseconds=None) for result in results]


def shares(answerer: Answerer, questions: Sequence[str]) -> list[float]:
    """Give the winner's share by the first ranker."""
    opened = answerer.opened(answerer.system(**QUERY | {"scorer": "lexical"}))
    pools, rating, _ = opened.rank(opened.gather([Question.read(text) for text in questions]), top=1)
    assert rating
    return winner_confidence(pools, rating.scores, of_links=False).tolist()


def test_scorers_in_doubt_are_neither_made_nor_asked_where_the_first_ranker_is_sure(opened: Opened) -> None:
    result = opened(threshold=0.0).query("who wrote dune", **QUERY)

    assert not Reading.made
    assert not Reading.asked
    assert (result.scorer, result.scored_by, result.ranker) == (SCORERS, "lexical", BY_WORDS)


def test_a_question_in_doubt_is_ranked_by_all_scorers(opened: Opened) -> None:
    result = opened(threshold=1.1).query("who wrote dune", **QUERY)

    assert Reading.asked
    assert result.scored_by == SCORERS


def test_of_a_question_in_doubt_the_mentions_that_are_not_ruled_out_are_read_alone(opened: Opened) -> None:
    question = "who wrote the book of dune in springfield"
    opened(threshold=1.1, margin=1e6).query(question, **QUERY)
    every = {(marked.start, marked.end) for marked in Reading.asked}
    narrow = opened(threshold=1.1, margin=0.0)
    winner = narrow.query(question, **QUERY | {"scorer": "lexical"}).candidates[0].mention
    Reading.asked.clear()

    narrow.query(question, **QUERY)

    read = {(marked.start, marked.end) for marked in Reading.asked}
    assert (winner.start, winner.end) in read
    assert read < every


@pytest.mark.parametrize("threshold", [0.0, None, 1.1])
def test_questions_together_are_answered_as_alone(opened: Opened, threshold: float | None) -> None:
    between = float(np.median(shares(opened(), QUESTIONS)))
    answerer = opened(threshold=between if threshold is None else threshold)

    together = untimed(list(answerer.query_many(QUESTIONS, abstain=0.0, **QUERY)))

    assert together == untimed([answerer.query(question, abstain=0.0, **QUERY) for question in QUESTIONS])
    assert len({result.scored_by for result in together if result.candidates}) == (2 if threshold is None else 1)


def test_of_questions_together_those_in_doubt_alone_are_read(opened: Opened) -> None:
    answerer = opened(threshold=float(np.median(shares(opened(), QUESTIONS))))
    Reading.asked.clear()

    together = list(answerer.query_many(QUESTIONS, **QUERY))

    in_doubt = {result.question for result in together if result.scored_by == SCORERS}
    assert {marked.question.text for marked in Reading.asked} == in_doubt
    assert in_doubt < {result.question for result in together if result.candidates}


@pytest.mark.parametrize("threshold", [0.0, 1.1])
def test_the_parts_of_either_stage_add_up(opened: Opened, threshold: float) -> None:
    result = opened(threshold=threshold).query("where is springfield", **QUERY)

    assert result.candidates
    for candidate in result.candidates:
        assert sum(candidate.parts.values()) == pytest.approx(candidate.score, abs=1e-5)


def test_with_every_mention_read_the_last_ranker_ranks_as_without_a_cascade(
    opened: Opened, sample_memory: Answerer, valid: Path, tmp_path: Path
) -> None:
    asked = untimed(list(opened(threshold=1.1, margin=1e6).query_many(QUESTIONS, **QUERY)))
    answerer = Answerer(sample_memory.kb, models=tmp_path)
    train_ranker(answerer, read_gold(valid, answerer.kb), answerer.system(**QUERY), ranker=BY_WORDS)

    plain = untimed(list(Answerer(sample_memory.kb, models=tmp_path).query_many(QUESTIONS, **QUERY)))

    assert [replace(result, scored_by=None) for result in asked] == plain
    assert "scored_by" not in plain[0].to_json()


def test_scores_that_are_all_known_are_rated_as_those_asked_for(opened: Opened) -> None:
    answerer = opened(threshold=float(np.median(shares(opened(), QUESTIONS))))
    system = answerer.opened(answerer.system(**QUERY))
    linked = system.gather([Question.read(text) for text in QUESTIONS])

    pools, questions = linked.together(), linked.questions

    known = system.rate(system.evidence(pools, questions, keep=lambda part, name, compute: compute(lambda done: None)))
    deferred = system.rate(system.evidence(pools, questions))

    assert known
    assert deferred
    assert system.system.deferred == (READING,)
    assert known.scores.tolist() == deferred.scores.tolist()
    assert len({known.stage_of(at).scorers for at in range(len(QUESTIONS))}) == 2


def test_json_and_reasons_say_which_scorers_ranked(opened: Opened) -> None:
    sure = opened(threshold=0.0).query("who wrote dune", **QUERY)
    doubtful = opened(threshold=1.1).query("who wrote dune", **QUERY)

    assert [result.to_json()["scored_by"] for result in (sure, doubtful)] == ["lexical", SCORERS]
    assert f"relations scored by lexical: confident without the others of {SCORERS}" in explain(sure)
    assert f"relations scored by {SCORERS}, all of them because the first ranker was in doubt" in explain(doubtful)


def test_a_scorer_that_fails_when_it_is_asked_is_named(sample_memory: Answerer, opened: Opened) -> None:
    answerer = opened(threshold=1.1)
    answerer.parts.scorers[READING] = Failing([])

    with pytest.raises(BrokenPlugin, match="scorer Failing failed"):
        answerer.query("who wrote dune", **QUERY)


def test_a_cascade_is_refused_once_its_first_ranker_is_another(opened: Opened, tmp_path: Path) -> None:
    answerer = opened()
    folder = model_folder(tmp_path, "ranker", BY_WORDS) / "n-gram lexical fact-count".replace(" ", "~")
    write_model(folder, Stamp(BY_WORDS, "others"), {}, file="nothing", write=lambda path: path.write_bytes(b""))

    with pytest.raises(
        CheckpointMismatch,
        match=r"changed since the ranker of .* was fitted after it; run kbtools train ranking again",
    ):
        Answerer(answerer.kb, models=tmp_path).query("who wrote dune", **QUERY)


def test_training_without_scorers_in_doubt_ends_a_cascade(
    opened: Opened, sample_memory: Answerer, valid: Path, tmp_path: Path
) -> None:
    opened(threshold=0.0)
    answerer = Answerer(sample_memory.kb, models=tmp_path)
    train_ranker(answerer, read_gold(valid, answerer.kb), answerer.system(**QUERY), ranker=BY_WORDS)

    assert Answerer(sample_memory.kb, models=tmp_path).query("who wrote dune", **QUERY).scored_by is None
    assert Reading.asked


def gather(answerer: Answerer) -> list[Pools]:
    """Prune the questions by their n-grams."""
    return answerer.opened(answerer.system(pruning="n-gram")).gather([Question.read(text) for text in QUESTIONS]).pools


def test_shares_and_mentions_are_those_of_each_question_alone(opened: Opened) -> None:
    answerer = opened()
    gathered = gather(answerer)
    pools = concatenate_pools(gathered)
    scores = np.random.default_rng(1).integers(-3 * MICRO, 0, pools.pairs)
    ends = np.cumsum([pool.pairs for pool in gathered]).tolist()
    own = [scores[end - pool.pairs : end] for pool, end in zip(gathered, ends, strict=True)]

    assert winner_shares(pools, scores).tolist() == pytest.approx(
        [1 / np.exp((some - some.max()) / MICRO).sum() if len(some) else 1.0 for some in own]
    )
    assert unruled_mentions(pools, scores, 1.0).tolist() == [
        bool((some[pool.subject_mention[pool.pair_subject] == mention] >= some.max(initial=-9e9) - MICRO).any())
        for pool, some in zip(gathered, own, strict=True)
        for mention in range(len(pool.mention_start))
    ]


@pytest.mark.parametrize("taken", [[True, True, False, True, False], [False] * 5, [True] * 5])
def test_pools_that_are_taken_out_are_those_put_together_without_the_others(
    sample_memory: Answerer, taken: list[bool]
) -> None:
    gathered = gather(sample_memory)
    kept = [pool for pool, is_kept in zip(gathered, taken, strict=True) if is_kept]

    pools = take_questions(concatenate_pools(gathered), np.array(taken))

    expected = concatenate_pools(kept)
    assert {kind: counts.tolist() for kind, counts in pools.counts.items()} == {
        kind: counts.tolist() for kind, counts in expected.counts.items()
    }
    assert [getattr(pools, name).tolist() for name in COLUMNS] == [getattr(expected, name).tolist() for name in COLUMNS]


FIRST = f"lexical/{READING}"


def test_scorers_behind_a_slash_are_asked_in_doubt_alone(sample_memory: Answerer) -> None:
    Reading.asked.clear()
    results = {text: sample_memory.query(text, scorer=FIRST, inverse=False) for text in QUESTIONS}
    late = {text for text, result in results.items() if result.scored_by == READING}
    assert late == {str(one.question.text) for one in Reading.asked}
    assert 0 < len(late) < len(QUESTIONS)
    assert {result.scorer for result in results.values()} == {FIRST}


def test_a_sure_question_is_ranked_as_by_the_first_scorer_alone(sample_memory: Answerer) -> None:
    text = "who created the character harry potter"
    cascade, alone = (sample_memory.query(text, scorer=scorer) for scorer in (FIRST, "lexical"))
    assert (cascade.scored_by, cascade.candidates) == ("lexical", alone.candidates)
    assert "lexical, confident without " in explain(cascade)


def test_batches_of_a_cascade_are_as_single_questions(sample_memory: Answerer) -> None:
    together = [replace(result, milliseconds=None) for result in sample_memory.query_many(QUESTIONS, scorer=FIRST)]
    alone = [replace(sample_memory.query(text, scorer=FIRST), milliseconds=None) for text in QUESTIONS]
    assert together == alone


def test_scorers_behind_a_slash_take_no_learned_ranker(sample_memory: Answerer) -> None:
    with pytest.raises(BadArgument, match="are ranked by weighted-sum"):
        sample_memory.query("who wrote it", scorer=FIRST, ranker="lightgbm")


def test_namesakes_are_no_doubt_to_relation_scorers(sample_memory: Answerer) -> None:
    opened = sample_memory.opened(sample_memory.system(pruning="n-gram", scorer="lexical"))
    texts = [Question.read(text) for text in QUESTIONS]
    pools = opened.gather_pools(texts)
    scores = opened.scoring.rate(opened.evidence(pools, texts)).scores
    pairs = winner_shares(pools, scores)
    relations = relation_shares(pools, scores)
    springfield = QUESTIONS.index("where is springfield")
    assert (relations >= pairs - 1e-9).all()
    assert pairs[springfield] < 0.5 < relations[springfield]


def test_a_relation_counts_by_its_best_candidate_of_a_mention(sample_memory: Answerer) -> None:
    gathered = gather(sample_memory)
    pools = concatenate_pools(gathered)
    scores = np.random.default_rng(2).integers(-3 * MICRO, 0, pools.pairs)
    best: list[dict[tuple[int, int], int]] = [{} for _ in gathered]
    for pair, question in enumerate(pools.question_of_pair.tolist()):
        key = int(pools.subject_mention[pools.pair_subject[pair]]), int(pools.relation_of_pair[pair])
        best[question][key] = max(best[question].get(key, -9 * MICRO), int(scores[pair]))

    shares = relation_shares(pools, scores)

    weights = [[np.exp((score - max(own.values())) / MICRO) for score in own.values()] for own in best]
    assert shares.tolist() == pytest.approx([1 / sum(own) if own else 1.0 for own in weights])


def test_of_mentions_that_are_not_read_a_scorer_says_the_mean_of_the_first(sample_memory: Answerer) -> None:
    pools = concatenate_pools(gather(sample_memory))
    _, sizes = pools.v_of_mention
    one, other = np.linspace(-4, 0, sizes.sum()), np.linspace(-1, -2, sizes.sum())
    read = np.arange(len(sizes)) % 2 == 0
    places = read.repeat(sizes)
    evidence = Evidence(pools, {"one": one, "other": other}, beside={"last": one, "lexical": other})

    whole = complete(evidence, {"last": one[places] - 7}, read, order=("other", "last", "one"))

    assert list(whole.v) == ["other", "last", "one"]
    assert whole.v["last"].tolist() == pytest.approx(np.where(places, one - 7, (one + other) / 2).tolist())
    assert (whole.v["one"] is one, whole.v["other"] is other, list(whole.beside)) == (True, True, ["lexical"])
