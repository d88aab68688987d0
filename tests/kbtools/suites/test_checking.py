"""Contract suites: every built-in plugin keeps its contract, and a claim that does not hold is named."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.entry_points import (
    BACKENDS,
    KINDS,
    PRUNERS,
    READERS,
    SCORERS,
    SUBJECT_SCORERS,
    TAGGERS,
    list_offers,
    list_plugins,
)
from kbtools.errors import BrokenPlugin, KBMissing, KBToolsError, KBUnusable, SourceEmpty, SourceMissing, UnknownPlugin
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.indexers.readers.batches import Block, RecordBatch, Rows, Skips, read_lines
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.kb.contract import BackendDefaults, KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.linking.links import Link
from kbtools.pruning.n_gram import NGram
from kbtools.suites import check_plugin
from kbtools.suites.backend_suite import check_kb
from kbtools.suites.checking import group_of
from kbtools.suites.model_suite import EvenTagger
from kbtools.text.question import MarkedQuestion, Question

NEEDING = {
    "torch": "kbtools[train]",
    "pycrfsuite": "kbtools[crf]",
    "lightgbm": "kbtools[ranker]",
    "tokenizers": "kbtools[minilm]",
}


def skip_if_lacking(name: str) -> None:
    """Skip a plugin whose extra is not installed."""
    needs = {need for offer in list_offers() if offer.name == name for need in offer.needs}
    for module, extra in NEEDING.items():
        if extra in needs:
            pytest.importorskip(module, reason=f"{name} needs {module}: pip install '{extra}'")


@pytest.mark.parametrize(
    ("group", "name"),
    [(group, name) for group in KINDS if group != BACKENDS for name in list_plugins(group)],
)
def test_every_plugin_that_is_built_in_keeps_its_contract(
    group: str, name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_if_lacking(name)
    if name == "encoder":
        monkeypatch.setenv("KBTOOLS_ENCODER", str(request.getfixturevalue("small_encoder")))

    assert len(list(check_plugin(name, kind=KINDS[group]))) >= 7


def test_every_backend_keeps_its_contract(sample: Answerer, tiny: KnowledgeBase) -> None:
    assert len(list(check_kb("sample", sample.kb))) == len(list(check_kb("tiny", tiny))) == 18


def test_a_backend_is_checked_on_what_it_opens(sample_path: Path) -> None:
    assert len(list(check_plugin("embedded", sample=sample_path))) == 18
    with pytest.raises(KBMissing, match="is checked on a small knowledge base that it opens"):
        list(check_plugin("embedded"))


def test_a_large_knowledge_base_is_not_read_to_check_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbtools.suites.backend_suite.MOST_ENTITIES", 1)

    with pytest.raises(KBUnusable, match="has 2 entities; a backend is checked on one with at most 1"):
        list(check_kb("large", MemoryKB([("a", "r", "b")])))


# the kind of a plugin


def test_a_name_of_no_kind_is_answered_with_the_kinds() -> None:
    with pytest.raises(UnknownPlugin, match="'nobody' is no plugin's name; say which kind: relation scorer, subject"):
        check_plugin("nobody")


@pytest.mark.parametrize(
    ("plugin", "group"),
    [
        ("kbtools.scorers.relations.lexical:LexicalScorer", SCORERS),
        ("kbtools.scorers.subjects.subject:FactCount", SUBJECT_SCORERS),
        ("kbtools.suites.model_suite:EvenTagger", TAGGERS),
        ("kbtools.pruning.focused:FocusedK", PRUNERS),
        ("kbtools.pruning.focused:FocusedIdf", PRUNERS),
        ("kbtools.indexers.readers.delimited:CSVReader", READERS),
        ("kbtools.indexers.folder.embedded:EmbeddedKB", BACKENDS),
    ],
)
def test_the_kind_of_a_class_is_told_by_what_it_does(plugin: str, group: str) -> None:
    assert group_of(plugin, None) == group


def test_a_class_that_does_nothing_of_a_plugin_needs_its_kind() -> None:
    with pytest.raises(UnknownPlugin, match="Misplaced' has no method of a plugin; say which kind"):
        check_plugin(f"{__name__}:Misplaced")


class Misplaced:
    """A class that is no plugin."""


def test_a_name_of_two_kinds_needs_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = {SCORERS: ["twin"], PRUNERS: ["twin"]}
    monkeypatch.setattr("kbtools.suites.checking.list_plugins", lambda group: offered.get(group, []))

    with pytest.raises(UnknownPlugin, match="'twin' is a relation scorer and a pruner; say which kind"):
        check_plugin("twin")


def test_a_kind_that_is_none_is_refused() -> None:
    with pytest.raises(UnknownPlugin, match="no kind of plugin 'poet'; known: relation scorer, "):
        check_plugin("lexical", kind="poet")


# plugins that break their contract


class Positional:
    """A scorer whose scores depend on the place in the batch."""

    def __init__(self, relations: Sequence[str]) -> None:
        self.count = len(relations)

    def score(self, questions: list[object]) -> list[list[float]]:
        return [[float(place)] * self.count for place in range(len(questions))]


class ByPlace(Positional):
    """A scorer that scores the places of relations, not the relations."""

    def score(self, questions: list[object]) -> list[list[float]]:
        return [[float(column) for column in range(self.count)] for _ in questions]


class Rebuilt:
    """A scorer that its folder alone can make."""

    @classmethod
    def load(cls, folder: object, kb: object, *, device: str = "cpu") -> "Rebuilt":
        return cls()


NO_CLASS = "a string"


class Relative:
    """A subject scorer that ranks subjects among each other."""

    def __init__(self, kb: KnowledgeBase) -> None: ...

    def score(
        self, questions: Sequence[MarkedQuestion], *, which: NDArray[np.int64], subjects: EntityRows
    ) -> NDArray[np.float64]:
        return subjects / max(1, len(subjects))


class Doubting(EvenTagger):
    """A tagger whose probabilities add up to more than 1."""

    def __init__(self, kb: KnowledgeBase) -> None: ...

    def spans(self, questions: Sequence[Question]) -> list[NDArray[np.float64]]:
        return [np.where(span > -np.inf, 0.0, span) for span in super().spans(questions)]


class Square(Doubting):
    """A tagger that gives spans that end before they begin a probability."""

    def spans(self, questions: Sequence[Question]) -> list[NDArray[np.float64]]:
        return [np.full(span.shape, -20.0) for span in super().spans(questions)]


class Beyond(NGram):
    """A pruner whose mentions end after their question."""

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        return [[link._replace(end=link.end + 99) for link in own] for own in super().links(questions)]


class Everybody(NGram):
    """A pruner that links to whom the knowledge base does not have."""

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        return [
            [link._replace(entities=np.array([0, 9_999], dtype=np.uint32)) for link in own]
            for own in super().links(questions)
        ]


class Unsure(NGram):
    """A pruner that gives a weight that no sum can hold."""

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        return [[link._replace(weight=-np.inf) for link in own] for own in super().links(questions)]


class Learning(NGram):
    """A pruner that weighs a mention by how often it was asked."""

    def __init__(self, kb: KnowledgeBase) -> None:
        super().__init__(kb)
        self.count = 0

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        self.count += 1
        return [[link._replace(weight=-float(self.count)) for link in own] for own in super().links(questions)]


class Spaced:
    """A reader of a fact a line, its parts divided by spaces."""

    suffixes: ClassVar[tuple[str, ...]] = (".spaced",)
    sample: ClassVar[bytes] = b"a r b\nb r c\n"

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        self.skips = skips

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        for block in blocks:
            yield from read_lines(block, self.read_line, self.skips).batches()

    def read_line(self, number: int, line: str, rows: Rows, skips: Skips) -> None:
        rows.facts.append(self.fact(number, *line.split(" ")))

    def fact(self, number: int, subject: str, relation: str, target: str) -> tuple[str, str, str]:
        return subject, relation, target


class Shouting(Spaced):
    """A reader whose suffixes no file has."""

    suffixes = ("SPACED",)


class Hollow(Spaced):
    """A reader of empty ids."""

    def fact(self, number: int, subject: str, relation: str, target: str) -> tuple[str, str, str]:
        return subject, relation, ""


class Verbose(Spaced):
    """A reader of ids as Freebase's files spell them."""

    def fact(self, number: int, subject: str, relation: str, target: str) -> tuple[str, str, str]:
        return f"http://rdf.freebase.com/ns/m.0{subject}", relation, target


