"""Backends of others: what fails inside one is named with it, and what it gives is held to the contract."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from kbtools.entry_points import ask_plugin
from kbtools.errors import BrokenPlugin
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.manifest import Manifest
from kbtools.kb.rows import Grouped, IncomingFacts

GIVEN: Mapping[str, type | tuple[type, ...]] = {
    "manifest": Manifest,
    "relations": Sequence,
    "relation_names": Sequence,
    "types": Sequence,
    "entity_rows": np.ndarray,
    "lookup": Mapping,
    "likely_runs": Sequence,
    "similar": Sequence,
    "within_edits": Sequence,
    "forms_with_prefix": Sequence,
    "name_frequency": Sequence,
    "relations_of": Grouped,
    "objects_of": np.ndarray,
    "types_of": Grouped,
    "fact_counts": np.ndarray,
    "incoming_counts": (np.ndarray, type(None)),
    "subjects_of": IncomingFacts,
    "incoming_relations_of": Grouped,
    "name_counts": (np.ndarray, type(None)),
    "ids": Sequence,
    "names": Sequence,
    "aliases": Sequence,
    "descriptions": Sequence,
    "spoken_names": Sequence,
    "parts_of": Sequence,
    "facts_between": np.ndarray,
    "expect": type(None),
    "expect_similar": type(None),
    "expect_objects": type(None),
    "expect_subjects": type(None),
    "vectors": object,
    "rows": Sequence,
    "close": type(None),
}
"""The members of `KnowledgeBase`, and the type that each has or gives."""


class ForeignKB:
    """A knowledge base behind someone else's backend; raises BrokenPlugin where that fails."""

    def __init__(self, kb: object) -> None:
        self.kb = kb

    def __reduce__(self) -> tuple[type["ForeignKB"], tuple[object]]:
        return ForeignKB, (self.kb,)

    def __getattr__(self, name: str) -> object:
        if name not in GIVEN:
            return getattr(self.kb, name)
        member = ask_plugin("backend", self.kb, lambda: getattr(self.kb, name))
        return partial(self.call, name, member) if callable(member) else self.checked(name, member)

    def call(self, name: str, method: Any, *args: object, **kwargs: object) -> object:
        return self.checked(name, ask_plugin("backend", self.kb, lambda: method(*args, **kwargs)))

    def checked(self, name: str, value: object) -> object:
        if not isinstance(value, GIVEN[name]):
            backend = type(self.kb).__name__
            raise BrokenPlugin(f"backend {backend} gave {value!r:.80} as {name}, against its contract", name=backend)
        return value


def guarded(kb: KnowledgeBase) -> KnowledgeBase:
    """Guard a backend that is not ours."""
    return kb if type(kb).__module__.startswith("kbtools.") else cast(KnowledgeBase, ForeignKB(kb))
