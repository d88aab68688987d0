"""Fuzzy recall without tantivy: every form one edit away, looked up exactly. It finds less, and needs nothing."""

import logging
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from kbtools.indexers.arrays import StringTable
from kbtools.indexers.form_store import FormStore

logger = logging.getLogger(__name__)


class Recall(Protocol):
    """What recalls the normal forms near a form, to be rescored."""

    def recall(self, form: str) -> set[str]: ...


class OneEdit:
    """Recall the stored forms that are one insertion, deletion, exchange or transposition away."""

    def __init__(self, forms: FormStore) -> None:
        self.forms = forms

    def recall(self, form: str) -> set[str]:
        return self.forms.normal_forms(edits(form))


def edits(form: str) -> Iterator[str]:
    """Yield the forms one edit away; letters come from the Latin alphabet and from the form itself."""
    letters = sorted(set(string.ascii_lowercase + " ") | set(form))
    for at in range(len(form) + 1):
        before, after = form[:at], form[at:]
        yield from (before + letter + after for letter in letters)
        if after:
            yield before + after[1:]
            yield from (before + letter + after[1:] for letter in letters)
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]


def open_recall(folder: Path, *, forms: FormStore, texts: StringTable) -> Recall:
    """Open the fuzzy index; where tantivy cannot be imported, or was not when it was built, recall by one edit."""
    try:
        from kbtools.indexers.fuzzy_index import FuzzyIndex
    except ImportError as error:
        logger.warning("tantivy cannot be imported (%s): fuzzy links are one edit away at most", error)
        return OneEdit(forms)
    if not folder.exists():
        logger.warning("%s was built without tantivy: fuzzy links are one edit away at most", folder.parent)
        return OneEdit(forms)
    return FuzzyIndex(folder, texts=texts)
