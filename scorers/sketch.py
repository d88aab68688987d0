"""A small model of a plugin that training makes, before any training: what contract suites check."""

import inspect
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kbtools.kb.contract import KnowledgeBase
from kbtools.pruning.tagging import words_of
from kbtools.scorers.settings import EncoderConfig
from kbtools.scorers.words import load_words
from kbtools.text.question import MarkedQuestion


def sketch(plugin: Any, kb: KnowledgeBase, questions: Sequence[MarkedQuestion]) -> Any:
    """Make a small model that knows the words of the first questions, the same every time."""
    known = questions[:3]
    if not hasattr(plugin, "new"):
        texts = [words_of(marked.question) for marked in known]
        with tempfile.TemporaryDirectory() as working:
            return plugin.fit(texts, [(0, 0) for _ in texts], working=Path(working))
    config = EncoderConfig(dim=8, words_dim=6, hidden=4, known_words=0)
    read = plugin.text if hasattr(plugin, "text") else lambda marked: words_of(marked.question)
    over = {"kb": kb} if "kb" in inspect.signature(plugin.new).parameters else {"rows": plugin.rows_of(kb)}
    model = plugin.new(config, **over, texts=[read(marked) for marked in known], words=load_words("random"), seed=7)
    if hasattr(model, "kb"):
        model.kb = kb
    return model
