"""kbtools teach: learns questions with their meaning in a second, stored next to the knowledge base."""

from collections.abc import Iterator
from pathlib import Path

import click

from kbtools.answering.teaching import Lesson, TeachingReport, forget, read_lessons, report, require_file, teach
from kbtools.cli.commands import Command
from kbtools.cli.display import echo, echo_json
from kbtools.cli.homes import Home, kb_argument
from kbtools.cli.options import FILE, json_option, models_option
from kbtools.errors import BadQuestions
from kbtools.ranking.taught import file_bytes
from kbtools.storage import new_file
from kbtools.text.printable import plural

_SHOWN = 8
"""Most rejected questions that are listed with their reason."""


@click.command(
    "teach",
    cls=Command,
    examples=(
        "kbtools teach museum.kb questions.tsv",
        'kbtools teach museum.kb "who painted the night watch" "The Night Watch" creator',
    ),
)
@kb_argument("[FILE | QUESTION SUBJECT RELATION | QUESTION ANSWER]", joined=False, changed=True)
@models_option
@click.option("--list", "listing", is_flag=True, help="List the taught questions.")
@click.option("--remove", metavar="QUESTION", help="Forget a question.")
@click.option("--export", type=FILE, help="Write the taught questions to a file that kbtools teach can read.")
@json_option
def command(
    home: Home,
    text: tuple[str, ...],
    models: Path | None,
    listing: bool,
    remove: str | None,
    export: Path | None,
    as_json: bool,
) -> None:
    """Teach a knowledge base the meaning of questions, from a file or one at a time.

    SUBJECT and RELATION are ids or names. With an ANSWER alone, the subject and relation are found if only one pair
    leads to it. A FILE is a table with these columns, or JSON Lines. Taught questions are stored beside the knowledge
    base, and every query uses them. Without arguments, show how much teaching helps: each question is tested after
    learning from all the others.
    """
    if len(text) > 3:
        raise click.UsageError("give a FILE, or a QUESTION with SUBJECT and RELATION, each in quotes")
    if sum(map(bool, (text, listing, remove, export))) > 1:
        raise click.UsageError("use only one of a question, --list, --remove and --export")
    answerer = home.open(models=models)
    file = require_file(answerer)
    if listing:
        echo(*(f"{lesson.question} -> {lesson.subject} {lesson.relation}" for lesson in file.read()))
        return
    if export:
        with new_file(export) as written:
            written.write(file_bytes(file.read()))
        return
    if remove:
        if not forget(answerer, remove):
            raise click.UsageError(f"not taught: {remove!r}; kbtools teach --list shows the taught questions")
        echo(f"{file.path}: {plural(len(file.read()), 'question')}")
        return
    is_single = len(text) > 1
    lessons = read_lessons(Path(text[0])) if len(text) == 1 else [_read_words(text)] if text else []
    problems: list[str] = []
    teach(answerer, lessons, problems=problems)
    if is_single and not problems:
        echo(f"{file.path}: {plural(len(file.read()), 'question')}")
    elif not is_single:
        measured = report(answerer)
        if as_json:
            echo_json({"file": str(file.path), **measured.to_json()})
        else:
            echo(*_report_lines(measured, file.path))
    echo(*(f"not taught: {problem:.300}" for problem in problems[:_SHOWN]), err=True)
    if problems:
        raise BadQuestions(f"{len(problems):,} of {len(lessons):,} questions were not taught")


def _read_words(words: tuple[str, ...]) -> Lesson:
    """Return a question with subject and relation, or with an answer, from the arguments."""
    return Lesson(*words) if len(words) == 3 else Lesson(words[0], answer=words[1])


def _report_lines(measured: TeachingReport, path: Path) -> Iterator[str]:
    """Format the effect of taught questions."""
    yield f"{path}: {plural(measured.questions, 'question')}"
    if measured.left_out:
        yield f"left out: {measured.left_out:,} about an entity or a relation that the knowledge base lacks"
    if not measured.questions:
        return
    yield (
        f"correct, each after learning from the others: {measured.before:.1%} -> {measured.after:.1%}, a gain of "
        f"{100 * measured.low:+.1f} to {100 * measured.high:+.1f} points (95 %)"
    )
    for change in measured.relations:
        yield f"  {change.relation}: {plural(change.questions, 'question')}, {change.before:.0%} -> {change.after:.0%}"
    if measured.untaught:
        more = ", ..." if measured.untaught > len(measured.first_untaught) else ""
        yield f"untaught: {plural(measured.untaught, 'relation')}, {', '.join(measured.first_untaught)}{more}"
        yield "  they lose a little to taught relations: teach a question for each one that people ask about"
    yield from (f"still wrong: {question}" for question in measured.wrong)
