"""The contract of relation scorers as a suite that a plugin's author runs: `kbtools plugins check NAME`, or pytest.

from kbtools.scorers.check import check_scorer

def test_contract():
    for claim in check_scorer("my_package:MyScorer"):
        print(claim)
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import BrokenPlugin
from kbtools.kb.contract import KnowledgeBase
from kbtools.plugins import SCORERS, construct, load_plugin
from kbtools.ranking.contracts import RelationScorer, Trained
from kbtools.text.question import MarkedQuestion, Question

RELATIONS = ("book.written_work.author", "film.film.directed_by", "music.album.genre", "people.person.place_of_birth")

QUESTIONS = (
    ("who wrote dune", "dune"),
    ("where was frank herbert born ?", "frank herbert"),
    ("what", ""),
    ("", ""),
    ("which director made the film 2001 and what else is there to say of it at such length", "2001"),
    ("what genre of album is harder.....faster?", "harder.....faster"),
    ("Vujačić 東京 نجيب", "東京"),
)
"""Texts and mentions: short and long, empty, without a mention, in other scripts."""

TOLERANCE = 1e-5


def check_scorer(name: str) -> Iterator[str]:
    """Check a plugin by its name or as module:Class, and yield each claim that holds.

    Raises BrokenPlugin at the first that does not.
    """
    plugin = load_plugin(SCORERS, name)
    checks = TRAINABLE if hasattr(plugin, "new") else UNTRAINED if not isinstance(plugin, Trained) else ()
    make = maker(name, plugin)
    for claim, holds in (*ALWAYS, *checks):
        try:
            kept = holds(make)
        except AssertionError as error:
            raise BrokenPlugin(f"plugin {name!r} breaks its contract: {claim} ({error})", name=name) from error
        except Exception as error:
            raise BrokenPlugin(f"plugin {name!r} breaks its contract: {claim} ({error!r})", name=name) from error
        if not kept:
            raise BrokenPlugin(f"plugin {name!r} breaks its contract: {claim}", name=name)
        yield claim


Make = Callable[[Sequence[str]], Any]


def maker(name: str, plugin: Any) -> Make:
    """Say how a plugin is made: from relations, or with a small untrained network."""
    if not callable(plugin):
        raise BrokenPlugin(f"plugin {name!r} is no class", name=name)
    if not hasattr(plugin, "new"):
        if isinstance(plugin, Trained):
            raise BrokenPlugin(
                f"plugin {name!r} is rebuilt by its `load` alone, without `new`; check it in tests of its own",
                name=name,
            )
        return lambda relations: construct(name, lambda: plugin(relations))
    from kbtools.scorers.settings import EncoderConfig
    from kbtools.scorers.words import load_words

    def make(relations: Sequence[str]) -> Any:
        config = EncoderConfig(dim=8, words_dim=6, hidden=4, known_words=0)
        texts = [plugin.text(one) for one in asked()[:3]]
        return plugin.new(config, rows=relations, texts=texts, words=load_words("random"), seed=7)

    return make


def asked() -> list[MarkedQuestion]:
    return [
        MarkedQuestion(Question.read(text), text.find(named), text.find(named) + len(named))
        for text, named in QUESTIONS
    ]


def close(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return bool(np.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE))


def gives_finite_scores(make: Make) -> bool:
    scores = make(RELATIONS).score(asked())
    shape = np.shape(scores)
    return shape == (len(QUESTIONS), len(RELATIONS)) and bool(np.isfinite(scores).all())


def ignores_batch_size(make: Make) -> bool:
    scorer: RelationScorer = make(RELATIONS)
    return close(scorer.score(asked()), np.concatenate([scorer.score([one]) for one in asked()]))


def ignores_order_of_questions(make: Make) -> bool:
    scorer: RelationScorer = make(RELATIONS)
    return close(scorer.score(asked()), scorer.score(asked()[::-1])[::-1])


def ignores_padding(make: Make) -> bool:
    scorer: RelationScorer = make(RELATIONS)
    long = MarkedQuestion(Question.read(" ".join(["and so on"] * 50)), 0, 0)
    return close(scorer.score(asked()), scorer.score([*asked(), long])[:-1])


def repeats_itself(make: Make) -> bool:
    return bool(np.array_equal(make(RELATIONS).score(asked()), make(RELATIONS).score(asked())))


def takes_no_questions(make: Make) -> bool:
    shape: tuple[int, ...] = np.shape(make(RELATIONS).score([]))
    return shape == (0, len(RELATIONS))


def ignores_order_of_relations(make: Make) -> bool:
    return close(make(RELATIONS).score(asked()), make(RELATIONS[::-1]).score(asked())[:, ::-1])


def is_rebuilt_from_its_folder(make: Make) -> bool:
    scorer = make(RELATIONS)
    kb = cast(KnowledgeBase, SimpleNamespace(relations=RELATIONS))
    with tempfile.TemporaryDirectory() as folder:
        scorer.save(Path(folder, "model"))
        rebuilt = type(scorer).load(Path(folder, "model"), kb)
    return bool(np.array_equal(scorer.score(asked()), rebuilt.score(asked())))


def has_finite_gradients(make: Make) -> bool:
    scorer = make(RELATIONS)
    scorer.network.train()
    for one in asked():
        scorer.network.scores([scorer.text(one)]).sum().backward()
    gradients = [parameter.grad for parameter in scorer.network.parameters() if parameter.grad is not None]
    return bool(gradients) and all(bool(gradient.isfinite().all()) for gradient in gradients)


ALWAYS: tuple[tuple[str, Callable[[Make], bool]], ...] = (
    ("a finite score for every relation of every question", gives_finite_scores),
    ("the size of a batch changes no score", ignores_batch_size),
    ("the order of questions changes no score", ignores_order_of_questions),
    ("a longer question beside it changes no score", ignores_padding),
    ("same seed, same scores", repeats_itself),
    ("no questions, no scores", takes_no_questions),
)
UNTRAINED = (("the order of relations changes no score", ignores_order_of_relations),)
TRAINABLE = (
    ("saved and loaded, it scores the same", is_rebuilt_from_its_folder),
    ("its gradients are finite", has_finite_gradients),
)
