"""The parts of systems over a knowledge base and a folder of models, each made when it is first needed."""

from dataclasses import replace
from pathlib import Path
from typing import TypedDict, Unpack

from kbtools.entry_points import (
    PRUNERS,
    RANKERS,
    SCORERS,
    SUBJECT_SCORERS,
    TAGGERS,
    load_class,
    load_plugin,
    require_installed,
    trusts_plugins,
)
from kbtools.errors import BadArgument, ModelMissing
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.views import question_languages
from kbtools.pruning.pruners import DEFAULT, EmbedQuestions, Tagger, guide_of
from kbtools.ranking.cascade import CascadeScoring
from kbtools.ranking.contracts import RelationScorer, SubjectScorer, ZeroShot
from kbtools.ranking.models import (
    GROUPS,
    RELATION,
    SUBJECT,
    TAGGER,
    default_scorer,
    make_embedder,
    make_relation_scorer,
    make_subject_scorer,
    make_tagger,
    model_digest,
    plugin_folder,
    read_scorers,
)
from kbtools.ranking.rankers import Scoring, WeightedSum
from kbtools.ranking.system import NO_SUBJECT, POPULARITY, WEIGHTED_SUM, Cascade, System
from kbtools.ranking.trained import FILE, check_fitted, load_first, load_ranker, read_systems
from kbtools.ranking.weights import DEFAULT as DEFAULT_WEIGHTS
from kbtools.ranking.weights import PRESETS, Weights, default_weights

DEFAULT_TAGGER = "bigru-crf+"


_MOST_SCORERS = 64
"""Relation scorers that are kept at hand: each is made anew for other languages."""


class PartNames(TypedDict, total=False):
    """The names of parts of a system; scorers stand with commas between."""

    pruning: str | None
    scorer: str | None
    subject: str | None
    ranker: str | None


_DOUBT = 0.8
"""The share of the pool below which the scorers behind a slash are asked.

4,000 validation questions of FBSQ, `static/encoder`: 61.7, 62.2, 62.3, 62.4 % are right at 0.5, 0.6, 0.65, 0.7, where
28, 35, 38, 41 % of the questions are in doubt; 59.1 % by `static` and 63.0 % by `encoder` alone.
"""


def _cascaded(system: System, first: tuple[str, ...], scorers: tuple[str, ...]) -> System:
    """Return a system with some relation scorers, which others decide before, if any are given."""
    own = replace(system, scorers=scorers)
    return replace(own, cascade=Cascade(replace(system, scorers=first), _DOUBT)) if first else own


