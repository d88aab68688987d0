"""The parts of the systems that answer questions over a knowledge base, each made when it is first asked for."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from kbtools.entry_points import (
    RANKERS,
    load_class,
    require_installed,
    trusts_plugins,
)
from kbtools.errors import BadArgument, ModelMissing
from kbtools.kb.contract import KnowledgeBase
from kbtools.pruning.pruners import DEFAULT, EmbedQuestions, Pruner, make_pruner
from kbtools.pruning.tagging import Tagger
from kbtools.ranking.cascade import Cascade
from kbtools.ranking.contracts import RelationScorer, SubjectScorer, log_total
from kbtools.ranking.evidence import Evidence, gather_evidence
from kbtools.ranking.learned import FILE as RANKERS_FILE
from kbtools.ranking.learned import Fitted, FittedRankers, check_fitted, load_cascade, load_ranker, read_fitted
from kbtools.ranking.model_store import require_records
from kbtools.ranking.models import (
    LEXICAL,
    default_scorer,
    guide_model,
    make_embedder,
    make_relation_scorer,
    make_subject_scorer,
    make_tagger,
    scorer_names,
    training_digests,
)
from kbtools.ranking.pools import Pools
from kbtools.ranking.rankers import WEIGHTED_SUM, LearnedScoring, Scoring, WeightedSum
from kbtools.ranking.score import no_constant
from kbtools.ranking.system import FILE as SYSTEM_FILE
from kbtools.ranking.system import System, read_system
from kbtools.ranking.weights import FILE as WEIGHTS_FILE
from kbtools.ranking.weights import Weights, default_weights, ranking_key, read_weights
from kbtools.text.question import Question

TAGGER = "bigru-crf+"

POPULARITY = "popularity"
"""The name to give as the subject scorer where training chose one and popularity shall stand in for it."""


class SystemParts:
    """Pruners, scorers and rankers over a knowledge base and a folder of models, those made so far at hand."""

    def __init__(
        self,
        kb: KnowledgeBase,
        *,
        models: Path | None,
        tagger: str | None,
        device: str,
        trust_plugins: bool | None = None,
    ) -> None:
        self.kb = kb
        self.models = models
        self.trust_plugins = trusts_plugins(trust_plugins)
        if models is not None:
            require_records(models, (SYSTEM_FILE, WEIGHTS_FILE, RANKERS_FILE))
        chosen = read_system(models, trust_plugins=self.trust_plugins)
        self.trained_system = chosen or System(DEFAULT, default_scorer(), None, TAGGER)
        self.tagger = tagger or self.trained_system.tagger
        self.device = device
        self.pruners: dict[str, Pruner] = {}
        self.scorers: dict[str, RelationScorer] = {}
        self.subject_scorers: dict[str, SubjectScorer] = {}
        self.weights_by_key = read_weights(models)
        self.fitted_by_key = read_fitted(models)
        self.rankers: dict[tuple[str, str], LearnedScoring | Cascade] = {}

    def system(
        self,
        *,
        pruning: str | None = None,
        scorer: str | None = None,
        subject: str | None = None,
        ranker: str | None = None,
    ) -> System:
        """Name the parts that answer: those given, and for the rest what training chose, else the defaults."""
        trained = self.trained_system
        named = {"pruning": pruning, "scorer": scorer, "subject": subject, "ranker": ranker}
        for argument, name in named.items():
            if not isinstance(name, str | None):
                raise BadArgument(f"{argument} is a name, found {name!r}", name=argument)
        subject = trained.subject if subject is None else subject
        return System(
            pruning or trained.pruning,
            scorer or trained.scorer,
            None if subject == POPULARITY else subject,
            self.tagger,
            ranker=ranker,
        )

    def fitted_rankers(self, key: str) -> FittedRankers:
        """Return the rankers fitted for a pruner and its scorers; raise UntrustedPlugin for a name of no plugin."""
        fitted = self.fitted_by_key.get(key, {})
        for name in fitted:
            require_installed(RANKERS, name, file=f"{self.models}/{RANKERS_FILE}", trusted=self.trust_plugins)
        return fitted

    def pruner(self, name: str) -> Pruner:
        if name not in self.pruners:
            self.pruners[name] = make_pruner(name, self.kb, tagger=self.make_tagger, embedder=self.make_embedder)
        return self.pruners[name]

    def make_tagger(self) -> Tagger:
        return make_tagger(self.tagger, self.kb, models=self.models, device=self.device)

    def make_embedder(self) -> EmbedQuestions:
        return make_embedder(self.kb, models=self.models, device=self.device, trust_plugins=self.trust_plugins)

    def scorer(self, name: str) -> RelationScorer:
        if name not in self.scorers:
            self.scorers[name] = make_relation_scorer(name, self.kb, models=self.models, device=self.device)
        return self.scorers[name]

    def subject_scorer(self, name: str) -> SubjectScorer:
        if name not in self.subject_scorers:
            self.subject_scorers[name] = make_subject_scorer(name, self.kb, models=self.models, device=self.device)
        return self.subject_scorers[name]

    def weights(self, *, pruning: str, scorer: str, subject: str | None) -> Weights:
        """Give what each part of a score counts: as chosen for just these if it was, else as for all of the models."""
        key = ranking_key(pruning=self.pruning_key(pruning), scorer=scorer, subject=subject)
        return self.chosen_weights(key, subject)

    def chosen_weights(self, key: str, subject: str | None) -> Weights:
        return self.weights_by_key.get(key, default_weights(subject, self.trained_system.weights))

    def scoring(self, *, pruning: str, scorer: str, subject: str | None, ranker: str | None = None) -> Scoring:
        """Give what scores candidates: the ranker of a name, else the one that was fitted for just these last.

        Without any it is the weighted sum. Raises ModelMissing for one that was not fitted for these, UnknownPlugin.
        """
        key = ranking_key(pruning=self.pruning_key(pruning), scorer=scorer, subject=subject)
        fitted = self.fitted_by_key.get(key, {}) if ranker else self.fitted_rankers(key)
        name = ranker or next(reversed(fitted), WEIGHTED_SUM)
        if name == WEIGHTED_SUM:
            return WeightedSum(self.chosen_weights(key, subject))
        if name not in fitted or self.models is None:
            load_class(RANKERS, name)
            raise ModelMissing(
                f"no ranker {name!r} was fitted for the pruner and scorers {key!r} in the folder of models "
                f"{self.models}; fit it with kbtools train ranking --ranker {name}, or choose {WEIGHTED_SUM}",
                name=name,
            )
        if (key, name) not in self.rankers:
            present = training_digests(scorer, subject, self.guide(pruning), models=self.models)
            check_fitted(self.models, key, fitted[name], present=present)
            self.rankers[key, name] = self.load_scoring(
                self.models, key, fitted[name], pruning=pruning, scorer=scorer, subject=subject
            )
        return self.rankers[key, name]

    def load_scoring(
        self, models: Path, key: str, fitted: Fitted, *, pruning: str, scorer: str, subject: str | None
    ) -> LearnedScoring | Cascade:
        """Rebuild a ranker, with the one that decides before it if there is one."""
        doubt = fitted.doubt
        if doubt is None:
            return load_ranker(models, key, fitted)
        first_key = ranking_key(pruning=self.pruning_key(pruning), scorer=doubt.scorer, subject=subject)
        first = self.fitted_by_key.get(first_key, {}).get(fitted.ranker)
        return load_cascade(models, key, fitted, scorer=scorer, first_key=first_key, first=first, doubt=doubt)

    def evidence(
        self,
        pools: Pools,
        questions: Sequence[Question],
        *,
        scorer: str,
        subject: str | None,
        learned: bool,
        in_doubt: Sequence[str] = (),
    ) -> Evidence:
        """Ask every scorer of a system about the pools of questions, but for those that are asked in doubt alone.

        A learned ranker reads the words' overlap too.
        """
        scorers = {name: self.scorer(name) for name in scorer_names(scorer) if name not in in_doubt}
        beside = {LEXICAL: self.scorer(LEXICAL)} if learned and LEXICAL not in scorers else {}
        by = self.subject_scorer(subject) if subject else None
        later = {name: partial(self.scorer, name) for name in in_doubt}
        # The weighted sum normalises over the pool, so that what a scorer adds to a mention's scores does not count.
        constant = log_total if learned else no_constant
        return gather_evidence(
            self.kb, pools, questions, scorers=scorers, subject=by, beside=beside, later=later, constant=constant
        )

    def pruning_key(self, pruning: str) -> str:
        """Name a pruner, and the tagger or the subject scorer that guides it."""
        guide = self.guide(pruning)
        return f"{pruning}/{guide[1]}" if guide else pruning

    def guide(self, pruning: str) -> tuple[str, str] | None:
        """Name the model that guides a pruner, if one does: its part of a folder of models, and its plugin."""
        return guide_model(self.pruner(pruning), self.kb, tagger=self.tagger)
