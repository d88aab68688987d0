"""A memory of what the cluster answered: bounded, the longest unused forgotten first."""

from collections.abc import Iterable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Cache(Generic[Key, Value]):
    """Two generations of entries: when the young one is full it becomes the old one, and the old one is forgotten.

    Between `size` and twice as many entries are kept. One that is looked at moves to the young generation.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.young: dict[Key, Value] = {}
        self.old: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        found = self.young.get(key)
        if found is None:
            found = self.old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: Key, value: Value) -> None:
        if len(self.young) >= self.size:
            self.old, self.young = self.young, {}
        self.young[key] = value

    def missing(self, keys: Iterable[Key]) -> list[Key]:
        """List the keys that are not remembered, once each, in their order."""
        return [key for key in dict.fromkeys(keys) if self.get(key) is None]
