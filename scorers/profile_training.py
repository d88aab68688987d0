"""Train all that a profile asks for, one part after the other: what `kbtools train` does without a part's name."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbtools.kb.contract import KnowledgeBase
from kbtools.scorers.profiles import relation_settings, subject_settings, tagger_settings
from kbtools.scorers.settings import change_settings, setting_parts
from kbtools.scorers.subject_training import train_subject
from kbtools.scorers.tagger_training import train_tagger
from kbtools.scorers.train import Epoch
from kbtools.scorers.training import Splits, TrainedModel, train_relation


@dataclass(frozen=True, slots=True)
class Plan:
    """The models of a profile, and the query that they are for."""

    tagger: str
    relations: tuple[str, ...]
    subject: str
    pruning: str
    ranked_by: str
    """The subject scorer of the query; `type-cosine` reads the model of `type-vector`."""


PLANS = {
    "paper": Plan("bigru-crf", ("bigru",), "type-vector", "focused", "type-vector"),
    "best": Plan("bigru-crf+", ("bigru", "ltg-cnn+"), "type-vector", "focused-k", "type-cosine"),
}


def train_profile(
    kb: KnowledgeBase,
    splits: Splits,
    *,
    profile: str,
    models: Path,
    changes: Mapping[str, Any] | None = None,
    device: str = "cpu",
    begin: Callable[[str], None] = lambda name: None,
    report: Callable[[Epoch], None] = lambda epoch: None,
) -> Iterator[TrainedModel]:
    """Yield the models of a profile as they are trained; those that are done already are not trained again."""
    plan = PLANS[profile]
    told: dict[str, Any] = {"models": models, "device": device, "report": report}
    begin(plan.tagger)
    settings = changed(tagger_settings(profile, plan.tagger), changes)
    yield train_tagger(kb, splits, tagger=plan.tagger, settings=settings, **told)
    for name in plan.relations:
        begin(name)
        settings = changed(relation_settings(profile, name), changes)
        yield train_relation(kb, splits, scorer=name, settings=settings, **told)
    begin(plan.subject)
    settings = changed(subject_settings(profile, plan.subject), changes)
    yield train_subject(kb, splits, subject=plan.subject, settings=settings, **told)


def changed(settings: Any, changes: Mapping[str, Any] | None) -> Any:
    """Change those settings that a part has; a part without an objective has no margin to change."""
    known = setting_parts(settings)
    own = {name: value for name, value in (changes or {}).items() if name.replace("-", "_") in known}
    return change_settings(settings, own)
