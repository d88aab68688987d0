"""Question files: what each line gives, and what bad input gets."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion, find_relations, read_annotated, read_gold, read_questions
from kbtools.errors import BadLine, KBToolsError, SourceEmpty, SourceMissing, WrongFormat
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import KnowledgeBase

GOLD = "www.freebase.com/m/0a\twww.freebase.com/book/author\twww.freebase.com/m/0b\twho wrote it?"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str | bytes], Path]:
    def write(content: str | bytes) -> Path:
        path = tmp_path / "questions.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_an_annotated_line_gives_canonical_ids_and_its_question(write: Callable[[str | bytes], Path]) -> None:
    assert list(read_annotated(write(GOLD + "\n"))) == [
        AnnotatedQuestion("m.0a", "book.author", "m.0b", "who wrote it?")
    ]


@pytest.mark.parametrize("content", [GOLD, GOLD + "\n", GOLD + "\r\n", "\ufeff" + GOLD + "\n", "\n" + GOLD + "\n\n"])
def test_line_ends_marks_and_blank_lines_change_nothing(write: Callable[[str | bytes], Path], content: str) -> None:
    (one,) = read_annotated(write(content))
    assert (one.subject, one.text) == ("m.0a", "who wrote it?")


def test_a_question_keeps_its_spaces_and_letters(write: Callable[[str | bytes], Path]) -> None:
    (one,) = read_annotated(write(GOLD.replace("who wrote it?", ' Who  wrote ŁÓDŹ \\ "x" ')))
    assert one.text == ' Who  wrote ŁÓDŹ \\ "x" '


def test_questions_are_the_last_column_of_every_line(write: Callable[[str | bytes], Path]) -> None:
    assert list(read_questions(write(f"who wrote it\n\n{GOLD}\nwhere is x"))) == [
        "who wrote it",
        "",
        "who wrote it?",
        "where is x",
    ]


@pytest.mark.parametrize("line", ["one", "a\tb\tc", GOLD + "\tmore"])
def test_a_wrong_number_of_columns_is_named_with_its_line(write: Callable[[str | bytes], Path], line: str) -> None:
    path = write(f"{GOLD}\n{line}\n")
    with pytest.raises(BadLine, match=rf"questions\.txt:2: found {line.count(chr(9)) + 1} columns"):
        list(read_annotated(path))


@pytest.mark.parametrize("read", [read_annotated, read_questions])
@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("", SourceEmpty, "empty"),
        ("<!DOCTYPE html>\n<html></html>\n", WrongFormat, "web page"),
        ("<html>\n", WrongFormat, "web page"),
        (GOLD.encode() + b"\n\xff\xfe\n", BadLine, "questions.txt:2: found invalid UTF-8"),
    ],
)
def test_what_is_no_file_of_questions_is_refused(
    write: Callable[[str | bytes], Path],
    read: Callable[..., Any],
    content: bytes | str,
    error: type[KBToolsError],
    message: str,
) -> None:
    path = write(content)
    with pytest.raises(error, match=message):
        list(read(path))


@pytest.mark.parametrize("read", [read_annotated, read_questions])
def test_a_missing_file_is_named(tmp_path: Path, read: Callable[..., Any]) -> None:
    with pytest.raises(SourceMissing, match=r"absent\.txt: no such file"):
        list(read(tmp_path / "absent.txt"))
    with pytest.raises(SourceMissing):
        list(read(tmp_path))


def test_every_question_of_the_sample_is_annotated(examples: Path, sample_memory: Answerer) -> None:
    questions = [
        one for split in ("train", "valid", "test") for one in read_annotated(examples / f"sample.{split}.txt")
    ]
    assert len(questions) == 202
    assert None not in sample_memory.kb.rows([one.subject for one in questions])
    assert {one.relation for one in questions} <= set(sample_memory.kb.relations)


HEADER = "subject\trelation\tobject\tquestion"


@pytest.mark.parametrize(
    "header", [HEADER, "Subject\tPredicate\tObject\tText", "s_id\tp\to\tq", "head\trelation\ttail\tx"]
)
def test_a_header_is_left_out_and_named(
    write: Callable[[str | bytes], Path], header: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(f"{header}\n{GOLD}\n")

    assert [gold.text for gold in read_annotated(path)] == ["who wrote it?"]
    assert list(read_questions(path)) == ["who wrote it?"]
    assert caplog.messages == [f"{path}:1: skipped the header, {header!r}"] * 2


@pytest.mark.parametrize(
    "line", ["m.0a\tbook.author\tm.0b\tobject", "a\tsubject\tb\tquestion", HEADER.replace("\t", " ")]
)
def test_a_question_is_no_header(write: Callable[[str | bytes], Path], line: str) -> None:
    assert len(list(read_questions(write(f"{line}\n")))) == 1


WD, DBO = "http://www.wikidata.org/", "http://dbpedia.org/ontology/"


@pytest.mark.parametrize(
    ("line", "gold"),
    [
        ("Q1\tP19\tQ2", (f"{WD}entity/Q1", f"{WD}prop/direct/P19", f"{WD}entity/Q2")),
        ("wd:Q1\twdt:P19\twd:Q2", (f"{WD}entity/Q1", f"{WD}prop/direct/P19", f"{WD}entity/Q2")),
        (f"{WD}entity/Q1\t{WD}entity/P19\tQ7", (f"{WD}entity/Q1", f"{WD}prop/direct/P19", "Q7")),
        (f"Q1\tbirthPlace\t{WD}entity/Q3", (f"{WD}entity/Q1", f"{DBO}birthPlace", "Q3")),
        ("Q1\tdbo:birthPlace\tnobody", (f"{WD}entity/Q1", f"{DBO}birthPlace", "nobody")),
        ("Q1\tname\tQ2", (f"{WD}entity/Q1", "name", f"{WD}entity/Q2")),
    ],
)
def test_ids_of_gold_are_written_as_the_knowledge_base_does(
    write: Callable[[str | bytes], Path], line: str, gold: tuple[str, str, str]
) -> None:
    kb = MemoryKB(
        [
            (f"{WD}entity/Q1", f"{WD}prop/direct/P19", f"{WD}entity/Q2"),
            (f"{WD}entity/Q1", f"{DBO}birthPlace", "Q3"),
            ("Q3", "http://a/name", "Q3"),
            ("Q3", "http://b#name", "Q3"),
        ]
    )

    (question,) = read_gold(write(f"{line}\twhere?\n"), kb)

    assert (question.subject, question.relation, question.object) == gold
    subject, relation, answer = line.split("\t")
    assert read_gold([AnnotatedQuestion(subject, relation, answer, "where?")], kb) == [question]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("who wrote it\n".encode("utf-16"), "found UTF-16, expected UTF-8; convert it with: iconv -f UTF-16 -t UTF-8"),
        ("who wrote it\n".encode("utf-16-le"), "found UTF-16LE, expected UTF-8; convert it with: iconv -f UTF-16LE"),
        (gzip.compress(b"who wrote it\n", mtime=0), "found compressed data, expected questions; decompress it"),
        ('{"question": "who wrote it"}\n', "found JSON, expected one question per line; convert it with: jq -r"),
        ('id,question\n1,"who, then"\n', "found columns separated by commas, expected one question per line"),
    ],
)
@pytest.mark.parametrize("read", [read_annotated, read_questions])
def test_a_file_that_holds_no_lines_of_questions_says_what_it_is(
    write: Callable[[str | bytes], Path], read: Callable[[Path], Any], content: str | bytes, problem: str
) -> None:
    with pytest.raises(WrongFormat, match=rf"questions\.txt:1: {problem}"):
        list(read(write(content)))


@pytest.mark.parametrize("header", ["question", "Questions", "id\tquestion", "entity\tpredicate\tanswer\tquestion"])
def test_a_head_above_the_questions_is_left_out_and_named(
    write: Callable[[str | bytes], Path], caplog: pytest.LogCaptureFixture, header: str
) -> None:
    line = "\t" * header.count("\t") + "who wrote it"
    assert list(read_questions(write(f"{header}\n{line}\n"))) == ["who wrote it"]
    assert f"skipped the header, {header!r}" in caplog.text


@pytest.fixture(scope="module")
def related(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeBase:
    ids = ("book.author", "film.author", "book.editor", "P50", "P98", "http://dbpedia.org/ontology/birthPlace")
    labels = [("P50", "written by"), ("P98", "editor")]
    facts = [("a", relation, "b") for relation in ids]
    return kbtools.index(
        facts=facts, names=[("a", "Ann")], relations=labels, out=tmp_path_factory.mktemp("related") / "kb"
    ).kb


@pytest.mark.parametrize(
    ("spelling", "relations"),
    [
        ("http://dbpedia.org/ontology/birthPlace", ["http://dbpedia.org/ontology/birthPlace"]),
        ("birthPlace", ["http://dbpedia.org/ontology/birthPlace"]),
        ("birth_place", ["http://dbpedia.org/ontology/birthPlace"]),
        ("Written By", ["P50"]),
        ("author", ["book.author", "film.author"]),
        ("film.author", ["film.author"]),
        pytest.param("editor", ["P98"], id="a label goes before the last words of another id"),
        ("book", []),
        ("", []),
    ],
)
def test_a_relation_is_found_by_its_id_its_label_or_the_last_words_of_its_id(
    related: KnowledgeBase, spelling: str, relations: list[str]
) -> None:
    assert find_relations(related, spelling) == relations
