"""kbtools train: from annotated questions to models."""

import tomllib
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

import click

from kbtools.answering import TAGGER
from kbtools.cli.homes import Elasticsearch, elasticsearch_options, open_home
from kbtools.cli.options import device_option, kb_option, kb_option_if
from kbtools.errors import BadSetting
from kbtools.pruning import DEFAULT, FOCUSED, PRUNERS
from kbtools.scorers.profiles import PROFILES, relation_settings, subject_settings, tagger_settings
from kbtools.scorers.settings import PlainSettings, Settings, change_settings

Command = TypeVar("Command", bound=Callable[..., object])

FILE = click.Path(path_type=Path)
PRUNING = click.Choice([*PRUNERS, *FOCUSED])


def training_options(*, required: bool) -> Callable[[Command], Command]:
    """Take what every training needs."""
    options = [
        kb_option_if(required),
        click.option("--train", required=required, type=FILE, help="Annotated questions to learn from."),
        click.option("--valid", required=required, type=FILE, help="Annotated questions to measure on meanwhile."),
        click.option("--out", "models", required=required, type=FILE, help="The folder of models."),
        click.option(
            "--profile",
            default=PROFILES[0],
            show_default=True,
            type=click.Choice(PROFILES),
            help="The settings to start from.",
        ),
        click.option("--config", type=FILE, help="A TOML file of settings, by the names of the options."),
        device_option,
        elasticsearch_options,
    ]

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def settings_options(settings: Any) -> Callable[[Command], Command]:
    """Make an option of every setting; what is not given keeps the value of the profile."""

    def decorate(command: Command) -> Command:
        for part in reversed(fields(settings)):
            for one in reversed(fields(getattr(settings, part.name))):
                kind = type(one.default)
                name = one.name.replace("_", "-")
                spelt = f"--{name}/--no-{name}" if kind is bool else f"--{name}"
                command = click.option(
                    spelt, one.name, default=None, type=None if kind is bool else kind, help=one.metadata["help"]
                )(command)
        return command

    return decorate


def read_config(path: Path | None) -> dict[str, Any]:
    """Read settings from a TOML file; raise BadSetting where it is none."""
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSetting(f"{path}: cannot be read as TOML ({error})", path=str(path)) from error


def given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def show_epoch(epoch: Any) -> None:
    figures = "".join(f", {100 * value:.2f} % {name}" for name, value in epoch.figures.items())
    click.echo(f"  epoch {epoch.number}: loss {epoch.loss:.4f}{figures}, {epoch.seconds:.1f} s", err=True)


def show_name(name: str) -> None:
    click.echo(f"{name}:", err=True)


def show_chosen(chosen: Any) -> None:
    weights = ", ".join(f"{name} {value:g}" for name, value in asdict(chosen.weights).items())
    click.echo(f"{chosen.before:.2%} -> {chosen.after:.2%} of {chosen.questions:,} questions right; {weights}")


def show_trained(trained: Any) -> None:
    figures = ", ".join(f"{100 * value:.2f} % {name}" for name, value in trained.figures.items() if name != "seconds")
    state = "trained" if trained.fresh else "already trained"
    seconds = trained.figures.get("seconds", 0.0)
    click.echo(f"{trained.folder}: {state}, {figures} on the validation split, {seconds:.0f} CPU seconds")


@click.group("train", invoke_without_command=True)
@training_options(required=False)
@click.option("--seed", type=int, help="What decides every random draw.")
@click.pass_context
def command(
    context: click.Context,
    path: Path | None,
    train: Path | None,
    valid: Path | None,
    models: Path | None,
    profile: str,
    config: Path | None,
    device: str,
    seed: int | None,
    elasticsearch: Elasticsearch | None,
) -> None:
    """Train the models of a knowledge base: all of a profile, or one part.

    Without the name of a part, the tagger, the relation scorers and the subject scorer of the profile are trained,
    and the weights of the joint score chosen. A training that was stopped goes on where it was.
    """
    if context.invoked_subcommand:
        return
    if path is None or train is None or valid is None or models is None:
        raise click.UsageError("give --kb, --train, --valid and --out, or the name of a part")
    from kbtools.judging import choose_for
    from kbtools.scorers.profile_training import PLANS, train_profile
    from kbtools.scorers.training import Splits

    changes = read_config(config) | given({"seed": seed})
    kb = open_home(path, elasticsearch).kb
    splits = Splits.read(kb, train=train, valid=valid)
    told: dict[str, Any] = {"changes": changes, "device": device, "begin": show_name, "report": show_epoch}
    for made in train_profile(kb, splits, profile=profile, models=models, **told):
        show_trained(made)
    plan = PLANS[profile]
    answerer = open_home(path, elasticsearch, models=models, tagger=plan.tagger, device=device)
    query: dict[str, Any] = {"pruning": plan.pruning, "scorer": ",".join(plan.relations), "subject": plan.ranked_by}
    show_chosen(choose_for(answerer, valid, models=models, **query))
    options = " ".join(f"--{name} {value}" for name, value in {**query, "tagger": plan.tagger}.items())
    click.echo(f"now ask: kbtools query --kb {path} --models {models} {options} QUESTION")


