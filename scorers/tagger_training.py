"""Train a tagger from question files into a folder: what `kbtools train tagger` does, callable from Python."""

import tempfile
import time
from pathlib import Path
from typing import Any

from kbtools.errors import BadQuestions, BrokenPlugin
from kbtools.kb.contract import KnowledgeBase
from kbtools.plugins import TAGGERS, load_plugin
from kbtools.pruning.tagging import words_of
from kbtools.ranking.model_store import Stamp
from kbtools.ranking.models import TAGGER, model_folder
from kbtools.scorers.devices import resolve_device
from kbtools.scorers.distributed import once
from kbtools.scorers.settings import PlainSettings
from kbtools.scorers.tagger import BiGRUTagger
from kbtools.scorers.tagging import Labelled, TaggingTask, label_questions
from kbtools.scorers.train import Epoch, fit_model
from kbtools.scorers.training import Report, Splits, TrainedModel, fingerprint, finished
from kbtools.scorers.words import load_words

RIGHT = "of sentences tagged right"


def train_tagger(
    kb: KnowledgeBase,
    splits: Splits,
    *,
    tagger: str,
    settings: PlainSettings,
    models: Path,
    device: str = "cpu",
    report: Report = lambda epoch: None,
) -> TrainedModel:
    """Train a tagger by its name, on the questions in which a name of the subject is found.

    It goes on, is left alone and replaces its folder as `train_relation` does.
    """
    plugin = load_plugin(TAGGERS, tagger)
    folder = model_folder(models, TAGGER, tagger)
    made_of = fingerprint(kb, splits, settings.to_record(), f"{TAGGER}/{tagger}")
    figures = finished(folder, made_of)
    if figures is not None:
        return TrainedModel(tagger, folder, figures, fresh=False)
    if isinstance(plugin, type) and issubclass(plugin, BiGRUTagger):
        figures = train_network(plugin, tagger, kb, splits, settings, folder, made_of, device, report)
    elif isinstance(plugin, type) and hasattr(plugin, "fit"):
        figures = once(lambda: train_features(plugin, tagger, kb, splits, folder, made_of, report)) or {}
    else:
        raise BrokenPlugin(f"tagger {tagger!r} cannot be trained (it is no BiGRUTagger)", name=tagger)
    return TrainedModel(tagger, folder, figures, fresh=True)


def train_network(
    plugin: type[BiGRUTagger],
    name: str,
    kb: KnowledgeBase,
    splits: Splits,
    settings: PlainSettings,
    folder: Path,
    made_of: str,
    device: str,
    report: Report,
) -> dict[str, float]:
    """Train a network, and give its figures."""
    on = resolve_device(device)
    made = plugin.new(
        settings.encoder,
        kb=kb,
        texts=[words_of(asked.question) for asked in splits.train.asked],
        words=load_words(settings.source.words),
        seed=settings.fit.seed,
    )
    made.network.to(on)
    begun = time.process_time()
    task = TaggingTask(made, train=labelled(made, splits, "train"), valid=labelled(made, splits, "valid"))
    spent = time.process_time() - begun
    return fit_model(
        task, settings.fit, folder, save=made.save, plugin=name, made_of=made_of, report=report, spent=spent
    )


def train_features(
    plugin: Any, name: str, kb: KnowledgeBase, splits: Splits, folder: Path, made_of: str, report: Report
) -> dict[str, float]:
    """Train the CRF over features, and give its figures; it has no state to go on from."""
    begun = time.process_time()
    reader = WordsAlone()
    train, valid = labelled(reader, splits, "train"), labelled(reader, splits, "valid")
    with tempfile.TemporaryDirectory() as working:

        def tell(iteration: int, loss: float) -> None:
            if iteration % 20 == 0:
                report(Epoch(iteration, loss / len(train), time.process_time() - begun, {}))

        made = plugin.fit(train.texts, train.spans, working=Path(working), report=tell)
    seconds = time.process_time() - begun
    figures = {RIGHT: made.sentence_accuracy(valid.texts, valid.spans), "seconds": seconds}
    made.save(folder, Stamp(name, made_of, figures))
    return figures


class WordsAlone(BiGRUTagger):
    """What reads questions for a tagger without a network."""

    def __init__(self) -> None:
        self.names = None


def labelled(tagger: BiGRUTagger, splits: Splits, split: str) -> Labelled:
    """Label the questions of a split; raise BadQuestions where no mention is found in any."""
    found = label_questions(tagger, getattr(splits, split))
    if not len(found):
        raise BadQuestions(f"no {split} question names its subject by a name of the knowledge base", split=split)
    return found
