"""Question files: the release's annotated format, and one question a line."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kbtools.errors import BadLine, SourceEmpty, SourceMissing, WrongFormat
from kbtools.kb.ids import canonical_id, canonical_property


@dataclass(frozen=True, slots=True)
class AnnotatedQuestion:
    """A question with its gold fact, ids in canonical form."""

    subject: str
    relation: str
    object: str
    text: str


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a question file with their numbers; raise InputError where it is none."""
    if not path.is_file():
        raise SourceMissing(f"{path}: no such file of questions", path=str(path))
    if not path.stat().st_size:
        raise SourceEmpty(f"{path}: the file of questions is empty", path=str(path))
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            try:
                line = raw.decode().removeprefix("\ufeff").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise BadLine(f"{path}:{number}: found invalid UTF-8 ({error.reason}), expected a question") from error
            if number == 1 and line.lstrip().lower().startswith(("<!doctype", "<html")):
                raise WrongFormat(f"{path}:1: found a web page, expected questions; the link is probably dead")
            yield number, line


def read_questions(path: Path) -> Iterator[str]:
    """Yield the questions of a file: of each line its last column."""
    for _, line in read_lines(path):
        yield line.rsplit("\t", 1)[-1]


def read_annotated(path: Path) -> Iterator[AnnotatedQuestion]:
    """Yield the questions of an annotated file; raise BadLine for a line that has not four columns."""
    for number, line in read_lines(path):
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) != 4:
            raise BadLine(
                f"{path}:{number}: found {len(columns)} columns, expected subject, relation, object and question",
                path=str(path),
                line=number,
            )
        subject, target = canonical_id(columns[0].strip()), canonical_id(columns[2].strip())
        yield AnnotatedQuestion(subject, canonical_property(columns[1].strip(), beside=subject), target, columns[3])
