"""The ranks of an entity's names, which are not stored but for updates: read from their order, and their languages."""

from collections.abc import Sequence

from kbtools.indexers.readers.labels import ALIAS, LAST_RANK
from kbtools.kb.language_tags import SpokenName


def rank_names(texts: Sequence[str], flags: Sequence[bool]) -> list[tuple[str, int]]:
    """Return the names of an entity with their ranks, by which of them are aliases.

    Of several languages the order is kept alone: where texts stop ascending among the aliases, those of another begin.
    """
    ranks, rank = [0] * len(texts), 1
    for place in range(1, len(texts)):
        rank += bool(flags[place] and flags[place - 1] and texts[place] < texts[place - 1])
        ranks[place] = rank if flags[place] else 0
    return [
        (text, 0 if not flag else ALIAS if own == rank or own == 0 else own)
        for text, flag, own in zip(texts, flags, ranks, strict=True)
    ]


def rank_spoken(names: Sequence[SpokenName], flags: Sequence[bool]) -> list[tuple[str, int]]:
    """Return names with their ranks by their languages: a name in any language is no alias."""
    ranked = rank_names([name.text for name in names], flags)
    return [
        (text, min(rank, LAST_RANK) if name.name_in else rank) for name, (text, rank) in zip(names, ranked, strict=True)
    ]
