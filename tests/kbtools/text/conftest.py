"""Characters for the tests of texts."""

import sys
import unicodedata

import pytest


@pytest.fixture(scope="session")
def characters() -> list[str]:
    """Return every character but the letters without case, which are too many."""
    every = map(chr, range(sys.maxunicode + 1))
    return [character for character in every if unicodedata.category(character) not in {"Lo", "Cn", "Co", "Cs"}]