class Blockwise(Spaced):
    """A reader that forgets the first line of each block."""

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        for block in blocks:
            rest = block.text.partition(b"\n")[2]
            yield from read_lines(Block(rest, block.first_line + 1), self.read_line, self.skips).batches()


class Uncounting(Spaced):
    """A reader that counts no line."""

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        yield from super().read(blocks)
        self.skips.lines = 0


class Silent(Spaced):
    """A reader that leaves damaged lines out unheard."""

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        for block in blocks:
            yield from read_lines(block, self.read_line, Skips("", 1.0)).batches()
            self.skips.lines += 1


@pytest.mark.parametrize(
    ("kind", "plugin", "claim"),
    [
        ("relation scorer", "Positional", "the size of a batch changes no score"),
        ("relation scorer", "ByPlace", "the order of relations changes no score"),
        ("relation scorer", "Rebuilt", "is rebuilt by its `load` alone"),
        ("relation scorer", "NO_CLASS", "is not a class"),
        ("subject scorer", "Relative", "the size of a batch changes no score"),
        ("tagger", "Doubting", "add up to 1 at most"),
        ("tagger", "Square", "minus infinity if a span would end before it begins"),
        ("pruner", "Beyond", "a mention lies within the text of its question"),
        ("pruner", "Everybody", "a link has entities of the knowledge base"),
        ("pruner", "Unsure", "a weight is a finite number"),
        ("pruner", "Learning", "questions asked before change no link"),
        ("pruner", "NO_CLASS", "is not a class"),
        ("reader", "Shouting", "suffixes begin with a dot"),
        ("reader", "Hollow", "texts can be stored"),
        ("reader", "Verbose", "ids are canonical"),
        ("reader", "Blockwise", "the size of blocks changes no row"),
        ("reader", "Uncounting", "the lines on which they begin"),
        ("reader", "Silent", "a damaged line is counted"),
    ],
)
def test_a_claim_that_does_not_hold_is_named(kind: str, plugin: str, claim: str) -> None:
    with pytest.raises(BrokenPlugin, match=claim):
        list(check_plugin(f"{__name__}:{plugin}", kind=kind))


