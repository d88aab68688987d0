"""Taught questions are kept beside the knowledge base, used by every query, and measured by what they change."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import kbtools
from kbtools.answering.answerer import Answerer, open_kb
from kbtools.answering.teaching import Lesson, read_lessons, report, taught_lines, teach
from kbtools.errors import BadArgument, BadLine, BadQuestions, DiskFull, WrongFormat
from kbtools.ranking import models
from kbtools.ranking.taught import MOST_TAUGHT, VARIABLE

JINGLING = (
    Lesson("what jingles in France", "France", "official language"),
    Lesson("what jingles in Poland", "Poland", "official language"),
    Lesson("which sound jingles in Slovakia", "Slovakia", "official language"),
)
"""Questions that mean another relation than their words."""

PAYING = (
    Lesson("what do people pay with in Japan", "Japan", "currency used"),
    Lesson("which money do you need in Poland", "Poland", "currency used"),
)
CURRENCY, LANGUAGE = "location.country.currency_used", "location.country.official_language"


@pytest.fixture
def kb(sample_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Answerer]:
    """Open a copy of the sample, whose default ranks by static vectors."""
    monkeypatch.setenv(models.VARIABLE, models.STATIC)
    folder = shutil.copytree(sample_path, tmp_path / "sample.kb")
    with open_kb(folder) as answerer:
        yield answerer


def taught_path(kb: Answerer) -> Path:
    assert kb.teaching.file
    return kb.teaching.file.path


def first_relation(kb: Answerer, question: str) -> str:
    return kb.query(question).candidates[0].relation


def test_questions_like_those_taught_get_the_taught_relation(kb: Answerer) -> None:
    asked = "what jingles in Germany"
    before = first_relation(kb, asked)

    teach(kb, JINGLING + PAYING)

    assert before != LANGUAGE
    assert first_relation(kb, asked) == LANGUAGE
    assert kb.query(asked).taught == 5


def test_the_very_question_gets_its_pair_whatever_its_words_say(kb: Answerer) -> None:
    kb.teach("what is the capital of France?", "France", "currency_used")

    assert first_relation(kb, "What is the capital of  France") == CURRENCY
    assert first_relation(kb, "what is the capital of Germany") == "location.country.capital"


def test_taught_questions_survive_a_rebuild_and_are_known_to_the_next_process(kb: Answerer, sample_path: Path) -> None:
    teach(kb, JINGLING)
    folder = Path(kb.kb.path)  # type: ignore[attr-defined] # a folder

    shutil.rmtree(folder)
    shutil.copytree(sample_path, folder)

    with open_kb(folder) as rebuilt:
        assert first_relation(rebuilt, "what jingles in Germany") == LANGUAGE


def test_an_open_knowledge_base_sees_what_another_process_teaches(kb: Answerer) -> None:
    with open_kb(kb.kb.path) as other:  # type: ignore[attr-defined] # a folder
        assert other.query("what jingles in France").taught is None
        teach(kb, JINGLING)

        assert other.query("what jingles in France").taught == 3


def test_a_forgotten_question_changes_nothing(kb: Answerer) -> None:
    before = kb.query("what jingles in Germany").candidates
    teach(kb, JINGLING)

    assert all(kb.forget(lesson.question) for lesson in JINGLING)

    assert kb.query("what jingles in Germany").candidates == before
    assert not kb.forget("what jingles in France")


def test_a_question_taught_again_is_replaced(kb: Answerer) -> None:
    kb.teach("what about France", "France", "capital")
    kb.teach("What about France?", "France", "currency used")

    assert len(taught_path(kb).read_text().splitlines()) == 2
    assert first_relation(kb, "what about France") == CURRENCY


def test_an_answer_alone_tells_what_was_meant(kb: Answerer) -> None:
    taught = kb.teach("what do they use to pay in France", answer="Euro")

    assert (taught.subject, taught.relation) == ("m.0f8l9c", CURRENCY)


def test_an_answer_may_be_an_id_a_name_or_the_text_of_a_value(tmp_path: Path) -> None:
    kb = kbtools.index(
        table=[{"id": "x", "name": "Acme", "staff": "17", "boss_id": "b"}, {"id": "b", "name": "Ann"}],
        out=tmp_path / "firms.kb",
    )

    relations = [kb.teach("who or what is it at Acme", answer=answer).relation for answer in ("b", "Ann", "17")]

    assert relations == ["boss_id", "boss_id", "staff"]
    with pytest.raises(BadQuestions, match="have the answer nobody"):
        kb.teach("who or what is it at Acme", answer="nobody")


def test_an_answer_that_several_pairs_lead_to_is_refused_with_the_pairs(kb: Answerer) -> None:
    with pytest.raises(BadQuestions, match=r"2 pairs have this answer.*location.location.contains"):
        kb.teach("paris is where in France", answer="Paris")
    assert not taught_path(kb).exists()


def test_a_subject_that_several_entities_may_be_is_chosen_by_its_id(tmp_path: Path) -> None:
    rows = [{"id": number, "name": "Night Clock", "maker": maker} for number, maker in (("A5", "Lee"), ("A6", "Vik"))]
    kb = kbtools.index(table=rows, out=tmp_path / "museum.kb")
    with pytest.raises(BadQuestions, match="2 pairs fit, choose one with the ids of its subject and relation: A5"):
        kb.teach("who made it", "Night Clock", "maker")


@pytest.mark.parametrize(
    ("lesson", "problem"),
    [
        (Lesson("who", "Narnia", "capital"), "no entity has the id or the name 'Narnia'"),
        (Lesson("who", "France", "smell"), "no relation has the id or the label 'smell'"),
        (Lesson("who", "Japan", "official language"), "no fact has Japan official language"),
        (Lesson("what about France", answer="Narnia"), "no subject and relation in it have the answer Narnia"),
        (Lesson("", "France", "capital"), "expected a question"),
        (Lesson("who", "France"), "expected a question"),
    ],
)
def test_what_cannot_be_taught_is_told_and_nothing_is_kept(kb: Answerer, lesson: Lesson, problem: str) -> None:
    problems: list[str] = []

    teach(kb, [lesson, *JINGLING], problems=problems)

    assert problem in problems[0]
    assert len(taught_path(kb).read_text().splitlines()) == 1 + len(JINGLING)


def test_an_unknown_relation_is_refused_with_the_first_ten(kb: Answerer) -> None:
    with pytest.raises(BadQuestions) as refused:
        kb.teach("who smells France", "France", "smell")

    assert str(refused.value).endswith(f"there are {', '.join(map(repr, kb.kb.relations[:10]))}, ...")


def test_facts_can_be_taught_backwards(kb: Answerer) -> None:
    kb.teach("which land has Paris at its head", "Paris", "^location.country.capital")

    result = kb.query("which land has Paris at its head", inverse=True)

    assert result.candidates[0].inverse
    assert result.answers[0].name == "France"


def test_each_question_is_measured_after_the_others_were_taught(kb: Answerer) -> None:
    teach(kb, JINGLING + PAYING)

    measured = report(kb)

    assert measured.questions == 5
    assert measured.before < measured.after
    assert {one.relation: one.questions for one in measured.relations} == {CURRENCY: 2, LANGUAGE: 3}
    assert CURRENCY not in measured.first_untaught
    assert measured.wrong == ()
    assert measured.untaught == len(kb.kb.relations) - 2 > 20
    assert (
        measured.first_untaught
        == tuple(relation for relation in kb.kb.relations if relation not in (CURRENCY, LANGUAGE))[:20]
    )
    weighed = sum(one.questions * one.after for one in measured.relations) / 5
    assert measured.after == pytest.approx(weighed)
    assert measured.low <= measured.after - measured.before <= measured.high


def test_an_explanation_names_the_nearest_question_and_what_it_changed(kb: Answerer) -> None:
    teach(kb, JINGLING + PAYING)

    lines = "\n".join(taught_lines(kb, kb.query("what jingles in Germany")))

    assert "taught by 5 questions" in lines
    assert "nearest: 'what jingles in " in lines
    assert float(lines.partition("cosine ")[2].splitlines()[0]) > 0.5
    assert "without it m.0345h" in lines
    assert len(lines.splitlines()) == 3
    same = taught_lines(kb, kb.query("who wrote dune"))
    assert same[-1] == "  the first candidate is the same without teaching"
    assert len(same) == 3


def test_questions_about_what_the_knowledge_base_lacks_are_left_out(kb: Answerer) -> None:
    teach(kb, JINGLING)
    with taught_path(kb).open("a") as file:
        file.write("where is Narnia\tm.narnia\tlocation.location.containedby\n")

    assert kb.query("what jingles in France").taught == 3
    assert report(kb).left_out == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"question\tsubject\trelation\nwho\tm.0f8l9c\n", ":2: expected a question"),
        (b"\xff\xfe\x00who\ta\tb\n", ":1: expected a question"),
        (b"who\t\tb\n", ":1: expected a question"),
        (b"x" * 50_000, ":1: expected a question"),
        (b"q\ta\tb\n" * (MOST_TAUGHT + 1), "more than 20,000 questions"),
    ],
)
def test_a_damaged_file_is_told_by_its_line(kb: Answerer, content: bytes, problem: str) -> None:
    taught_path(kb).write_bytes(content)

    with pytest.raises(BadLine, match=problem):
        kb.query("what jingles in France")


def test_a_file_damaged_later_leaves_what_was_taught_before(kb: Answerer) -> None:
    teach(kb, JINGLING)
    assert kb.query("what jingles in France").taught == 3

    taught_path(kb).write_bytes(b"who\n")

    assert kb.query("what jingles in France").taught == 3


def test_a_damaged_head_in_the_cache_is_learned_anew(
    kb: Answerer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTOOLS_CACHE", str(tmp_path / "cache"))
    teach(kb, JINGLING)
    relation = first_relation(kb, "what jingles in Germany")
    for head in (tmp_path / "cache" / "taught").iterdir():
        head.write_bytes(head.read_bytes()[:-9])

    with open_kb(kb.kb.path) as other:  # type: ignore[attr-defined] # a folder
        assert first_relation(other, "what jingles in Germany") == relation


def test_two_who_teach_at_once_both_teach(kb: Answerer) -> None:
    lessons = [Lesson(f"question {number} about France", "France", "capital") for number in range(8)]
    threads = [threading.Thread(target=teach, args=(kb, [lesson])) for lesson in lessons]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(taught_path(kb).read_text().splitlines()) == 1 + len(lessons)


def test_without_a_folder_nothing_can_be_taught_unless_a_file_is_named(
    sample_memory: Answerer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadArgument, match="KBTOOLS_TAUGHT"):
        sample_memory.teach("what about France", "France", "capital")

    monkeypatch.setenv(VARIABLE, str(tmp_path / "taught.tsv"))

    Answerer(sample_memory.kb).teach("what about France", "France", "capital")
    assert (tmp_path / "taught.tsv").exists()


def test_an_empty_name_of_the_file_turns_teaching_off(kb: Answerer, monkeypatch: pytest.MonkeyPatch) -> None:
    teach(kb, JINGLING)
    monkeypatch.setenv(VARIABLE, "")

    with open_kb(kb.kb.path) as untaught:  # type: ignore[attr-defined] # a folder
        assert untaught.query("what jingles in France").taught is None


@pytest.mark.parametrize(
    "content",
    [
        "question\tsubject\trelation\nwhat about France\tFrance\tcapital\n",
        "what about France\tFrance\tcapital\n",
        "Relation,Question,Subject\ncapital,what about France,France\n",
        "France\tcapital\tm.05qtj\twhat about France\n",
        '{"question": "what about France", "subject": "France", "relation": "capital"}\n\n',
        "\ufeffquestion,subject,relation\r\nwhat about France,France,capital\r\n",
    ],
)
def test_lessons_are_read_from_tables_and_json_lines(content: str, tmp_path: Path) -> None:
    file = tmp_path / "lessons"
    file.write_text(content, encoding="utf-8", newline="")

    (lesson,) = read_lessons(file)

    assert lesson == Lesson("what about France", "France", "capital")


def test_a_table_of_questions_and_answers_is_read(tmp_path: Path) -> None:
    file = tmp_path / "lessons.tsv"
    file.write_text("what about France\tParis\n")

    assert read_lessons(file) == [Lesson("what about France", answer="Paris")]


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe\x00\xd8", b"what about France\n", b'{"question": "who"}\n', b'{"question": \n', b"question\twho\n,\n"],
)
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "lessons"
    file.write_bytes(content)

    with pytest.raises(WrongFormat, match="lessons"):
        read_lessons(file)


def test_a_full_disk_leaves_what_was_taught_before(
    sample_memory: Answerer, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(small_disk / "taught.tsv"))
    kb = Answerer(sample_memory.kb)
    kb.teach("what about France", "France", "capital")
    before = (small_disk / "taught.tsv").read_bytes()
    fill(small_disk / "full")

    with pytest.raises(DiskFull):
        teach(kb, [Lesson(f"{'word ' * 300}{number}", "France", "capital") for number in range(20)])

    assert (small_disk / "taught.tsv").read_bytes() == before
    assert {path.name for path in small_disk.iterdir()} == {"full", "taught.tsv"}


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def test_lessons_may_be_separated_by_semicolons_in_the_encoding_of_a_spreadsheet(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_bytes("question;answer\nwo, bitte, liegt Köln;Rhein\n".encode("cp1252"))
    (lesson,) = read_lessons(tmp_path / "q.csv")
    assert (lesson.question, lesson.answer) == ("wo, bitte, liegt Köln", "Rhein")
