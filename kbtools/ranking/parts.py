"""The parts of systems over a knowledge base and a folder of models, each made when first needed."""

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
"""The most relation scorers that are cached; each language has its own."""


class PartNames(TypedDict, total=False):
    """The names of parts of a system; several scorers are separated by commas."""

    pruning: str | None
    scorer: str | None
    subject: str | None
    ranker: str | None


_DOUBT = 0.8
"""The share of the pool below which the scorers after a slash are used.

With `static/encoder`, 61.7, 62.2, 62.3, 62.4 % of 4,000 validation questions of FBSQ are right at 0.5, 0.6, 0.65, 0.7,
where 28, 35, 38, 41 % of the questions are in doubt; with `static` alone 59.1 %, with `encoder` alone 63.0 %.
"""


def _cascaded(system: System, first: tuple[str, ...], scorers: tuple[str, ...]) -> System:
    """Return a system with these relation scorers, as a cascade if there are first ones."""
    last = replace(system, scorers=scorers)
    return replace(last, cascade=Cascade(replace(system, scorers=first), _DOUBT)) if first else last


class Parts:
    """Cached taggers, scorers and rankers, and the systems that training chose.

    They belong to the stored knowledge base and are shared by its views.
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
        """Return the system that training chose, or else the one that needs no training."""
        return self.trained.default or _cascaded(
            System(DEFAULT, (), POPULARITY, None, DEFAULT_WEIGHTS), *read_scorers(default_scorer())
        )

    def system(self, **names: Unpack[PartNames]) -> System:
        """Return the system with the named parts; training chose the other parts, or they are the defaults.

        Weights and ranker were chosen by training for exactly these parts. Raises ModelMissing if the ranker was
        not fitted for them, UnknownPlugin, and BadArgument for a name that is not a str.
        """
        for argument, name in names.items():
            if not isinstance(name, str | None):
                raise BadArgument(f"{argument} is a name (str), found {name!r}", name=argument)
        scorer, subject, ranker = names.get("scorer"), names.get("subject"), names.get("ranker")
        key = (pruning := names.get("pruning"), scorer, subject, ranker)
        if key not in self.named:
            default = self.default
            pruner = pruning or default.pruner
            # A cascade that training chose has its own ranker.
            spelling = scorer or (None if self.trained.default else default_scorer())
            first, scorers = read_scorers(spelling) if spelling else ((), default.scorers)
            if first and ranker not in (None, WEIGHTED_SUM):
                raise BadArgument(f"scorers before a slash ({spelling}) are ranked by {WEIGHTED_SUM}", name="ranker")
            subject = default.subject if subject is None else subject
            system = System(pruner, scorers, subject, self.guide(pruner), DEFAULT_WEIGHTS)
            self.named[key] = _cascaded(self.complete(system, WEIGHTED_SUM if first else ranker), first, scorers)
        return self.named[key]

    def complete(self, system: System, ranker: str | None) -> System:
        """Return a system with the weights and ranker that were chosen for its parts."""
        learned = {} if system.subject == NO_SUBJECT else self.trained.learned(system.key)
        if ranker is None:  # the ranker is named by a file, not by the user
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
        """Raise UntrustedPlugin if a system from a file names anything but installed plugins."""
        names = [(PRUNERS, system.pruner), (SUBJECT_SCORERS, system.subject), (TAGGERS, system.guide or "")]
        for group, name in [*names, *((SCORERS, scorer) for scorer in system.scorers)]:
            require_installed(group, name, file=f"{self.models}/{FILE}", trusted=self.trust_plugins)
        self.require_trusted_ranker(system)

    def require_trusted_ranker(self, system: System) -> None:
        """Raise UntrustedPlugin if a ranker from a file, or the first one of a cascade, is not an installed plugin."""
        for one in (system, system.cascade.first) if system.cascade else (system,):
            require_installed(RANKERS, one.ranker_name, file=f"{self.models}/{FILE}", trusted=self.trust_plugins)

    def usual_weights(self, system: System) -> Weights:
        """Return default weights for parts: those of the default system if it has a preset."""
        preset = self.preset
        return PRESETS[preset] if preset else default_weights(system.subject_scorer)

    @property
    def preset(self) -> str | None:
        """Return the name of the default system's preset of weights, None if it has none."""
        weights = self.default.weights
        return next((name for name, preset in PRESETS.items() if preset == weights), None)

    def keep(self, system: System) -> None:
        """Save a system that training chose, which is used for its parts from now on."""
        self.trained.keep(system)
        self.forget_made()

    def forget_learned(self, system: System) -> None:
        """Remove the learned rankers of a system's parts, so that the weighted sum is used."""
        self.trained.forget_learned(system.key)
        self.forget_made()

    def forget_made(self) -> None:
        """Clear the cached systems and rankers."""
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
        """Return an identity of a relation scorer: name, version, and digest or origin of its model."""
        plugin = load_class(SCORERS, name)
        digest = model_digest(plugin_folder(self.models, RELATION, name, plugin)) if self.models else ""
        origin = plugin.origin() if isinstance(plugin, ZeroShot) and not digest else ""
        return repr((name, getattr(plugin, "version", 1), origin, digest))

    def subject_scorer(self, name: str) -> SubjectScorer:
        if name not in self.subject_scorers:
            self.subject_scorers[name] = make_subject_scorer(name, self.kb, models=self.models, device=self.device)
        return self.subject_scorers[name]

    def scoring(self, system: System) -> Scoring:
        """Return the scoring of a system; raise CheckpointMismatch if its ranker is out of date."""
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
        """Return the digests of the trained models of a system, by part and name."""
        assert self.models  # a ranker was fitted in it
        guided = self.guide_kind(system.pruner), system.guide
        digests = {}
        for part, name in [*((RELATION, name) for name in system.scorers), (SUBJECT, system.subject_scorer), guided]:
            if part and name:
                folder = plugin_folder(self.models, part, name, load_plugin(GROUPS[part], name))
                digests[f"{part}/{name}"] = model_digest(folder)
        return {name: digest for name, digest in digests.items() if digest}

    def guide(self, pruner: str) -> str | None:
        """Return the tagger or subject scorer that guides a pruner, None if it has no guide."""
        kind = self.guide_kind(pruner)
        if kind == SUBJECT:
            return self.kb.vectors().origin.subject
        return self.tagger if kind == TAGGER else None

    def reads_tagger(self, system: System) -> bool:
        """Return whether a tagger guides the pruner of a system."""
        return self.guide_kind(system.pruner) == TAGGER

    def guide_kind(self, pruner: str) -> str | None:
        """Return the part of a folder of models with the guide of a pruner, None if it has no guide."""
        return {"tagger": TAGGER, "vectors": SUBJECT, None: None}[guide_of(load_class(PRUNERS, pruner))]


def spoken_name(name: str, kb: KnowledgeBase) -> str:
    """Return the name of a relation scorer, with the languages of questions unless only English."""
    return " ".join([name, *question_languages(kb)])
