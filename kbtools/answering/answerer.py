"""Answer questions, look names up, link text and read entities: the Python side of the commands."""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Self, Unpack

from kbtools.answering.backwards import or_backwards
from kbtools.answering.entity_reader import EntityReader
from kbtools.answering.limits import ANSWERS, TOP, Limits, require_text, require_texts
from kbtools.answering.missing_facts import LACKING, MissingFacts
from kbtools.answering.query_options import NAMES, LookupOptions, QueryOptions, require_options, with_options
from kbtools.answering.records import Entity, Facts, LinkedText, LookupResult
from kbtools.answering.result_writing import fetch_objects, write_result
from kbtools.answering.results import Result
from kbtools.answering.running_text import CANDIDATES, THRESHOLD, TextLinker
from kbtools.answering.scope import in_scope, prefer_suited
from kbtools.entry_points import BACKENDS, construct, import_object, load_class
from kbtools.errors import BadArgument, KBUnusable, ModelMissing, UnknownDevice
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.language_tags import read_languages
from kbtools.kb.views import BothWays, CalledIn, InLanguages, has_incoming
from kbtools.linking.link_confidence import LinkConfidence
from kbtools.pruning.pruners import Pruner, make_pruner
from kbtools.ranking.contracts import RelationScorer, Teachable
from kbtools.ranking.direction import DirectedScorer, Directions
from kbtools.ranking.opened_system import TOGETHER, OpenedSystem
from kbtools.ranking.parts import PartNames, Parts, spoken_name
from kbtools.ranking.system import System
from kbtools.ranking.taught import Taught, TaughtQuestion, TaughtScorer, Teaching, prefer_taught, same_text
from kbtools.text.printable import html_table
from kbtools.text.question import Question

_TRIED = 10
"""The number of candidates that are searched for a relation that suits the question."""

_MOST_LANGUAGES = 16
"""The number of language choices whose views are cached."""

# Checked without importing torch, which takes seconds; the network itself reports an absent device.
_DEVICE = re.compile(r"(cpu|cuda(:\d+)?|mps)(-tf32|-bf16)?")

API = "close entity facts forget in_languages kb link lookup lookup_many models query query_many system tagger teach"
"""The members of an answerer that tab completion lists."""

_TEACHING = "kbtools.answering.teaching"
"""A module that imports this one, so it is imported by name."""

_BOTH_WAYS = ("both ways",)
"""The key, among the views in some languages, of the view that also reads facts backwards."""


def open_kb(
    path: str | Path,
    *,
    backend: str = "embedded",
    models: str | Path | None = None,
    tagger: str | None = None,
    device: str = "cpu",
    trust_plugins: bool | None = None,
) -> "Answerer":
    """Open a knowledge base for questions; `models` is a folder of trained models, made by kbtools train.

    With `trust_plugins`, files of the knowledge base and the models may name classes as `module:Class`, which are
    imported and called; otherwise only classes of installed plugins are.

    Raises KBMissing if there is no knowledge base, KBUnusable if it is damaged or of another version, ModelMissing if
    there is no folder of models, and UnknownDevice if no network runs on the device.
    """
    if not isinstance(path, str | os.PathLike):
        raise BadArgument(f"path is a str or a Path, found {path!r}", name="path")
    folder = models_folder(models)
    if not _DEVICE.fullmatch(device):
        raise UnknownDevice(
            f"no device {device!r}; known: cpu, cuda, cuda:1 or mps, also with -tf32 or -bf16", name=device
        )
    make = load_class(BACKENDS, backend)
    # Imported by name: `find_kb` indexes `sample` when it is first opened, and indexing imports this module.
    location = import_module("kbtools.indexing").find_kb(path) if backend == "embedded" else path
    kb = construct(backend, lambda: make(location))
    return Answerer(kb, models=folder, tagger=tagger, device=device, trust_plugins=trust_plugins)


