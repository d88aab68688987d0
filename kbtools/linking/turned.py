"""Names of persons that a question turns around, the last name first without a comma: `rowling j k`, `venn orla`."""

from collections.abc import Iterable, Iterator

from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.links import Link, bound
from kbtools.text.ngrams import Ngram
from kbtools.text.rungs import Form, Rung

LONGEST = 4
"""Words of a name that is turned around: first, middle and last names."""


def link_turned(kb: KnowledgeBase, ngrams: Iterable[Ngram]) -> list[Link]:
    """Link the longest of some n-grams that are names turned around to those that bear them."""
    turned = [ngram._replace(form=form, reading=Form.OTHERWISE) for ngram in ngrams for form in turn(ngram.form)]
    matches = kb.lookup([ngram.form for ngram in turned]) if turned else {}
    links = [
        Link(ngram, ngram.start, ngram.end, match.name, Rung.VARIANT, match.entities)
        for ngram in turned
        for match in matches.get(ngram.form, ())
        if match.form in (Form.NORMAL, Form.OTHERWISE)
    ]
    longest = max((link.end - link.start for link in links), default=0)
    return bound(kb, [link for link in links if link.end - link.start == longest])


def turn(form: str) -> Iterator[str]:
    """Yield a form with its first word at the end, then with its last word in front."""
    words = form.split(" ")
    if 1 < len(words) <= LONGEST:
        yield " ".join([*words[1:], words[0]])
        if len(words) > 2:
            yield " ".join([words[-1], *words[:-1]])
