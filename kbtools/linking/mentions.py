"""The mention of a gold subject: the words of a question that name it (paper, section Dataset)."""

from collections.abc import Iterable

from kbtools.kb.contract import KnowledgeBase
from kbtools.text.name_forms import name_forms
from kbtools.text.ngrams import Ngram, ngrams
from kbtools.text.question import Question


def label_mention(kb: KnowledgeBase, question: Question, *, subject: int) -> Ngram | None:
    """Find the longest n-gram that is a name or alias of a subject, the first of several; nothing if none is."""
    return longest_match(question, (form for name in kb.aliases(subject) for form in name_forms(name)))


def longest_match(question: Question, forms: Iterable[str]) -> Ngram | None:
    """Find the longest n-gram that has one of some forms, the first of several."""
    form_set = set(forms)
    lengths = {form.count(" ") + 1 for form in form_set}
    matches = [ngram for ngram in ngrams(question, lengths=lengths) if ngram.form in form_set]
    return min(matches, key=lambda ngram: (ngram.first - ngram.last, ngram.first, ngram.joined), default=None)
