"""Real spellings of names, in three parts by name: for fitting, for choosing, and for reporting."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rapidfuzz import fuzz

from kbtools.indexers.folder.folder_kb import FolderKB
from kbtools.kb.contract import KnowledgeBase, SimilarName
from kbtools.linking.near_ranking import RANKED, Bearer, bearers_with_most_names
from kbtools.linking.similarity import by_edits
from kbtools.text.normaliser import normal_form
from kbtools.text.rungs import Form

REPORT, CHOOSE, FIT = "report", "choose", "fit"


def part_of(name: str) -> str:
    """Return the part that the variants of a name belong to: three tenths are reported on, one is chosen on."""
    tenth = zlib.crc32(normal_form(name).encode()) % 10
    return REPORT if tenth < 3 else CHOOSE if tenth == 3 else FIT


def read_variants(path: Path, part: str = REPORT) -> Iterator[tuple[str, str]]:
    """Yield variants and the names that they spell, as they are written."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            _, variant, name = line.rstrip("\n").replace("_", " ").split("\t")
            if part_of(name) == part:
                yield variant, name


def stored_variants(kb: KnowledgeBase, path: Path, part: str = REPORT) -> list[tuple[str, str]]:
    """Return, in normal forms, the variants whose name a knowledge base has as it is written."""
    pairs = [(normal_form(variant), normal_form(name)) for variant, name in read_variants(path, part)]
    matches = kb.lookup(list(dict.fromkeys(name for _, name in pairs)))
    stored = {form for form, own in matches.items() if any(match.form is Form.NORMAL for match in own)}
    return [pair for pair in pairs if pair[0] != pair[1] and pair[1] in stored]


def nearest_by_edits(kb: KnowledgeBase, form: str) -> list[SimilarName]:
    """Return the names that the trees rank, in the order before: by edits, then by rapidfuzz's ratio."""
    names = [name.form for name in kb.similar([form], limit=RANKED)[0]]
    return by_edits(form, [SimilarName(name, fuzz.ratio(form, name)) for name in names])


def bearers_without(kb: FolderKB, variant: str, forms: Sequence[str]) -> list[Bearer]:
    """Return the bearers of forms with the counts of their names as they were if no entity had the variant as a name.

    Most variants are aliases in a knowledge base of FB5M's size, and the count would give the right entity away.
    """
    matches = kb.lookup([variant, *forms])
    groups = [np.concatenate([match.entities for match in matches[form]]) for form in forms]
    own = [match.entities for match in matches.get(variant, ()) if match.form is Form.NORMAL]
    entities = np.concatenate(groups)
    counts = kb.alias_counts(entities) - np.isin(entities, np.concatenate([entities[:0], *own]))
    return bearers_with_most_names(entities, counts, list(map(len, groups)))


def bearers(kb: KnowledgeBase, forms: list[str]) -> list[set[int]]:
    """Return the entities that bear each form as a name."""
    matches = kb.lookup(forms)
    return [{row for match in matches.get(form, ()) for row in match.entities.tolist()} for form in forms]
