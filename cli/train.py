"""kbtools train: from annotated questions to models."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kbtools.answering import TAGGER
from kbtools.cli.given import Given, given_options
from kbtools.cli.homes import Elasticsearch, elasticsearch_options, open_home
from kbtools.cli.options import device_option, kb_option, pruning_option
from kbtools.cli.training import (
    FILE,
    options_given,
    read_config,
    say,
    settings_options,
    show_chosen,
    show_epoch,
    show_name,
    show_trained,
    training_options,
)
from kbtools.scorers.profiles import relation_settings, subject_settings, tagger_settings
from kbtools.scorers.settings import PlainSettings, Settings, TransESettings, change_settings


@click.group("train", invoke_without_command=True)
@training_options(required=False)
@click.option("--seed", type=int, help="What decides every random draw.")
@click.pass_context
def command(
    context: click.Context,
    path: Path | None,
    elasticsearch: Elasticsearch | None,
    train: Path | None,
    valid: Path | None,
    models: Path | None,
    profile: str,
    config: Path | None,
    device: str,
    seed: int | None,
) -> None:
    """Train the models of a knowledge base: all of a profile, or one part.

    Without the name of a part, the tagger, the relation scorers and the subject scorer of the profile are trained,
    and the weights of the joint score chosen. A training that was stopped goes on where it was.
    """
    if context.invoked_subcommand:
        return
    if path is None or train is None or valid is None or models is None:
        raise click.UsageError("give --kb, --train, --valid and --out, or the name of a part")
    from kbtools.scorers.distributed import rank
    from kbtools.scorers.profile_training import PLANS, train_profile
    from kbtools.scorers.training import Splits
    from kbtools.tuning import tune_weights

    changes = read_config(config) | options_given({"seed": seed})
    kb = open_home(path, elasticsearch).kb
    splits = Splits.read(kb, train=train, valid=valid)
    told: dict[str, Any] = {"changes": changes, "device": device, "begin": show_name, "report": show_epoch}
    for made in train_profile(kb, splits, profile=profile, models=models, **told):
        show_trained(made)
    if rank() > 0:  # the first process of a launcher chooses for all
        return
    plan = PLANS[profile]
    answerer = open_home(path, elasticsearch, models=models, tagger=plan.tagger, device=device)
    query: dict[str, Any] = {"pruning": plan.pruning, "scorer": ",".join(plan.relations), "subject": plan.ranked_by}
    show_chosen(tune_weights(answerer, valid, models=models, **query))
    options = " ".join(f"--{name} {value}" for name, value in {**query, "tagger": plan.tagger}.items())
    say(f"now ask: kbtools query --kb {path} --models {models} {options} QUESTION")


@command.result_callback()
def part(*_: object, **__: object) -> None:
    """End one of the processes of a launcher."""
    from kbtools.scorers.distributed import leave

    leave()


@command.command("relation")
@click.option("--scorer", default="bigru", show_default=True, help="Relation scorers, with commas between.")
@training_options(required=True)
@settings_options(Settings())
def relation(scorer: str, **told: Any) -> None:
    """Train relation scorers: v(r, q) = f(q)·E(r)."""
    from kbtools.scorers.training import train_relation

    train_each(scorer, relation_settings, lambda name, *args, **how: train_relation(*args, scorer=name, **how), **told)


@command.command("tagger")
@click.option("--tagger", default=TAGGER, show_default=True, help="Taggers, with commas between.")
@training_options(required=True)
@settings_options(PlainSettings())
def tagger(tagger: str, **told: Any) -> None:
    """Train taggers: p(w|q), where a question names its subject."""
    from kbtools.scorers.tagger_training import train_tagger

    train_each(tagger, tagger_settings, lambda name, *args, **how: train_tagger(*args, tagger=name, **how), **told)


@command.command("subject")
@click.option("--subject", default="type-vector", show_default=True, help="Subject scorers, with commas between.")
@training_options(required=True)
@settings_options(Settings())
def subject(subject: str, **told: Any) -> None:
    """Train subject scorers: u(s, r, q) = g(q)·E(s) + alpha·1(s -> r)."""
    from kbtools.scorers.subject_training import train_subject

    train_each(subject, subject_settings, lambda name, *args, **how: train_subject(*args, subject=name, **how), **told)


def train_each(
    names: str,
    settings_of: Callable[[str, str], Any],
    train_one: Callable[..., Any],
    *,
    path: Path,
    elasticsearch: Elasticsearch | None,
    train: Path,
    valid: Path,
    models: Path,
    profile: str,
    config: Path | None,
    device: str,
    **options: Any,
) -> None:
    """Train several models of one kind, each with the settings of its profile and what was changed of them."""
    from kbtools.scorers.training import Splits

    changes = read_config(config) | options_given(options)
    chosen = {name: change_settings(settings_of(profile, name), changes) for name in names.split(",")}
    kb = open_home(path, elasticsearch).kb
    splits = Splits.read(kb, train=train, valid=valid)
    for name, settings in chosen.items():
        say(f"{name}: {len(splits.train):,} questions, {settings.fit.epochs} epochs", err=True)
        show_trained(train_one(name, kb, splits, settings=settings, models=models, device=device, report=show_epoch))


@command.command("ranking")
@kb_option
@elasticsearch_options
@click.option("--valid", required=True, type=FILE, help="Annotated questions to choose on.")
@click.option("--models", required=True, type=FILE, help="The folder of models, where the weights are kept.")
@pruning_option
@click.option("--tagger", default=TAGGER, show_default=True, help="The tagger of a focused pruner.")
@click.option("--scorer", default="bigru", show_default=True, help="The relation scorer, or several to average.")
@click.option("--subject", help="The subject scorer.")
@click.option("--limit", type=click.IntRange(1), help="Take only the first questions.")
@device_option
def ranking(
    path: Path,
    elasticsearch: Elasticsearch | None,
    valid: Path,
    models: Path,
    pruning: str,
    tagger: str,
    scorer: str,
    subject: str | None,
    limit: int | None,
    device: str,
) -> None:
    """Choose the temperatures and weights of the joint score, and keep them with the models."""
    from kbtools.tuning import tune_weights

    answerer = open_home(path, elasticsearch, models=models, tagger=tagger, device=device)
    chosen = tune_weights(answerer, valid, models=models, pruning=pruning, scorer=scorer, subject=subject, limit=limit)
    show_chosen(chosen)


@command.command("transe")
@kb_option
@elasticsearch_options
@click.option("--out", "models", required=True, type=FILE, help="The folder of models.")
@given_options
@click.option("--config", type=FILE, help="A TOML file of settings, by the names of the options.")
@device_option
@settings_options(TransESettings())
def transe(
    path: Path,
    elasticsearch: Elasticsearch | None,
    models: Path,
    given: Given | None,
    config: Path | None,
    device: str,
    **options: Any,
) -> None:
    """Train vectors of entities, E(s) + E(r) near E(o), for the subject scorer transe and for kbtools similar.

    Vectors made elsewhere are taken over instead.
    """
    from kbtools.scorers.given_vectors import take_over_vectors
    from kbtools.scorers.subject_training import train_transe

    kb = open_home(path, elasticsearch).kb
    if given:
        taken = take_over_vectors(kb, given(kb), models=models)
        say(f"{taken.folder}: {taken.known:,} of {taken.given:,} vectors belong to entities")
        return
    settings = change_settings(TransESettings(), read_config(config) | options_given(options))
    show_name("transe")
    show_trained(train_transe(kb, settings=settings, models=models, device=device, report=show_epoch))
