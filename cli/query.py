"""kbtools query: from a question to candidates and answers."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from kbtools.answering import SCORER, TAGGER, TOP
from kbtools.cli.display import echo, echo_json
from kbtools.cli.homes import Elasticsearch, elasticsearch_options, open_home
from kbtools.cli.options import device_option, json_option, kb_option, models_option, pruning_option
from kbtools.comparison.abstention import Abstainer, Verdict, read_calibration
from kbtools.explaining import explain_candidate, explain_result
from kbtools.questions import read_questions
from kbtools.read_ahead import lines_at_hand
from kbtools.results import Result
from kbtools.sparql import object_query

ANSWERS_SHOWN = 20


def standard_input() -> Iterator[str]:
    """Yield the lines of standard input, a question each."""
    for raw in sys.stdin.buffer if sys.stdin else ():
        yield raw.decode(errors="replace").removeprefix("\ufeff").rstrip("\r\n")


def texts(question: str | None, path: Path | None) -> Iterator[str]:
    """Yield the questions of a file, of standard input, or the one of the command line."""
    if path:
        yield from read_questions(path)
    elif question == "-":
        yield from standard_input()
    elif question:  # bytes that are no UTF-8 come as lone surrogates
        yield os.fsencode(question).decode(errors="replace")


def rows(result: Result, explain: bool, judged: Verdict | None) -> list[str]:
    if not result.candidates:
        return [result.question, "  no candidates: no name of the knowledge base is in the question"]
    lines = [result.question]
    for place, found in enumerate(result.candidates, 1):
        name = found.subject_name or "(no name)"
        link = f"[{found.rung}: {found.mention.text}]"
        lines.append(f"{place:>3}  {found.score:8.3f}  {name} ({found.subject})  {found.relation}  {link}")
        if explain:
            lines += ["      " + line for line in explain_candidate(found).splitlines()]
    if explain:
        lines += ["  " + line for line in explain_result(result).splitlines()]
    elif result.tied > 1:
        lines.append(f"  the first {result.tied} are tied, in the order of their ids")
    shown = [f"{answer.name} ({answer.id})" if answer.name else answer.id for answer in result.answers[:ANSWERS_SHOWN]]
    more = len(result.answers) - len(shown)
    if judged is None or judged.answered:
        lines.append("  answers: " + ", ".join(shown) + (f" and {more:,} more" if more > 0 else ""))
    lines += [f"  {judged.sentence}"] if judged else []
    return lines


def sparql_query(result: Result, judged: Verdict | None) -> str:
    """Write the query of the winning pair, or a comment where there is none to trust."""
    if not result.candidates:
        return "# no candidates"
    if judged and not judged.answered:
        return f"# {judged.sentence}"
    return object_query(result.candidates[0].subject, result.candidates[0].relation)


@click.command("query")
@kb_option
@click.argument("question", required=False)
@click.option("--questions", type=click.Path(path_type=Path), help="A file of questions: one a line, or the release's.")
@pruning_option
@click.option(
    "--scorer",
    default=SCORER,
    show_default=True,
    help="The relation scorer: a plugin, or module:Class; several, with commas between, are averaged.",
)
@click.option("--subject", help="The subject scorer: a plugin, or module:Class; without one, popularity stands in.")
@click.option("--tagger", default=TAGGER, show_default=True, help="The tagger of the focused pruners.")
@models_option
@device_option
@click.option("--top", default=TOP, show_default=True, type=click.IntRange(0), help="Candidates to give; 0 gives all.")
@click.option(
    "--abstain",
    type=click.FloatRange(0, 1),
    metavar="P",
    help="Give no answer where confidence is below P, and say how high it is.",
)
@click.option(
    "--calibration",
    type=click.Path(path_type=Path),
    help="A run of kbtools compare --valid over the same names: makes confidence the share that is right.",
)
@click.option("--explain", is_flag=True, help="Say why each candidate stands where it does.")
@click.option("--sparql", is_flag=True, help="Print the SPARQL query of the winning pair instead of its answers.")
@click.option(
    "--timing/--no-timing", default=True, help="Whether JSON tells the milliseconds, which no two runs share."
)
@json_option
@elasticsearch_options
def command(
    path: Path,
    question: str | None,
    questions: Path | None,
    pruning: str,
    scorer: str,
    subject: str | None,
    tagger: str,
    models: Path | None,
    device: str,
    top: int,
    abstain: float | None,
    calibration: Path | None,
    explain: bool,
    sparql: bool,
    timing: bool,
    as_json: bool,
    elasticsearch: Elasticsearch | None,
) -> None:
    """Answer QUESTION, or each line of standard input if QUESTION is `-`."""
    if (question is None) == (questions is None):
        raise click.UsageError("give one QUESTION, or - for standard input, or --questions FILE")
    if calibration and abstain is None:
        raise click.UsageError("--calibration is of use with --abstain alone")
    if question is not None and not question.strip():
        raise click.UsageError("the question is empty")
    kb = open_home(path, elasticsearch, models=models, tagger=tagger, device=device)
    abstainer = None
    if abstain is not None:
        fitted = None
        if calibration:
            fitted = read_calibration(calibration, kb, pruning=pruning, scorer=scorer, subject=subject)
        abstainer = Abstainer(abstain, fitted)
    asked = texts(question, questions)
    together = lines_at_hand(asked) if elasticsearch else ([text] for text in asked)
    kept = None if abstainer else top or None
    results = (
        result
        for some in together
        for result in kb.query_many(some, pruning=pruning, scorer=scorer, subject=subject, top=kept)
    )
    for whole in results:
        judged = abstainer.judge(whole, top=top or None) if abstainer else None
        result = judged.result if judged else whole
        if sparql:
            echo(sparql_query(result, judged))
        elif as_json:
            record = result.to_json() | ({} if timing else {"milliseconds": None})
            record |= {"confidence": judged.confidence, "answered": judged.answered} if judged else {}
            echo_json(record)
        else:
            echo(*rows(result, explain, judged))
