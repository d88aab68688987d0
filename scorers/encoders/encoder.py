"""The relation scorer `encoder`: compares questions with the names of relations by a pretrained sentence encoder."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import import_object
from kbtools.kb.contract import KnowledgeBase, relation_texts
from kbtools.ranking.models import WEIGHTS
from kbtools.scorers.encoders.pretrained import PretrainedFiles, read_files
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.networks.checkpoint import SavedNetwork, match_rows, other_network, read_checkpoint
from kbtools.scorers.networks.network import without_torch
from kbtools.scorers.networks.training_settings import PretrainedSettings
from kbtools.scorers.relations.lexical import LexicalScorer
from kbtools.scorers.relations.static import PRONOUN, language_shares
from kbtools.text.question import MarkedQuestion
from kbtools.text.relation_words import spelt_parts
from kbtools.user_cache import keep

if TYPE_CHECKING:
    from kbtools.scorers.encoders.encoder_network import EncoderNetwork
    from kbtools.scorers.encoders.sentence_forward import EncoderForward
    from kbtools.scorers.fitting.training_loop import Task

LEXICAL, TRAINED_LEXICAL = 0.5, 0.15
"""Weight of the score of `lexical` without training, and with a trained encoder.

The first: accuracy on the questions for which `SHARPNESS` was chosen is 75.6 % at 0, 76.6 % at 0.25, 76.7 % at 0.75.
The second, without `UNSEEN`, on the validation questions of FBSQ, relation first overall and, given the subject, for
relations not seen in training: 77.3 and 92.5 % at 0, 77.6 and 93.5 % at 0.1, 77.4 and 94.4 % at 0.2, 75.8 and 94.4 % at
0.5.
"""

_BY_ROW = ("names", "learned")
"""The weights with an entry for each relation."""

_ENCODER, _NETWORK = (
    f"kbtools.scorers.encoders.sentence_forward:{name}" for name in ("SentenceForward", "EncoderForward")
)


class EncoderScorer(SavedNetwork):
    """The plugin `encoder`: f(q)·E(r), a cosine if untrained, plus a share of the score of `lexical`."""

    version: ClassVar[int] = 2
    network: "EncoderNetwork | EncoderForward"
    settings: ClassVar = PretrainedSettings()
    """Its training settings, which differ from those of networks over words."""

    def __init__(
        self,
        network: "EncoderNetwork | EncoderForward",
        rows: Sequence[str],
        *,
        texts: Sequence[str],
        weight: float,
    ) -> None:
        self.network = network
        self.rows = tuple(rows)
        self.lexical = LexicalScorer(texts)
        self.weight = weight

    @classmethod
    def zero_shot(cls, relations: Sequence[str], *, device: str = "cpu") -> Self:
        """Build an untrained scorer from the names of the relations."""
        if not without_torch(device):
            place_network = import_object("kbtools.scorers.networks.devices:place_network")
            scorer = cls.new(read_files(), relations, texts=relations, weight=LEXICAL)
            place_network(scorer.trainable, device, encoder=scorer.trainable.encoder.transformer)
            return scorer
        files = read_files()
        encoder = import_object(_ENCODER).of_files(files)
        names = name_vectors(encoder.encode, relations, digest=files.digest, dim=encoder.dim)
        network = import_object(_NETWORK)(encoder, names, np.zeros_like(names))
        return cls(network, relations, texts=relations, weight=LEXICAL)

    @classmethod
    def origin(cls) -> str:
        """Return the digest of the pretrained encoder."""
        return read_files().digest

    @classmethod
    def new(cls, files: PretrainedFiles, rows: Sequence[str], *, texts: Sequence[str], weight: float) -> Self:
        """Build an untrained scorer for relations and their names."""
        import torch

        from kbtools.scorers.encoders.encoder_network import EncoderNetwork, build_encoder

        network = EncoderNetwork(build_encoder(files), len(rows))
        names = name_vectors(network.encoder.encode, texts, digest=files.digest, dim=network.encoder.dim)
        network.names.copy_(torch.from_numpy(names))
        return cls(network.eval(), rows, texts=texts, weight=weight)

    @classmethod
    def task(cls, kb: KnowledgeBase, splits: Splits, settings: PretrainedSettings, *, models: Path) -> "Task":
        """Build the task of an untrained scorer."""
        files = read_files(settings.encoder.pretrained)
        scorer = cls.new(files, kb.relations, texts=relation_texts(kb), weight=TRAINED_LEXICAL)
        texts = [cls.text(question) for question in splits.train.questions]
        make: Callable[..., Task] = import_object("kbtools.scorers.encoders.encoder_training:EncoderTask")
        return make(scorer, texts, settings.encoder, kb=kb, splits=splits)

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        """Rebuild a trained scorer, its rows in the order of the knowledge base; raise ModelError for other rows."""
        saved = read_checkpoint(folder)
        order = match_rows(folder, trained=saved.rows, present=kb.relations, what="relations")
        saved = saved.in_order(order, by_row=_BY_ROW)
        if without_torch(device):
            with other_network(folder):
                network = import_object(_NETWORK).rebuild(saved)
        else:
            rebuild = import_object("kbtools.scorers.encoders.encoder_network:rebuild_encoder_network")
            network = rebuild(saved, len(kb.relations), folder=folder, device=device)
        return cls(network, kb.relations, texts=relation_texts(kb), weight=TRAINED_LEXICAL)

    @property
    def trainable(self) -> "EncoderNetwork":
        """The torch network, for training; made by `new`."""
        trainable: EncoderNetwork = self.network  # type: ignore[assignment]
        return trainable

    @staticmethod
    def text(question: MarkedQuestion) -> str:
        """Return a question as text with a pronoun for the mention."""
        return " ".join(question.words(symbol=PRONOUN))

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        return self.score_embedded(self.embed(questions), questions)

    def embed(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        # With a pronoun for the mention many questions have the same text, and share one vector.
        texts: dict[str, int] = {}
        places = [texts.setdefault(self.text(question), len(texts)) for question in questions]
        vectors: NDArray[np.float32] = self.network.encoder.encode(list(texts))[places]
        return vectors

    def score_embedded(self, vectors: NDArray[np.float32], questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        scores = self.network.score_vectors(vectors).astype(np.float64)
        return scores + self.weight * self.lexical.score(questions)


def name_vectors(
    encode: Callable[[Sequence[str]], NDArray[np.float32]], relations: Sequence[str], *, digest: str, dim: int
) -> NDArray[np.float32]:
    """Return the mean of the vectors of a relation's full name and of its last two parts: (relations, dim).

    Labels in languages other than English have less weight, unless the encoder was chosen by the user.
    """
    parts = [spelt_parts(relation) for relation in relations]
    texts = [_joined(name) for name in parts] + [_joined(name[-2:]) for name in parts]
    # A text shared by several relations is encoded once.
    distinct = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    packed = keep("vectors", json.dumps([digest, *distinct]), lambda: encode(list(distinct)).astype("<f4").tobytes())
    vectors = np.frombuffer(packed, dtype="<f4").reshape(len(distinct), dim)
    whole, last = vectors[[distinct[text] for text in texts]].reshape(2, len(relations), dim)
    # A user's encoder may support languages other than English.
    shares = 1.0 if os.environ.get(WEIGHTS) else language_shares(relations)
    return np.asarray((whole + last) / 2 * shares, dtype=np.float32)


def _joined(parts: Sequence[Sequence[str]]) -> str:
    return " ".join(word for part in parts for word in part)
