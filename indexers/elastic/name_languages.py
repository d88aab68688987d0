"""The languages of names in documents of entities: a set for each name, then for each alias, in their order.

A document whose names are all of one language, that of the catalog, and whose aliases are so too, has no sets.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kbtools.indexers.folder.language_sets import set_text, spoken
from kbtools.kb.spoken_names import SpokenName


def language_sets(document: Mapping[str, Any], language: str) -> list[str]:
    """Give the set of each name and alias of a document, in which none means a language."""
    if sets := document.get("languages"):
        return list(sets)
    names, aliases = len(document.get("names", ())), len(document.get("aliases", ()))
    return [set_text({language: False})] * names + [set_text({language: True})] * aliases


def spoken_names_in(documents: Sequence[Mapping[str, Any]], language: str) -> list[SpokenName]:
    """List the names of an entity, which may stand in several documents, with their languages, aliases last."""
    names: list[SpokenName] = []
    aliases: list[SpokenName] = []
    for document in documents:
        sets = language_sets(document, language)
        own = document.get("names", ())
        names += map(spoken, own, sets)
        aliases += map(spoken, document.get("aliases", ()), sets[len(own) :])
    return names + aliases
