"""Taught questions: the file, the spellings that are one question, and what they add to scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbtools.errors import BadLine
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.linking.strict import link_strictly
from kbtools.ranking.pools import Pools, concatenate_pools, gather_pool
from kbtools.ranking.rankers import Rating, _Stage
from kbtools.ranking.score import MICRO
from kbtools.ranking.taught import (
    MOST_TAUGHT,
    SAME_GAIN,
    SUBJECT_GAIN,
    TaughtFile,
    TaughtQuestion,
    Teaching,
    file_bytes,
    prefer_taught,
    read_taught,
    same_text,
    taught_file,
)
from kbtools.text.question import MarkedQuestion, Question

HEADER = b"question\tsubject\trelation\n"
ONE, OTHER = TaughtQuestion("who flew it", "a", "pilot"), TaughtQuestion("wer flog ihn", "b", "pilot")
FACTS = [("a", "pilot", "p"), ("a", "maker", "m"), ("b", "pilot", "p"), ("b", "maker", "m"), ("c", "pilot", "p")]
NAMES = [("a", "Kite"), ("b", "Kite"), ("c", "Lamp")]


@pytest.fixture
def kb() -> MemoryKB:
    return MemoryKB(FACTS, NAMES)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Who flew it?", "who  flew it", True),
        (" who flew it ... ", "WHO FLEW IT!", True),
        ("Straße", "STRASSE", True),
        ("who flew, it", "who flew it", False),
        ("who flew the kite", "who flew kite", False),
    ],
)
def test_case_spaces_and_signs_at_the_ends_make_no_other_question(one: str, other: str, same: bool) -> None:
    assert (same_text(one) == same_text(other)) is same


@pytest.mark.parametrize(
    ("content", "questions"),
    [
        (b"", []),
        (HEADER, []),
        (file_bytes([ONE, OTHER]), [ONE, OTHER]),
        (b"\xef\xbb\xbf" + HEADER + b"\r\nwho flew it\ta\tpilot\r\n\n", [ONE]),
        (b"who flew it\ta\tpilot", [ONE]),
        (HEADER + HEADER, [TaughtQuestion("question", "subject", "relation")]),
    ],
)
def test_a_file_is_read_with_or_without_its_header(
    tmp_path: Path, content: bytes, questions: list[TaughtQuestion]
) -> None:
    (tmp_path / "taught.tsv").write_bytes(content)

    assert TaughtFile(tmp_path / "taught.tsv").read() == questions


@pytest.mark.parametrize("line", [b"who\ta", b"who\ta\tpilot\tx", b"who\t \tpilot", b"\xff\ta\tpilot"])
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "taught.tsv").write_bytes(file_bytes([ONE]) + line)

    with pytest.raises(BadLine, match=":3: ") as fault:
        TaughtFile(tmp_path / "taught.tsv").read()
    assert fault.value.facts == {"path": str(tmp_path / "taught.tsv"), "line": 3}


@pytest.mark.parametrize("more", [0, 1])
def test_a_file_has_at_most_twenty_thousand_questions(tmp_path: Path, more: int) -> None:
    file = TaughtFile(tmp_path / "taught.tsv")
    file.path.write_bytes(file_bytes([ONE] * (MOST_TAUGHT + more)))

    outcomes = []
    for change in (file.read, lambda: file.change(lambda questions: [ONE] * (MOST_TAUGHT + more))):
        try:
            outcomes.append(len(change()))
        except BadLine as error:
            outcomes.append(str(error).count("kbtools train"))

    assert MOST_TAUGHT == 20_000
    assert outcomes == ([1, 1] if more else [MOST_TAUGHT] * 2)


def test_a_change_replaces_the_questions(tmp_path: Path) -> None:
    file = TaughtFile(tmp_path / "taught.tsv")
    before = file.state()

    assert file.change(lambda questions: [*questions, ONE]) == [ONE]
    assert file.change(lambda questions: [OTHER, *questions]) == [OTHER, ONE]
    assert (before, file.read(), [*tmp_path.iterdir()]) == (None, [OTHER, ONE], [file.path])
    assert file.path.read_bytes() == HEADER + b"wer flog ihn\tb\tpilot\nwho flew it\ta\tpilot\n"


def test_the_file_lies_beside_the_knowledge_base_or_where_the_variable_says(
    kb: MemoryKB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KBTOOLS_TAUGHT", raising=False)
    files = [taught_file(kb)]
    monkeypatch.setattr(kb, "path", tmp_path / "kites.kb", raising=False)
    files.append(taught_file(kb))
    monkeypatch.setenv("KBTOOLS_TAUGHT", str(tmp_path / "other.tsv"))
    files.append(taught_file(kb))
    monkeypatch.setenv("KBTOOLS_TAUGHT", "")
    files.append(taught_file(kb))

    assert [file and file.path for file in files] == [
        None, tmp_path / "kites.kb.taught.tsv", tmp_path / "other.tsv", None,
    ]  # fmt: skip


def test_questions_of_unknown_subjects_or_relations_are_left_out(kb: MemoryKB) -> None:
    questions = [
        ONE,
        ONE._replace(subject="z"),
        OTHER,
        ONE._replace(relation="owner"),
        ONE._replace(relation="pilot⁻¹"),
    ]

    taught = read_taught(kb, questions)

    assert [*taught.questions] == [ONE, OTHER]
    assert kb.ids(taught.subjects.astype(np.uint32)) == ["a", "b"]
    assert taught.rows(["maker", "pilot"]).tolist() == [1, 1]
    assert [*taught.subset(np.array([False, True])).questions] == [OTHER]


def test_the_mention_of_a_taught_question_is_the_name_of_its_subject(kb: MemoryKB) -> None:
    taught = read_taught(kb, [TaughtQuestion("who flew the kite home", "a", "pilot"), ONE])

    assert [(marked.start, marked.end) for marked in taught.marked] == [(13, 17), (0, 0)]
    assert taught.marked[0].context() == ["who", "flew", "the", "home"]


class Sizes:
    """A scorer by the size of questions, which can be taught; facts read backwards score as those read forwards."""

    def __init__(self, relations: int) -> None:
        self.relations = relations

    def embed(self, questions: Sequence[MarkedQuestion]) -> np.ndarray:
        return np.array([[len(marked.question.text), 1] for marked in questions], dtype=np.float32)

    def score_embedded(self, vectors: np.ndarray, questions: Sequence[MarkedQuestion]) -> np.ndarray:
        return np.zeros((len(vectors), self.relations))

    def directed(self, scores: np.ndarray, questions: Sequence[MarkedQuestion]) -> np.ndarray:
        return np.concatenate([scores, scores], axis=1)


def test_what_is_learned_belongs_to_the_relations_and_directions_it_was_learned_for(
    kb: MemoryKB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTOOLS_TAUGHT", str(tmp_path / "taught.tsv"))
    monkeypatch.setenv("KBTOOLS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "taught.tsv").write_bytes(file_bytes([ONE, OTHER._replace(relation="^pilot")]))

    def learned(of: MemoryKB, teaching: Teaching, *, directed: bool) -> list[int]:
        scorer: Any = Sizes(len(of.relations))
        head = teaching.head(teaching.newest(), "sizes", scorer, scorer if directed else None, made_of="sizes 1")
        return sorted(set(head.relations.tolist())) if head else []

    more = MemoryKB([("a", "builder", "m"), *FACTS], NAMES)
    for one, pilot in ((kb, kb.relations.index("pilot")), (more, more.relations.index("pilot"))):
        teaching = Teaching(one)
        backwards = [pilot, len(one.relations) + pilot]
        assert [learned(one, teaching, directed=directed) for directed in (False, True)] == [[pilot], backwards]
    assert kb.relations.index("pilot") != more.relations.index("pilot")


def pools_of(kb: MemoryKB, texts: list[str]) -> Pools:
    return concatenate_pools([gather_pool(kb, link_strictly(kb, Question.read(text))) for text in texts])


@pytest.mark.parametrize(
    ("taught", "gains"),
    [
        ([], {}),
        ([ONE], {("a", "pilot"): [SUBJECT_GAIN * np.log(2)] * 2, ("a", "maker"): [SUBJECT_GAIN * np.log(2)] * 2}),
        (
            [ONE, ONE._replace(question="and who", relation="maker")],
            {("a", "pilot"): [SUBJECT_GAIN * np.log(3)] * 2, ("a", "maker"): [SUBJECT_GAIN * np.log(3)] * 2},
        ),
        (
            [TaughtQuestion("Who is the kite?", "b", "maker")],
            {
                ("b", "pilot"): [SUBJECT_GAIN * np.log(2)] * 2,
                ("b", "maker"): [SUBJECT_GAIN * np.log(2) + SAME_GAIN, SUBJECT_GAIN * np.log(2)],
            },
        ),
        ([TaughtQuestion("lamp", "c", "pilot")], {}),
        (
            [ONE, OTHER, OTHER._replace(question="und wer")],
            {
                **{("a", relation): [SUBJECT_GAIN * np.log(2)] * 2 for relation in ("pilot", "maker")},
                **{("b", relation): [SUBJECT_GAIN * np.log(3)] * 2 for relation in ("pilot", "maker")},
            },
        ),
    ],
)
def test_taught_subjects_gain_by_their_number_and_the_same_question_gets_its_pair(
    kb: MemoryKB, taught: list[TaughtQuestion], gains: dict[tuple[str, str], list[float]]
) -> None:
    texts = ["who is the kite", "where is the kite"]
    pools = pools_of(kb, texts)
    base = np.arange(pools.pairs) * MICRO
    rating = Rating(base, lambda pairs: {"relation": base[pairs] / MICRO}, (_Stage(("one",)),))
    every = np.arange(pools.pairs)

    preferred = (
        prefer_taught(read_taught(kb, taught), kb.relations, rating, pools, [*map(Question.read, texts)])
        if taught
        else rating
    )

    subjects, relations = kb.ids(pools.subject_of_pair), [kb.relations[row] for row in pools.relation_of_pair]
    expected = [
        gains.get(pair, [0.0, 0.0])[question]
        for *pair_, question in zip(subjects, relations, pools.question_of_pair.tolist(), strict=True)
        for pair in [tuple(pair_)]
    ]
    assert ((preferred.scores - base) / MICRO).tolist() == pytest.approx(expected, abs=1e-6)
    parts: dict[str, Any] = preferred.parts(every)
    assert parts["relation"].tolist() == (base / MICRO).tolist()
    assert parts.get("taught", np.zeros(pools.pairs)).tolist() == pytest.approx(expected)
    assert ("taught" in parts) is any(expected)


def test_the_gains_are_those_that_were_measured() -> None:
    assert (SUBJECT_GAIN, SAME_GAIN) == (0.3, 20.0)
