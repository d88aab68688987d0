"""Question files: the annotated format of SimpleQuestions, or one question per line."""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kbtools.errors import BadLine, SourceEmpty, SourceMissing, WrongFormat
from kbtools.kb.contract import KnowledgeBase, relation_texts
from kbtools.kb.ids import canonical_id, canonical_property, other_spellings
from kbtools.kb.language_tags import spoken_texts
from kbtools.kb.table_heads import is_header
from kbtools.kb.views import MARK
from kbtools.text.encodings import wide_encoding
from kbtools.text.normaliser import normal_form
from kbtools.text.relation_words import relation_parts

logger = logging.getLogger(__name__)

_HEAD = 4096
"""Bytes at the start of a file that are checked for its format."""

_PACKED = (b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"BZh", b"PK\x03\x04")
"""The first bytes of gzip, xz, zstd, bzip2 and ZIP files."""


@dataclass(frozen=True, slots=True)
class AnnotatedQuestion:
    """A question with its gold fact; ids are in canonical form."""

    subject: str
    relation: str
    object: str
    text: str


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a question file; raise InputError if it is not one."""
    if not path.is_file():
        raise SourceMissing.at(path, "no such file of questions")
    if not path.stat().st_size:
        raise SourceEmpty.at(path, "the file of questions is empty")
    with path.open("rb") as file:
        _refuse_beginning(path, file.peek(_HEAD)[:_HEAD])
        for number, raw in enumerate(file, 1):
            try:
                line = raw.decode().removeprefix("\ufeff").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise BadLine(f"{path}:{number}: found invalid UTF-8 ({error.reason}), expected a question") from error
            yield number, line


def _refuse_beginning(path: Path, start: bytes) -> None:
    """Raise WrongFormat with advice if a file does not start like lines of questions."""
    line = start.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n")[0].lower()
    heads = {cell.strip(b' \r"') for cell in line.split(b",")}
    if encoding := wide_encoding(start):
        problem = f"found {encoding}, expected UTF-8; convert it with: iconv -f {encoding} -t UTF-8"
    elif start.startswith(_PACKED):
        problem = "found compressed data, expected questions; decompress it"
    elif line.startswith((b"<!doctype", b"<html")):
        problem = "found a web page, expected questions; the link is probably dead"
    elif line.startswith(b'{"'):
        problem = "found JSON, expected one question per line; convert it with: jq -r .question FILE"
    elif len(heads) > 1 and heads & {b"question", b"questions"}:
        problem = "found columns separated by commas, expected one question per line; save only the column of questions"
    else:
        return
    raise WrongFormat(f"{path}:1: {problem}", path=str(path))


def read_questions(path: Path) -> Iterator[str]:
    """Yield the questions of a file, which are the last column of each line."""
    for number, line in _read_lines(path):
        if not _begins_with_header(path, number, line):
            yield line.rsplit("\t", 1)[-1]


def _begins_with_header(path: Path, number: int, line: str) -> bool:
    """Return whether a line is the header of its file, and warn that it is skipped."""
    cells = line.split("\t")
    is_named = cells[-1].strip().casefold() in ("question", "questions")
    # Beside a head "question", one head of a gold fact is enough.
    header = number == 1 and (is_header(cells, least=2 - is_named) if len(cells) == 4 else is_named)
    if header:
        logger.warning("%s:1: skipped the header, %r", path, line)
    return header


def read_annotated(path: Path) -> Iterator[AnnotatedQuestion]:
    """Yield the questions of an annotated file; raise BadLine for a line without four columns."""
    for number, line in _read_lines(path):
        if not line.strip() or _begins_with_header(path, number, line):
            continue
        columns = line.split("\t")
        if len(columns) != 4:
            raise BadLine.at(
                path, f"found {len(columns)} columns, expected subject, relation, object and question", line=number
            )
        subject, target = canonical_id(columns[0].strip()), canonical_id(columns[2].strip())
        yield AnnotatedQuestion(subject, _read_relation(columns[1].strip(), beside=subject), target, columns[3])


def _read_relation(spelling: str, *, beside: str) -> str:
    """Return the canonical id of a relation or of its inverse."""
    mark = MARK if spelling.startswith(MARK) else ""
    return mark + canonical_property(spelling.removeprefix(MARK), beside=beside)


def read_gold(questions: Path | Iterable[AnnotatedQuestion], kb: KnowledgeBase) -> list[AnnotatedQuestion]:
    """Return annotated questions with ids as the knowledge base spells them; unknown ids stay unchanged.

    Short ids are expanded (`Q42`, `dbr:Berlin`), merged ids are replaced, and a relation may be given by its last part
    if that is unique.
    """
    questions = list(read_annotated(questions) if isinstance(questions, Path) else questions)
    entities = spell_entities(kb, {spelling for gold in questions for spelling in (gold.subject, gold.object)})
    relations = _spell_relations(kb.relations, {gold.relation for gold in questions})
    return [
        replace(
            gold,
            subject=entities.get(gold.subject, gold.subject),
            relation=relations.get(gold.relation, gold.relation),
            object=entities.get(gold.object, gold.object),
        )
        for gold in questions
    ]


def spell_entities(kb: KnowledgeBase, spellings: Iterable[str]) -> dict[str, str]:
    """Return the id in the knowledge base for each spelling that has one."""
    ids = sorted(spellings)
    # As spelt first, then all other spellings of the rest: two look-ups for any number of ids.
    rows = dict(zip(ids, kb.rows(ids), strict=True))
    others = {spelling: other_spellings(spelling) for spelling, row in rows.items() if row is None}
    candidates = sorted({other for spelt in others.values() for other in spelt})
    candidate_rows = dict(zip(candidates, kb.rows(candidates), strict=True))
    for spelling, spelt in others.items():
        rows[spelling] = next((candidate_rows[other] for other in spelt if candidate_rows[other] is not None), None)
    known = [(spelling, row) for spelling, row in rows.items() if row is not None]
    entity_ids = kb.ids(np.array([row for _, row in known], dtype=np.uint32))
    return {spelling: entity_id for (spelling, _), entity_id in zip(known, entity_ids, strict=True)}


def find_relations(kb: KnowledgeBase, spelling: str) -> list[str]:
    """Return the relations with an id, or else with a label in any language, or else with such a last part of the
    id."""
    exact = _spell_relations(kb.relations, [spelling]).get(spelling, spelling)
    if exact in kb.relations:
        return [exact]
    wanted = normal_form(spelling)
    texts = {
        relation: text
        for relation, text in zip(kb.relations, relation_texts(kb), strict=True)
        if not relation.startswith(MARK)
    }
    labelled = [relation for relation, text in texts.items() if wanted in map(normal_form, spoken_texts(text))]
    return labelled or [relation for relation in texts if [wanted] == [*map(" ".join, relation_parts(relation)[-1:])]]


def _spell_relations(relations: Sequence[str], spellings: Iterable[str]) -> dict[str, str]:
    """Return the relation in the knowledge base for each spelling that has one."""
    known = set(relations)
    stored = [relation for relation in relations if not relation.startswith(MARK)]
    last = {relation: re.split("[/#]", relation)[-1] for relation in stored if "://" in relation}
    counts = Counter(last.values())
    by_last = {part: relation for relation, part in last.items() if counts[part] == 1}
    spelt = {}
    for spelling in spellings:
        mark, plain = (MARK, spelling.removeprefix(MARK)) if spelling.startswith(MARK) else ("", spelling)
        full = next((other for other in other_spellings(plain) if mark + other in known), by_last.get(plain))
        if spelling not in known and full:
            spelt[spelling] = mark + full
    return spelt
