"""kbtools query: answers questions, with the ranked candidates."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from io import UnsupportedOperation
from pathlib import Path

import click

from kbtools.answering.answerer import Answerer
from kbtools.answering.explaining import explained_lines, table_lines
from kbtools.answering.limits import ANSWERS, TOP
from kbtools.answering.query_options import QueryOptions
from kbtools.answering.questions import read_questions
from kbtools.answering.results import Result
from kbtools.answering.sparql import winner_query
from kbtools.answering.teaching import taught_lines
from kbtools.cli.commands import Command
from kbtools.cli.display import ResultPrinter, counted, echo, echo_json
from kbtools.cli.homes import Home, kb_argument
from kbtools.cli.options import (
    FILE,
    KB_FIRST,
    Between,
    inverse_option,
    lang_option,
    models_option,
    output_option,
    require_text,
)
from kbtools.errors import KBToolsError
from kbtools.read_ahead import lines_at_hand

UNSURE = 3
"""The exit code if several readings of a single question are equally likely; in a stream, records contain this."""


def open_standard_input() -> Iterable[bytes]:
    """Open standard input again: a thread waiting in `sys.stdin` itself would crash Python at exit."""
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except UnsupportedOperation:  # A stand-in without a file.
        return sys.stdin.buffer


def texts(question: str | None, path: Path | None) -> Iterator[str]:
    """Yield the texts of a file, the lines of standard input, or the text of the command line."""
    if path:
        yield from read_questions(path)
    elif question == "-":
        for raw in open_standard_input() if sys.stdin else ():
            yield raw.decode(errors="replace").removeprefix("\ufeff").rstrip("\r\n")
    elif question:  # Invalid UTF-8 arrives as lone surrogates.
        yield os.fsencode(question).decode(errors="replace")


def _progress_of(path: Path | None) -> AbstractContextManager[Callable[[], None]]:
    """Return the progress bar of a file of questions."""
    if path is None or not path.is_file():
        return nullcontext(lambda: None)
    return counted(path.name, lambda: path.read_bytes().count(b"\n"), beside_output=True)


def _answer(answerer: Answerer, batch: list[str], options: QueryOptions) -> Iterator[Result]:
    """Answer questions together; if that fails, one by one, so that those before the failing one are answered."""
    answered = 0
    try:
        for result in answerer.query_many(batch, **options):
            yield result
            answered += 1
    except KBToolsError:
        if len(batch) == 1:
            raise
        for text in batch[answered:]:
            yield answerer.query(text, **options)


@click.command(
    "query",
    cls=Command,
    spellings={"--sparql": "--format sparql"},
    examples=(
        "kbtools query sample.kb who created the character harry potter",
        "kbtools query sample.kb --json - < questions.txt",
    ),
)
@kb_argument("QUESTION...")
@click.option(
    "--questions",
    type=FILE,
    help="A file of questions: one per line, or in the format of the release.",
)
@click.option("--pruning", help="The pruner: a plugin, or module:Class.  [default: as trained, else n-gram-idf]")
@click.option(
    "--scorer",
    help="The relation scorer: a plugin, or module:Class; several, separated by commas, are averaged.  "
    "Scorers before a slash rank first, those after it only doubtful questions.  "
    "[default: as trained, else KBTOOLS_SCORER, else static/encoder with an encoder, static without]",
)
@click.option(
    "--subject",
    help="The subject scorer: a plugin, or module:Class; popularity counts facts instead.  "
    "[default: as trained, else popularity]",
)
@click.option(
    "--ranker",
    help="The ranker: weighted-sum, or one that kbtools train ranking fitted for these parts.  "
    "[default: as trained, else weighted-sum]",
)
@click.option("--tagger", help="The tagger of the focused pruners.  [default: as trained, else bigru-crf+]")
@click.option("--type", "of_type", metavar="ID", help="Only subjects of this type.")
@lang_option
@inverse_option
@models_option
@click.option("--top", default=TOP, type=click.IntRange(0), help="Candidates to print; 0 prints all.")
@click.option("--answers", default=ANSWERS, type=click.IntRange(0), help="Answers to print; 0 prints all.")
@click.option(
    "--abstain",
    type=Between(0, 1),
    metavar="P",
    help="Withhold answers with a confidence below P, and print the confidence.",
)
@click.option(
    "--calibration",
    type=FILE,
    help="A run of kbtools compare --valid with the same parts, to calibrate the confidence.",
)
@click.option("--explain", is_flag=True, help="Explain the order of the candidates.")
@click.option("--timing/--no-timing", default=True, help="Include timings in JSON.")
@output_option("sparql")
def command(
    home: Home,
    text: str | None,
    questions: Path | None,
    tagger: str | None,
    of_type: str | None,
    lang: str | None,
    inverse: bool | None,
    models: Path | None,
    top: int,
    answers: int,
    abstain: float | None,
    calibration: Path | None,
    explain: bool,
    timing: bool,
    output: str | None,
    **names: str | None,
) -> None:
    """Answer QUESTION, or each line of standard input if QUESTION is `-`; quotes are optional.

    With --models, the pruner, tagger and scorers are those that kbtools train chose, unless you name others. The exit
    code is 3 if several readings of QUESTION are equally likely.
    """
    if (text is None) == (questions is None):
        raise click.UsageError(f"{KB_FIRST} and give one QUESTION, - for standard input, or --questions FILE")
    if calibration and abstain is None:
        raise click.UsageError("--calibration requires --abstain")
    if text is not None:
        require_text(text, "a QUESTION")
    answerer = home.open(models=models, tagger=tagger, lang=lang)
    answerer = answerer.both_ways() if inverse else answerer
    system = answerer.system(**names)
    if calibration:
        from kbtools.comparison.calibration import calibrate_system
        from kbtools.comparison.run_folder import open_run

        system = calibrate_system(open_run(calibration), answerer, system)
    options = QueryOptions(system=system, type=of_type, inverse=inverse, top=top, answers=answers, abstain=abstain)
    # A single question needs no reading thread; in a stream, the available lines are answered together.
    several = questions is not None or text == "-"
    batches = lines_at_hand(texts(text, questions)) if several else [[*texts(text, None)]]

    def explained(result: Result) -> list[str]:
        return explained_lines(result) + taught_lines(answerer, result)

    printer = ResultPrinter(output, explained if explain else table_lines)
    with _progress_of(questions) as count:
        for batch in batches:
            for result in _answer(answerer, batch, options):
                if output == "sparql":
                    echo(winner_query(result))
                elif output == "json":
                    echo_json(result.to_json() | ({} if timing else {"milliseconds": None}))
                else:
                    printer.print(result)
                count()
    if not several and result.readings:
        click.get_current_context().exit(UNSURE)