class Parts:
    """Taggers, scorers and rankers, those made so far at hand, and the systems that training made of them.

    They belong to a knowledge base as it is stored: views of it share them.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        models: Path | None = None,
        *,
        tagger: str | None = None,
        device: str = "cpu",
        trust_plugins: bool | None = None,
    ) -> None:
        self.kb, self.models, self.device = kb, models, device
        self.trust_plugins = trusts_plugins(trust_plugins)
        self.trained = read_systems(models)
        if self.trained.default:
            self.require_trust(self.trained.default)
        default = self.trained.default
        trained_tagger = default.guide if default and self.reads_tagger(default) else None
        self.tagger = tagger or trained_tagger or DEFAULT_TAGGER
        self.scorers: dict[str, RelationScorer] = {}
        self.subject_scorers: dict[str, SubjectScorer] = {}
        self.scorings: dict[System, Scoring] = {}
        self.named: dict[tuple[str | None, ...], System] = {}

    @property
    def default(self) -> System:
        """Return the system that training chose, else the one that needs no training."""
        return self.trained.default or _cascaded(
            System(DEFAULT, (), POPULARITY, None, DEFAULT_WEIGHTS), *read_scorers(default_scorer())
        )

    def system(self, **names: Unpack[PartNames]) -> System:
        """Return the system of some names, and for the rest of what training chose, else of the defaults.

        Its weights and its ranker are those that training chose for just these parts. Raises ModelMissing for a ranker
        that was not fitted for them, UnknownPlugin, BadArgument for what is no name.
        """
        for argument, name in names.items():
            if not isinstance(name, str | None):
                raise BadArgument(f"{argument} is a name, found {name!r}", name=argument)
        scorer, subject, ranker = names.get("scorer"), names.get("subject"), names.get("ranker")
        key = (pruning := names.get("pruning"), scorer, subject, ranker)
        if key not in self.named:
            default = self.default
            pruner = pruning or default.pruner
            # A cascade that training chose comes with its ranker.
            spelling = scorer or (None if self.trained.default else default_scorer())
            first, scorers = read_scorers(spelling) if spelling else ((), default.scorers)
            if first and ranker not in (None, WEIGHTED_SUM):
                raise BadArgument(f"scorers that decide first ({spelling}) are ranked by {WEIGHTED_SUM}", name="ranker")
            subject = default.subject if subject is None else subject
            system = System(pruner, scorers, subject, self.guide(pruner), DEFAULT_WEIGHTS)
            self.named[key] = _cascaded(self.complete(system, WEIGHTED_SUM if first else ranker), first, scorers)
        return self.named[key]

    def complete(self, system: System, ranker: str | None) -> System:
        """Return a system with the weights and the ranker that were chosen for its parts."""
        learned = {} if system.subject == NO_SUBJECT else self.trained.learned(system.key)
        if ranker is None:  # a ranker that a file names, not a person
            for fitted in learned.values():
                self.require_trusted_ranker(fitted)
        name = ranker or next(reversed(learned), WEIGHTED_SUM)
        if name == WEIGHTED_SUM:
            chosen = self.trained.weighted(system)
            return system.weighted(chosen.weights if chosen else self.usual_weights(system))
        if name not in learned or self.models is None:
            load_class(RANKERS, name)
            raise ModelMissing(
                f"no ranker {name!r} was fitted for the pruner and scorers {system.key!r} in the folder of models "
                f"{self.models}; fit it with kbtools train ranking --ranker {name}, or choose {WEIGHTED_SUM}",
                name=name,
            )
        trained = learned[name]
        return replace(system, weights=trained.weights, ranker=trained.ranker, cascade=trained.cascade)

    def require_trust(self, system: System) -> None:
        """Raise UntrustedPlugin for a system of a file that names other than installed plugins."""
        names = [(PRUNERS, system.pruner), (SUBJECT_SCORERS, system.subject), (TAGGERS, system.guide or "")]
        for group, name in [*names, *((SCORERS, scorer) for scorer in system.scorers)]:
            require_installed(group, name, file=f"{self.models}/{FILE}", trusted=self.trust_plugins)
        self.require_trusted_ranker(system)

    def require_trusted_ranker(self, system: System) -> None:
        """Raise UntrustedPlugin for a ranker of a file, or the one that decides before it, that is no plugin."""
        for one in (system, system.cascade.first) if system.cascade else (system,):
            require_installed(RANKERS, one.ranker_name, file=f"{self.models}/{FILE}", trusted=self.trust_plugins)

    def usual_weights(self, system: System) -> Weights:
        """Return the weights of parts for which none were chosen: a preset if the default system has one."""
        preset = self.preset
        return PRESETS[preset] if preset else default_weights(system.subject_scorer)

    @property
    def preset(self) -> str | None:
        """Return the name of the preset of weights that the default system has."""
        weights = self.default.weights
        return next((name for name, preset in PRESETS.items() if preset == weights), None)

    def keep(self, system: System) -> None:
        """Keep a system that training chose; it answers for its parts from now on."""
        self.trained.keep(system)
        self.forget_made()

    def forget_learned(self, system: System) -> None:
        """Forget the rankers of the parts of a system, so that the weighted sum ranks."""
        self.trained.forget_learned(system.key)
        self.forget_made()

    def forget_made(self) -> None:
        """Make the rankers from their folders again when they are asked next."""
        self.named.clear()
        self.scorings.clear()

    def make_tagger(self, name: str) -> Tagger:
        return make_tagger(name, self.kb, models=self.models, device=self.device)

    def make_embedder(self) -> EmbedQuestions:
        return make_embedder(self.kb, models=self.models, device=self.device, trust_plugins=self.trust_plugins)

    def scorer(self, name: str, kb: KnowledgeBase | None = None) -> RelationScorer:
        """Return a relation scorer, for the languages of a view if one is given."""
        key = spoken_name(name, kb or self.kb)
        if key not in self.scorers:
            if len(self.scorers) > _MOST_SCORERS:
                self.scorers.pop(next(iter(self.scorers)))
            self.scorers[key] = make_relation_scorer(name, kb or self.kb, models=self.models, device=self.device)
        return self.scorers[key]

    def made_of(self, name: str) -> str:
        """Return what tells a relation scorer from others of its name."""
        plugin = load_class(SCORERS, name)
        digest = model_digest(plugin_folder(self.models, RELATION, name, plugin)) if self.models else ""
        origin = plugin.origin() if isinstance(plugin, ZeroShot) and not digest else ""
        return repr((name, getattr(plugin, "version", 1), origin, digest))

    def subject_scorer(self, name: str) -> SubjectScorer:
        if name not in self.subject_scorers:
            self.subject_scorers[name] = make_subject_scorer(name, self.kb, models=self.models, device=self.device)
        return self.subject_scorers[name]

    def scoring(self, system: System) -> Scoring:
        """Return what scores the candidates of a system; raise CheckpointMismatch for a ranker that is out of date."""
        if system not in self.scorings:
            self.scorings[system] = self.make_scoring(system)
        return self.scorings[system]

    def make_scoring(self, system: System) -> Scoring:
        models, ranker = self.models, system.ranker
        if ranker is None or models is None:
            last, cascade = WeightedSum(system.weights), system.cascade
            return CascadeScoring(system, WeightedSum(cascade.first.weights), lambda: last) if cascade else last
        check_fitted(models, system, ranker, present=self.digests(system))
        if system.cascade is None:
            return load_ranker(models, system, ranker)
        first = load_first(models, system, system.cascade.first)
        return CascadeScoring(system, first, lambda: load_ranker(models, system, ranker))

    def digests(self, system: System) -> dict[str, str]:
        """Return the digests of the trained models that a system reads, by part and name."""
        assert self.models  # as where a ranker was fitted
        guided = self.guide_kind(system.pruner), system.guide
        digests = {}
        for part, name in [*((RELATION, name) for name in system.scorers), (SUBJECT, system.subject_scorer), guided]:
            if part and name:
                folder = plugin_folder(self.models, part, name, load_plugin(GROUPS[part], name))
                digests[f"{part}/{name}"] = model_digest(folder)
        return {name: digest for name, digest in digests.items() if digest}

    def guide(self, pruner: str) -> str | None:
        """Return the model that guides a pruner, if one does: a tagger, or the subject scorer of the vectors."""
        kind = self.guide_kind(pruner)
        if kind == SUBJECT:
            return self.kb.vectors().origin.subject
        return self.tagger if kind == TAGGER else None

    def reads_tagger(self, system: System) -> bool:
        """Return whether a tagger guides the pruner of a system."""
        return self.guide_kind(system.pruner) == TAGGER

    def guide_kind(self, pruner: str) -> str | None:
        """Return the part of a folder of models that holds what guides a pruner."""
        return {"tagger": TAGGER, "vectors": SUBJECT, None: None}[guide_of(load_class(PRUNERS, pruner))]


def spoken_name(name: str, kb: KnowledgeBase) -> str:
    """Return the name of a relation scorer with the languages of questions, if they are others than English."""
    return " ".join([name, *question_languages(kb)])