def models_folder(models: str | Path | None) -> Path | None:
    """Return the folder of trained models, None if none is named; raise ModelMissing if it does not exist."""
    if models is not None and not Path(models).is_dir():
        raise ModelMissing.at(models, "no folder of models; make one with kbtools train")
    return None if models is None else Path(models)


class Answerer:
    """A knowledge base, or a view of one, with its opened systems; call `close`, or use it in a `with` block.

    A view shares the parts of the answerer it was made from. A view in some languages falls back to any language if it
    finds nothing. Unpickling opens the knowledge base again from its path.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        *,
        models: Path | None = None,
        tagger: str | None = None,
        device: str = "cpu",
        trust_plugins: bool | None = None,
        origin: "Answerer | None" = None,
        languages: tuple[str, ...] | None = None,
        fallback: "Answerer | None" = None,
    ) -> None:
        self.kb, self.origin, self.languages, self.fallback = kb, origin, languages, fallback
        self.parts: Parts = (
            origin.parts if origin else Parts(kb, models, tagger=tagger, device=device, trust_plugins=trust_plugins)
        )
        self.models, self.tagger = self.parts.models, self.parts.tagger
        self.closed = False
        self.link_confidence = LinkConfidence(kb)
        self.missing_facts = MissingFacts(kb, self.link_confidence.content)
        self.reader = EntityReader(kb)
        self.linker: TextLinker | None = None
        self.teaching: Teaching = origin.teaching if origin else Teaching(kb)
        self.taught: Taught | None = None
        self.directions: Directions | None = origin.directions if origin else None
        if isinstance(kb, BothWays):
            self.directions = Directions(kb)
        self.pruners: dict[tuple[str, str | None], Pruner] = {}
        self.opened_systems: dict[System, OpenedSystem] = {}
        self.taught_systems: dict[System, OpenedSystem] = {}
        self.views: dict[tuple[str, ...], Answerer] = {}

    def __repr__(self) -> str:
        counts = self.kb.manifest.shown_counts
        return "<Answerer: " + ", ".join(f"{count.unique:,} {kind}" for kind, count in counts.items()) + ">"

    def _repr_html_(self) -> str:
        counts = self.kb.manifest.shown_counts
        return html_table(["knowledge base", "count"], ((kind, f"{count.unique:,}") for kind, count in counts.items()))

    def __dir__(self) -> list[str]:
        """List the public API only."""
        return API.split()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., "Answerer"], tuple[Any, ...]]:
        parts = self.parts
        if self.origin is None:
            options: dict[str, Any] = {"models": parts.models, "tagger": parts.tagger, "device": parts.device}
            return partial(Answerer, **options, trust_plugins=parts.trust_plugins), (self.kb,)
        if isinstance(self.kb, BothWays):
            return Answerer.both_ways, (self.origin,)
        return Answerer.in_languages, (self.origin, ",".join(self.languages or ()))

    def close(self) -> None:
        """Close the knowledge base; later questions raise KBUnusable."""
        self.kb.close()
        self.closed = True

    def require_open(self) -> None:
        if self.closed:
            raise KBUnusable("the knowledge base is closed; open it again")
        if self.origin is not None:
            self.origin.require_open()

    def system(self, **names: Unpack[PartNames]) -> System:
        """Return the system made of the named parts, as `Parts.system` does."""
        return self.parts.system(**names)

    def opened(self, system: System) -> OpenedSystem:
        """Return an opened system that ignores taught questions; raise as the makers of its parts do."""
        if system not in self.opened_systems:
            self.opened_systems[system] = self.open_system(system)
        return self.opened_systems[system]

    def opened_taught(self, system: System) -> OpenedSystem:
        """Return an opened system with all taught questions, read again when their file has changed."""
        taught = self.teaching.newest()
        if taught is not self.taught:
            self.taught, self.taught_systems = taught, {}
        if not taught:
            return self.opened(system)
        systems = self.taught_systems
        if system not in systems:
            systems[system] = self.open_system(system, taught)
        return systems[system]

    def open_system(self, system: System, taught: Taught | None = None) -> OpenedSystem:
        """Open a system, with the heads learned from `taught` if given."""
        return OpenedSystem(
            system,
            self.kb,
            pruner=self.pruner(system),
            link_confidence=self.link_confidence,
            scorer=cache(partial(self.taught_scorer, taught)) if taught else self.scorer,
            subject_scorer=self.parts.subject_scorer,
            scoring=self.parts.scoring(system),
            prefer=partial(prefer_taught, taught, self.kb.relations) if taught else None,
            taught=len(taught or ()),
        )

    def pruner(self, system: System) -> Pruner:
        """Return the pruner of a system."""
        key = (system.pruner, system.guide)
        if key not in self.pruners:
            self.pruners[key] = make_pruner(
                system.pruner,
                self.kb,
                tagger=lambda: self.parts.make_tagger(system.guide or self.tagger),
                embedder=self.parts.make_embedder,
            )
        return self.pruners[key]

    def scorer(self, name: str) -> RelationScorer:
        """Return a relation scorer, which also scores directions if facts are read both ways."""
        scorer = self.parts.scorer(name, self.kb)
        return scorer if self.directions is None else DirectedScorer(scorer, self.directions)

    def taught_scorer(self, taught: Taught, name: str) -> RelationScorer:
        """Return a relation scorer with its head learned from taught questions; unchanged if it cannot learn."""
        scorer, untaught = self.parts.scorer(name, self.kb), self.scorer(name)
        if not isinstance(scorer, Teachable):
            return untaught
        directed = untaught if isinstance(untaught, DirectedScorer) else None
        # A head holds for one language of labels: other labels have other scores.
        spoken = spoken_name(name, self.kb)
        made_of = f"{self.parts.made_of(name)} {spoken}" if taught is self.taught else ""
        head = self.teaching.head(taught, spoken, scorer, directed, made_of=made_of)
        return TaughtScorer(scorer, head, directed) if head else untaught

    @with_options(QueryOptions, top=TOP, answers=ANSWERS)
    def query(self, text: str, **options: Unpack[QueryOptions]) -> Result:
        """Answer a question; `top` and `answers` limit the output, 0 or None for all.

        `system` replaces the system that training chose; `pruning`, `scorer`, `subject` and `ranker` replace single
        parts. With `type`, every subject has that type. With `lang`, such as `de,en`, names in these languages are
        searched first, then all others if these give no candidate. `inverse=True` also reads facts backwards, False
        never does; by default they are read backwards only if no other answer is likely. With `abstain`, answers with a
        lower confidence are withheld. A question without candidates, such as an empty one, gives a result without any.
        Raises BadArgument for an invalid question or limit, UnknownType if no entity has the type, UnknownLanguage if
        no name is in the language, ModelMissing if the ranker was not fitted for these parts, and IncomingMissing if
        facts cannot be read backwards.
        """
        (result,) = self.query_many([text], **options)
        return result

    @with_options(QueryOptions, top=TOP, answers=ANSWERS)
    def query_many(self, texts: Iterable[str], **options: Unpack[QueryOptions]) -> Iterator[Result]:
        """Answer questions as `query` does, in batches that share requests."""
        require_texts(texts, "texts", what="questions", single="query")
        self.require_open()
        require_options(options)
        if (lang := options.pop("lang", None)) is not None:
            return self.in_languages(lang).query_many(texts, **options)
        system = options.get("system") or self.system(**{name: options[name] for name in NAMES if name in options})  # type: ignore[literal-required]
        limits = Limits(options.get("top", TOP), options.get("answers", ANSWERS), options.get("abstain"))
        kind, inverse = options.get("type"), options.get("inverse")
        row = None if kind is None else self.reader.type_row(kind)
        batches: Iterator[Iterable[Result]]
        batches = forwards = (self.both_ways() if inverse else self).answer_batches(iter(texts), system, limits, row)
        if inverse is None and self.directions is None and has_incoming(self.kb):

            def ask_backwards(again: Iterator[str]) -> Iterator[list[Result]]:
                return self.both_ways().answer_batches(again, system.first, limits, row)

            batches = (or_backwards(self.kb, self.link_confidence, batch, ask_backwards) for batch in forwards)

        def ask_more(text: str) -> Result:
            return next(self.answer_batches(iter([text]), system, Limits(_TRIED, limits.answers, None), row))[0]

        results = (self.judged(result, limits, ask_more) for batch in batches for result in batch)
        return results if self.languages is None else (self.or_fallback(result, options) for result in results)

    def judged(self, result: Result, limits: Limits, ask_more: Callable[[str], Result]) -> Result:
        """Return a result, doubtful if its answers do not fit its question, unless that is taught."""
        if self.taught and same_text(result.question) in self.taught.places:
            return result
        if not result.inverse:
            answers_of = partial(self.reader.answers, limit=limits.answers)
            result = prefer_suited(result, lambda: ask_more(result.question), answers_of)
        return in_scope(
            result, limits.abstain, relations_of=self.reader.relations_of, read_forwards=self.is_read_forwards
        )

    def is_read_forwards(self, result: Result) -> bool:
        """Return whether a question asks forwards for the relation that its answer reads backwards."""
        directions = self.both_ways().directions
        assert directions is not None
        return self.missing_facts.read_forwards(result, directions)

    def or_fallback(self, result: Result, options: QueryOptions) -> Result:
        """Return a result in the requested languages, or in any language if it has no candidate there."""
        other = None if result.candidates or not self.fallback else self.fallback.query(result.question, **options)
        has_more = bool(other and (other.candidates or (other.without_facts and not result.without_facts)))
        best = other if other and has_more else result
        return replace(best, languages=self.languages, other_languages=has_more)

    def both_ways(self) -> "Answerer":
        """Return the answerer that also reads facts backwards; raise IncomingMissing if the backend cannot."""
        if self.directions is not None:
            return self
        if _BOTH_WAYS not in self.views:
            view, fallback = BothWays(self.kb), self.fallback and self.fallback.both_ways()
            self.views[_BOTH_WAYS] = Answerer(view, origin=self, languages=self.languages, fallback=fallback)
        return self.views[_BOTH_WAYS]

    def in_languages(self, lang: str | None) -> "Answerer":
        """Return the answerer that searches names in some languages, itself for None.

        Raises UnknownLanguage if no name is in one of them, KBUnusable if the knowledge base is closed.
        """
        self.require_open()
        if lang is None:
            return self
        require_text(lang, "lang")
        tags = read_languages(lang, self.kb.manifest.languages)
        if tags not in self.views:
            if len(self.views) > _MOST_LANGUAGES:
                self.views.pop(next(iter(self.views)), None)
            languages = ",".join(tags)
            fallback = Answerer(CalledIn(self.kb, languages), origin=self)
            view = InLanguages(self.kb, languages)
            self.views[tags] = Answerer(view, origin=self, languages=view.languages, fallback=fallback)
        return self.views[tags]

    def answer_batches(
        self, texts: Iterator[str], system: System, limits: Limits, type_row: int | None
    ) -> Iterator[list[Result]]:
        """Yield the results of one batch of questions at a time."""
        opened = self.opened_taught(system)
        while batch := list(islice(texts, TOGETHER)):
            for text in batch:
                if not isinstance(text, str):
                    raise BadArgument(f"a question is a str, found {text!r}", name="text")
            begun = time.perf_counter()
            linked = opened.gather([Question.read(text) for text in batch], type_row=type_row)
            pools, rating, rankings = opened.rank(linked, top=limits.top)
            confidences = opened.confidence(pools, rating).tolist()
            doubts = [LACKING if self.missing_facts.asked_for(ranking) else None for ranking in rankings]
            seconds = (time.perf_counter() - begun) / len(batch)
            pairs = [ranking.likeliest for ranking in rankings]
            objects = fetch_objects(self.kb, [pair for likeliest in pairs for pair in likeliest])
            yield [
                write_result(
                    opened,
                    ranking,
                    [objects[pair] for pair in likeliest],
                    limits,
                    type_row=type_row,
                    confidence=confidence,
                    doubt=doubt,
                    seconds=seconds,
                )
                for ranking, likeliest, confidence, doubt in zip(rankings, pairs, confidences, doubts, strict=True)
            ]

    def teach(self, question: str, subject: str = "", relation: str = "", *, answer: str = "") -> TaughtQuestion:
        """Teach the meaning of a question: subject and relation by id or name, or an answer that only one pair has.

        It is saved in the file beside the knowledge base and used for every later question. Raises BadQuestions if the
        knowledge base has no such pair or several, and BadArgument if there is no file.
        """
        self.require_open()
        teach_one = import_object(f"{_TEACHING}:teach_one")
        taught: TaughtQuestion = teach_one(self, question, subject, relation, answer)
        return taught

    def forget(self, question: str) -> bool:
        """Remove a taught question; return whether it was taught."""
        self.require_open()
        return bool(import_object(f"{_TEACHING}:forget")(self, question))

    @with_options(LookupOptions, limit=TOP)
    def lookup(self, name: str, **options: Unpack[LookupOptions]) -> LookupResult:
        """Return the entities with a name, or if there are none, those with similar names; best first.

        `type` keeps only entities of that type, `limit` only the first ones. With `lang`, names in these languages are
        searched first, then all others. Raises UnknownType if no entity has the type, UnknownLanguage if no name is in
        the language, and BadArgument for an invalid name or limit.
        """
        self.require_open()
        if (lang := options.pop("lang", None)) is not None:
            return self.in_languages(lang).lookup(name, **options)
        result = self.reader.lookup(name, **options)  # type: ignore[misc] # `lang` was removed
        if self.languages is None:
            return result
        other = None if result.matches or not self.fallback else self.fallback.lookup(name, **options)
        has_more = bool(other and other.matches)
        return replace(other if other and has_more else result, languages=self.languages, other_languages=has_more)

    @with_options(LookupOptions, limit=TOP)
    def lookup_many(self, names: Iterable[str], **options: Unpack[LookupOptions]) -> Iterator[LookupResult]:
        """Yield the result of `lookup` for each name."""
        require_texts(names, "names", what="names", single="lookup")
        return (self.lookup(name, **options) for name in names)

    def link(
        self,
        text: str,
        *,
        threshold: float = THRESHOLD,
        limit: int | None = CANDIDATES,
        lang: str | None = None,
        context: bool = False,
    ) -> LinkedText:
        """Return the non-overlapping mentions of a running text, each with at most `limit` candidates.

        Mentions that score below `threshold`, 0 to 1, are left out. With `context`, the surrounding text helps to rank
        entities with the same name. With `lang`, only names in these languages are found. Raises UnknownLanguage if no
        name is in the language, and BadArgument for an invalid text, threshold or limit.
        """
        view = self.in_languages(lang)
        view.linker = view.linker or TextLinker(view.reader)
        return view.linker.link(text, threshold=threshold, limit=limit, context=context)

    def entity(self, id: str, *, lang: str | None = None) -> Entity:
        """Return the names, types and fact counts of an entity, with `lang` its names in these languages.

        Raises UnknownEntity if there is none, and UnknownLanguage if no name is in the language.
        """
        return self.in_languages(lang).reader.entity(id)

    def facts(
        self, id: str, *, reverse: bool = False, limit: int | None = 100, offset: int = 0, lang: str | None = None
    ) -> Facts:
        """Return the facts of an entity, with `reverse` those in which it is the object.

        With `lang`, names are in these languages. Raises UnknownEntity, UnknownLanguage, BadArgument for an invalid
        limit or offset, and IncomingMissing if the backend has no index from objects to facts.
        """
        return self.in_languages(lang).reader.facts(id, reverse=reverse, limit=limit, offset=offset)
