"""kbtools train: trains models on annotated questions."""

import sys
import time
from collections.abc import Callable
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

import click

from kbtools.cli.commands import Command, CommandWithParts
from kbtools.cli.display import echo
from kbtools.cli.homes import Home, kb_argument
from kbtools.cli.index_vectors import ReadVectors, read_vectors_options
from kbtools.cli.options import FILE, chosen_device, pruning_option
from kbtools.cli.training_options import (
    OUT,
    SETTINGS,
    SPELLINGS,
    leaving,
    names_option,
    read_setting,
    settings_options,
    training_options,
)
from kbtools.ranking import models as parts
from kbtools.ranking.parts import DEFAULT_TAGGER
from kbtools.scorers.fitting.profiles import PLANS, PROFILES, profile_settings
from kbtools.scorers.networks.training_settings import TransESettings, change_settings

_RANKER = click.option(
    "--ranker",
    help="The learned ranker: lightgbm if the extra [ranker] is installed, else weighted-sum, the plain sum of"
    " the parts.",
)


@click.group(
    "train",
    cls=CommandWithParts,
    spellings=SPELLINGS,
    examples=(
        "kbtools train fbsq.kb --train train.txt --valid valid.txt --profile best --out models",
        "kbtools train fbsq.kb --train train.txt --valid valid.txt --profile fast --set epochs=3 --out models",
    ),
)
@training_options
@_RANKER
@leaving
def command(
    home: Home, train: Path, valid: Path, models: Path, profile: str, changes: dict[str, Any], ranker: str | None
) -> None:
    """Train the models of a knowledge base: all of a profile, or one part.

    Without the name of a part, train the tagger, the relation scorers and the subject scorer of the profile, choose the
    weights of the joint score, and fit its ranker (except in the profile paper, whose score is Eq. 4). Run the command
    again to resume a stopped training.
    """
    from kbtools.comparison.whole_training import train as train_whole

    hear: dict[str, Any] = {"begin": _show_name, "trained": _show_trained, "callbacks": _callbacks()}
    done = train_whole(
        home.open_intact(),
        train,
        valid,
        out=models,
        profile=profile,
        ranker=ranker,
        settings=changes,
        device=chosen_device(),
        skip=partial(_say, err=True),
        **hear,
    )
    if done.tuning:
        _show_tuning(done.tuning)
        for line in done.untrained.lines() if done.untrained else ():
            _say(line)
    else:
        _say(f"weights: {PLANS[profile].weights}, the profile's own")
    _say(f"next: kbtools query --kb {home.path} --models {models} QUESTION")