def test_a_reader_that_is_right_keeps_its_contract() -> None:
    assert len(list(check_plugin(f"{__name__}:Spaced", kind="reader"))) == 8


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (None, SourceMissing, "is checked on a small file that it reads; name one with --sample"),
        ("", SourceEmpty, "the file is empty"),
        ("\n", SourceMissing, "finds no row in it"),
    ],
)
def test_a_reader_needs_a_file_with_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, error: type[KBToolsError], message: str
) -> None:
    monkeypatch.delattr(Spaced, "sample")
    sample = tmp_path / "sample"
    sample.write_text(text or "")

    with pytest.raises(error, match=message):
        list(check_plugin(f"{__name__}:Spaced", kind="reader", sample=None if text is None else sample))


class Wrapped(BackendDefaults):
    """A backend that answers as the reference, but for what a subclass changes."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kb, name)


class Uncounted(Wrapped):
    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        return np.ones(len(entities), dtype=np.int64)


class Forgetful(Wrapped):
    def lookup(self, forms: Sequence[str]) -> dict[str, object]:
        return {form: matches for form, matches in self.kb.lookup(forms).items() if " " not in form}


class Exact(Wrapped):
    def similar(self, forms: Sequence[str], **_: object) -> list[list[object]]:
        return [[] for _ in forms]


class Backwards(Wrapped):
    def objects_of(self, pairs: Sequence[tuple[int, int]]) -> list[EntityRows]:
        return [objects[::-1] for objects in self.kb.objects_of(pairs)]


@pytest.mark.parametrize(
    ("backend", "claim"),
    [
        (Uncounted, "facts are counted"),
        (Forgetful, "every form finds what is stored under it"),
        (Exact, "a misspelt form finds the names"),
        (Backwards, "objects ascend"),
    ],
)
def test_a_backend_that_breaks_a_claim_is_named(sample_memory: Answerer, backend: type[Wrapped], claim: str) -> None:
    with pytest.raises(BrokenPlugin, match=claim):
        list(check_kb("wrapped", backend(sample_memory.kb)))
