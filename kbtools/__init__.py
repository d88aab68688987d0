"""Answer questions over large knowledge bases: index, prune, rank, answer."""

from kbtools.answering import Answerer
from kbtools.answering import open_kb as open
from kbtools.results import Answer, Candidate, Mention, Result
from kbtools.version import __version__

__all__ = ["Answer", "Answerer", "Candidate", "Mention", "Result", "__version__", "open"]