def _add_part(name: str, *examples: str) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator that makes a function the command for one part of a training."""
    make = command.command(name, cls=Command, spellings=SPELLINGS, examples=examples)
    return lambda function: make(leaving(function))


@_add_part(
    "relation",
    "kbtools train relation fbsq.kb --scorer bigru,embed-avg --train train.txt --valid valid.txt --out models",
    "kbtools train relation fbsq.kb --set epochs=3 --set words=random --train t.txt --valid v.txt --out models",
)
@names_option("--scorer", "bigru", "Relation scorers")
@training_options
def _relation(**arguments: Any) -> None:
    """Train relation scorers: v(r, q) = f(q)·E(r)."""
    _train_models(parts.RELATION, **arguments)


@_add_part(
    "tagger",
    "kbtools train tagger fbsq.kb --train train.txt --valid valid.txt --out models",
    "kbtools train tagger fbsq.kb --tagger bigru-crf+,crf --train train.txt --valid valid.txt --out models",
)
@names_option("--tagger", DEFAULT_TAGGER, "Taggers")
@training_options
def _tagger(**arguments: Any) -> None:
    """Train taggers: p(w|q), the position of the mention in a question."""
    _train_models(parts.TAGGER, **arguments)


@_add_part(
    "subject",
    "kbtools train subject fbsq.kb --train train.txt --valid valid.txt --out models",
    "kbtools train subject fbsq.kb --subject transe --train train.txt --valid valid.txt --out models",
)
@names_option("--subject", "type-vector", "Subject scorers")
@training_options
def _subject(**arguments: Any) -> None:
    """Train subject scorers: u(s, r, q) = g(q)·E(s) + alpha·1(s -> r)."""
    _train_models(parts.SUBJECT, **arguments)


def _train_models(
    part: str, *, names: str, home: Home, train: Path, valid: Path, models: Path, profile: str, changes: dict[str, Any]
) -> None:
    """Train several models of one part, each with the settings of its profile and the changes to them."""
    from kbtools.scorers.fitting import training
    from kbtools.scorers.fitting.splits import Splits

    chosen = {name: change_settings(profile_settings(profile, part, name), changes) for name in names.split(",")}
    kb = home.open_intact().kb
    splits = Splits.read(kb, train=train, valid=valid)
    for name, settings in chosen.items():
        _say(f"{name}: {len(splits.train):,} questions, {settings.fit.epochs} epochs", err=True)
        where: dict[str, Any] = {"part": part, "name": name, "models": models, "device": chosen_device()}
        _show_trained(training.train(kb, splits, settings=settings, callbacks=_callbacks(), **where))


@_add_part(
    "ranking",
    "kbtools train ranking fbsq.kb --models models --valid valid.txt --scorer bigru --subject type-cosine",
    "kbtools train ranking fbsq.kb --models models --valid valid.txt --pruning focused-k --ranker weighted-sum",
)
@kb_argument()
@click.option("--valid", required=True, type=FILE, help="Annotated questions to choose on.")
@click.option("--models", required=True, type=FILE, help="The folder of models, where the weights are stored.")
@pruning_option
@click.option("--tagger", default=DEFAULT_TAGGER, help="The tagger of a focused pruner.")
@click.option("--scorer", default="bigru", help="The relation scorer, or several to average.")
@click.option("--subject", help="The subject scorer.")
@click.option("--limit", type=click.IntRange(1), help="Use only the first N questions.")
@_RANKER
@click.option(
    "--in-doubt",
    metavar="NAMES",
    help="Relation scorers, separated by commas, for questions on which a ranker without them is in doubt.",
)
@click.option(
    "--set", "changes", multiple=True, metavar="seed=N", callback=read_setting, help="The seed.  [default: 1]"
)
def _ranking(
    home: Home,
    valid: Path,
    models: Path,
    pruning: str,
    tagger: str,
    scorer: str,
    subject: str | None,
    ranker: str | None,
    in_doubt: str | None,
    limit: int | None,
    changes: dict[str, Any],
) -> None:
    """Choose the temperatures and weights of the joint score, fit a ranker, and keep both with the models.

    The ranker is used for exactly this pruner and these scorers; with weighted-sum, only weights are chosen.
    """
    from kbtools.answering.questions import read_gold
    from kbtools.comparison.system_training import train_system
    from kbtools.ranking.system import POPULARITY, WEIGHTED_SUM

    if in_doubt and ranker == WEIGHTED_SUM:
        raise click.UsageError("--in-doubt needs a learned ranker: leave out --in-doubt or --ranker")
    answerer = home.open_intact(models=models, tagger=tagger)
    system = answerer.system(pruning=pruning, scorer=scorer, subject=subject or POPULARITY, ranker=WEIGHTED_SUM)
    options: dict[str, Any] = {"ranker": ranker, "seed": changes.get("seed", 1)}
    deferred = in_doubt.split(",") if in_doubt else ()
    _show_tuning(train_system(answerer, read_gold(valid, answerer.kb)[:limit], system, in_doubt=deferred, **options))


def _show_tuning(trained: Any) -> None:
    """Print the chosen weights and the fitted ranker."""
    chosen = trained.weights
    weights = ", ".join(f"{name} {value:g}" for name, value in asdict(chosen.weights).items())
    _say(f"{chosen.before:.2%} -> {chosen.after:.2%} of {chosen.questions:,} questions right; {weights}")
    if trained.ranker:
        _show_ranker(trained.ranker)
    if trained.note:
        _say(trained.note, err=True)


@_add_part(
    "transe",
    "kbtools train transe fbsq.kb --out models",
    "kbtools train transe fbsq.kb --vectors entities.npy --ids entities.txt --out models",
)
@kb_argument()
@OUT
@read_vectors_options
@settings_options
def _transe(home: Home, models: Path, read_vectors: ReadVectors | None, changes: dict[str, Any]) -> None:
    """Train vectors of entities, E(s) + E(r) near E(o), for the subject scorer transe and for kbtools similar.

    With --vectors, import vectors from a file instead.
    """
    from kbtools.scorers.fitting import training
    from kbtools.scorers.subjects.vector_files import take_over_vectors

    kb = home.open_intact().kb
    if read_vectors:
        takeover = take_over_vectors(kb, read_vectors(kb), models=models)
        _say(f"{takeover.folder}: {takeover.known:,} of {takeover.vectors:,} vectors belong to entities")
        return
    settings = change_settings(TransESettings(), changes)
    _show_name("transe")
    where: dict[str, Any] = {"part": parts.ENTITIES, "name": "transe", "models": models, "device": chosen_device()}
    _show_trained(training.train(kb, None, settings=settings, callbacks=_callbacks(), **where))


@_add_part("settings", "kbtools train settings", "kbtools train settings --profile paper")
@click.option(
    "--profile", default=PROFILES[0], type=click.Choice(PROFILES), help="The profile whose values are listed."
)
def _list_settings(profile: str) -> None:
    """List the settings that --set changes, with their values for the first model of each kind."""
    models = zip(
        SETTINGS,
        (
            (parts.RELATION, "bigru"),
            (parts.TAGGER, DEFAULT_TAGGER),
            (parts.RELATION, parts.ENCODER),
            (parts.ENTITIES, "transe"),
        ),
        strict=True,
    )
    for kind, (part, name) in models:
        echo(f"{kind} ({name})")
        settings = profile_settings(profile, part, name)
        for config in (getattr(settings, field.name) for field in fields(settings)):
            for field in fields(config):
                value = getattr(config, field.name)
                value = str(value).lower() if isinstance(value, bool) else value
                echo(f"  {field.name}={value}: {field.metadata['help']}")


def _say(text: str, *, err: bool = False) -> None:
    """Print a line; among the processes of a launcher only the first prints."""
    from kbtools.scorers.networks.distributed import rank

    if rank() == 0:
        echo(text, err=err)


def _callbacks() -> Any:
    """Return callbacks that print each epoch, and on a terminal each second."""
    from kbtools.scorers.fitting.measures import Callbacks

    return Callbacks(_show_epoch, _show_batch)


def _show_epoch(epoch: Any) -> None:
    figures = "".join(f", {100 * value:.2f} % {name}" for name, value in epoch.figures.items())
    _say(f"  epoch {epoch.number}: loss {epoch.loss:.4f}{figures}, {epoch.seconds:.1f} s", err=True)


_SHOWN = [0.0]
"""The second in which progress was last shown."""


def _show_batch(epoch: int, share: float) -> None:
    """Show progress within an epoch once a second on a terminal; the line of the epoch replaces it."""
    if sys.stderr.isatty() and time.monotonic() > _SHOWN[0] + 1:
        _SHOWN[0] = time.monotonic()
        sys.stderr.write(f"  epoch {epoch}: {share:.0%}\r")
        sys.stderr.flush()


def _show_name(name: str) -> None:
    _say(f"{name}:", err=True)


def _show_ranker(trained: Any) -> None:
    _say(
        f"{trained.folder}: {trained.before:.2%} -> {trained.after:.2%} of {trained.questions:,} questions "
        "correct, each after learning from the others"
    )
    if cascade := trained.system.cascade:
        _say(
            f"{trained.in_doubt:.2%} of them are in doubt: the first by {cascade.first.scorer} is less sure than "
            f"{cascade.threshold:g}"
        )


def _show_trained(model: Any) -> None:
    figures = ", ".join(f"{100 * value:.2f} % {name}" for name, value in model.figures.items() if name != "seconds")
    state = "trained" if model.fresh else "already trained"
    seconds = model.figures.get("seconds", 0.0)
    _say(f"{model.folder}: {state}, {figures}, {seconds:.0f} CPU seconds")