@command.command("relation")
@click.option("--scorer", default="bigru", show_default=True, help="Relation scorers, with commas between.")
@training_options(required=True)
@settings_options(Settings())
def relation(
    scorer: str,
    path: Path,
    train: Path,
    valid: Path,
    models: Path,
    profile: str,
    config: Path | None,
    device: str,
    elasticsearch: Elasticsearch | None,
    **options: Any,
) -> None:
    """Train relation scorers: v(r, q) = f(q)·E(r)."""
    from kbtools.scorers.training import Splits, train_relation

    changes = read_config(config) | given(options)
    chosen = {name: change_settings(relation_settings(profile, name), changes) for name in scorer.split(",")}
    kb = open_home(path, elasticsearch).kb
    splits = Splits.read(kb, train=train, valid=valid)
    for name, settings in chosen.items():
        click.echo(f"{name}: {len(splits.train):,} questions, {settings.fit.epochs} epochs", err=True)
        show_trained(
            train_relation(kb, splits, scorer=name, settings=settings, models=models, device=device, report=show_epoch)
        )


@command.command("tagger")
@click.option("--tagger", default="bigru-crf+", show_default=True, help="Taggers, with commas between.")
@training_options(required=True)
@settings_options(PlainSettings())
def tagger(
    tagger: str,
    path: Path,
    train: Path,
    valid: Path,
    models: Path,
    profile: str,
    config: Path | None,
    device: str,
    elasticsearch: Elasticsearch | None,
    **options: Any,
) -> None:
    """Train taggers: p(w|q), where a question names its subject."""
    from kbtools.scorers.tagger_training import train_tagger
    from kbtools.scorers.training import Splits

    changes = read_config(config) | given(options)
    chosen = {name: change_settings(tagger_settings(profile, name), changes) for name in tagger.split(",")}
    kb = open_home(path, elasticsearch).kb
    splits = Splits.read(kb, train=train, valid=valid)
    for name, settings in chosen.items():
        click.echo(f"{name}: {len(splits.train):,} questions", err=True)
        made = train_tagger(kb, splits, tagger=name, settings=settings, models=models, device=device, report=show_epoch)
        show_trained(made)


@command.command("subject")
@click.option("--subject", default="type-vector", show_default=True, help="Subject scorers, with commas between.")
@training_options(required=True)
@settings_options(PlainSettings())
def subject(
    subject: str,
    path: Path,
    train: Path,
    valid: Path,
    models: Path,
    profile: str,
    config: Path | None,
    device: str,
    elasticsearch: Elasticsearch | None,
    **options: Any,
) -> None:
    """Train subject scorers: u(s, r, q) = g(q)·E(s) + alpha·1(s -> r)."""
    from kbtools.scorers.subject_training import train_subject
    from kbtools.scorers.training import Splits

    changes = read_config(config) | given(options)
    chosen = {name: change_settings(subject_settings(profile, name), changes) for name in subject.split(",")}
    kb = open_home(path, elasticsearch).kb
    splits = Splits.read(kb, train=train, valid=valid)
    for name, settings in chosen.items():
        click.echo(f"{name}: {len(splits.train):,} questions, {settings.fit.epochs} epochs", err=True)
        made = train_subject(
            kb, splits, subject=name, settings=settings, models=models, device=device, report=show_epoch
        )
        show_trained(made)


@command.command("ranking")
@kb_option
@click.option("--valid", required=True, type=FILE, help="Annotated questions to choose on.")
@click.option("--models", required=True, type=FILE, help="The folder of models, where the weights are kept.")
@click.option("--pruning", default=DEFAULT, show_default=True, type=PRUNING, help="The pruner.")
@click.option("--tagger", default=TAGGER, show_default=True, help="The tagger of a focused pruner.")
@click.option("--scorer", default="bigru", show_default=True, help="The relation scorer, or several to average.")
@click.option("--subject", help="The subject scorer.")
@click.option("--limit", type=click.IntRange(1), help="Take only the first questions.")
@device_option
@elasticsearch_options
def ranking(
    path: Path,
    valid: Path,
    models: Path,
    pruning: str,
    tagger: str,
    scorer: str,
    subject: str | None,
    limit: int | None,
    device: str,
    elasticsearch: Elasticsearch | None,
) -> None:
    """Choose the temperatures and weights of the joint score, and keep them with the models."""
    from kbtools.judging import choose_for

    answerer = open_home(path, elasticsearch, models=models, tagger=tagger, device=device)
    chosen = choose_for(answerer, valid, models=models, pruning=pruning, scorer=scorer, subject=subject, limit=limit)
    show_chosen(chosen)
