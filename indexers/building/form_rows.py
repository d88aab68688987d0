"""The rows of the table of forms (what each name is stored under), for many names at once.

Most names are words of plain letters, whose only form is their lower case. Others have one of a few shapes
(punctuation, an article, a comma, an initial or an `'s`) that determine their forms. Arrow rewrites these together,
with the same result as `name_forms`; the remaining names are rewritten one by one.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kbtools.kb.contract import match_kind
from kbtools.text.rewritings import LEADING, LEGAL_WORDS
from kbtools.text.rungs import Form
from kbtools.text.variants import JOINED, SPECIAL, name_forms

_LETTERS = r"^[A-Za-z]+( [A-Za-z]+)*$"

_REWRITTEN = (
    rf"(^| )([b-z]|[xiv]+|{'|'.join(sorted(SPECIAL))})( |$)|^(a|an|the) | the "
    rf"| ({'|'.join(sorted(LEGAL_WORDS))})$|{LEADING.pattern.partition('(?=')[0]}"
)
"""Words that some rule may rewrite: initials, numbers, abbreviations, articles and legal forms. Names with such a word
are rewritten one by one, even if not all need it.
"""

_LEFT_OUT = rf"{_REWRITTEN}|(^| )(a|an|the)( |$)"
"""The same with every article: names with an initial, a hyphen or a slash can be found without it."""

_WORDS = "[a-z]{2,}(?: [a-z]{2,})*"


class _Shape(NamedTuple):
    """A pattern of names in lower case, its words that must be plain, and the forms of such a name, normal first.

    Words and forms refer to the groups of the pattern.
    """

    pattern: str
    words: str
    forms: tuple[tuple[str, Form], ...]


_SHAPES = (
    _Shape(rf"^({_WORDS}) ?, ({_WORDS})$", r"\1 \2",
          ((r"\1 \2", Form.NORMAL), (r"\2 \1", Form.COMMA), (r"\1", Form.COMMA))),
    # Without the letters that are words, or that stand for `and`, `versus` or five.
    _Shape(rf"^({_WORDS}) ([b-mo-ruw-z])\.? ({_WORDS})$", r"\1 \3",
          ((r"\1 \2 \3", Form.NORMAL), (r"\1 \3", Form.SHORTENED))),
    _Shape(rf"^(?:the|an?) ({_WORDS})$", r"\1", ((r"\0", Form.NORMAL), (r"\1", Form.ARTICLE))),
    _Shape(rf"^({_WORDS}) ?'s((?: [a-z]{{2,}})*)$", r"\1\2",
          ((r"\1 s\2", Form.NORMAL), (r"\1s\2", Form.APOSTROPHE))),
)  # fmt: skip

_PUNCTUATED = r"^[ -~]+$"
_NOT_PUNCTUATION = r"[0-9&'`(\[,+]|[a-z][!$@][a-z]| [:/] |[a-z]{4}\. [a-z]"
"""The beginnings of other rules' patterns, and digits."""

_CODE = r"(^|[^a-z])[a-z]{1,3}[^a-z ]+[a-z]{1,3}($|[^a-z])"
"""Short words separated only by marks, which a hyphen or a slash may join into one code."""


class _SpeltForms(NamedTuple):
    """Forms from one rewriting, each with the position of its name."""

    places: NDArray[np.uint32]
    forms: pa.StringArray
    form: Form


def form_rows_of(names: tuple[pa.RecordBatch, int]) -> pa.Table:
    """Return the forms of a batch of names, given with the row of its first name."""
    batch, first = names
    entities, aliases, texts = batch.columns[:3]
    return form_rows(texts, aliases, entities, first=first)


def form_rows(texts: pa.StringArray, aliases: pa.BooleanArray, entities: pa.UInt32Array, *, first: int) -> pa.Table:
    """Return the forms of names and aliases whose rows begin at `first`."""
    spelt, others = shaped_forms(texts)
    forms: list[str] = []
    rewritings: list[Form] = []
    positions: list[int] = []
    for position, text in zip(others.tolist(), texts.take(pa.array(others)).to_pylist(), strict=True):
        for form, rewriting in name_forms(text).items():
            forms.append(form)
            rewritings.append(rewriting)
            positions.append(position)
    at = np.concatenate([*(group.places for group in spelt), np.array(positions, dtype=np.uint32)])
    ranks = np.repeat([*(group.form for group in spelt), 0], [*(len(group.places) for group in spelt), len(forms)])
    ranks[len(at) - len(forms) :] = rewritings
    # `match_kind` of every form.
    kinds = np.array([[match_kind(form, is_alias=side) for side in (False, True)] for form in Form], dtype=np.uint8)
    return pa.table(
        {
            "form": pa.concat_arrays([*(group.forms for group in spelt), pa.array(forms, pa.string())]),
            "kind": kinds[ranks, np.asarray(aliases)[at].astype(np.intp)],
            "text": texts.take(pa.array(at)),
            "entity": entities.take(pa.array(at)),
            "alias": at + np.uint32(first),
        }
    )


class _NamesLeft:
    """The names not matched by any shape so far, in lower case, with their positions."""

    def __init__(self, texts: pa.StringArray) -> None:
        self.texts, self.places = texts, np.arange(len(texts), dtype=np.uint32)

    def take(self, mask: pa.BooleanArray) -> tuple[NDArray[np.uint32], pa.StringArray]:
        """Remove some of the names and return them."""
        places, texts = self.places[np.asarray(mask)], self.texts.filter(mask)
        rest = pc.invert(mask)
        self.places, self.texts = self.places[np.asarray(rest)], self.texts.filter(rest)
        return places, texts


def shaped_forms(texts: pa.StringArray) -> tuple[list[_SpeltForms], NDArray[np.uint32]]:
    """Return the forms of all names of these shapes, and the positions of the others."""
    plain = is_plain(texts)
    left = _NamesLeft(texts)
    places, names = left.take(plain)
    spelt = [_SpeltForms(places, pc.ascii_lower(names), Form.NORMAL)]
    left.texts = pc.ascii_lower(left.texts)
    spelt.append(_punctuated_forms(left))
    for shape in _SHAPES:
        spelt += _forms_of_shape(left, shape)
    return spelt, left.places


def is_plain(texts: pa.StringArray) -> pa.BooleanArray:
    """Return a mask of the names whose only form is certainly their lower case."""
    letters = pc.match_substring_regex(texts, _LETTERS)
    return pc.and_(letters, pc.invert(pc.match_substring_regex(pc.ascii_lower(texts), _REWRITTEN)))


def _punctuated_forms(left: _NamesLeft) -> _SpeltForms:
    """Take the names whose only form is their words, with any marks between them."""
    texts = left.texts
    normal = pc.ascii_trim(pc.replace_substring_regex(texts, "[^a-z]+", " "), " ")
    joined = pc.match_substring_regex(texts, JOINED.pattern)
    rewritten = pc.or_(
        pc.match_substring_regex(normal, _REWRITTEN),
        pc.and_(joined, pc.or_(pc.match_substring_regex(normal, _LEFT_OUT), pc.match_substring_regex(texts, _CODE))),
    )
    other = pc.or_(rewritten, pc.or_(pc.match_substring_regex(texts, _NOT_PUNCTUATION), pc.equal(normal, "")))
    mask = pc.and_(pc.match_substring_regex(texts, _PUNCTUATED), pc.invert(other))
    places, _ = left.take(mask)
    return _SpeltForms(places, normal.filter(mask), Form.NORMAL)


def _forms_of_shape(left: _NamesLeft, shape: _Shape) -> Iterator[_SpeltForms]:
    like = pc.match_substring_regex(left.texts, shape.pattern)
    words = pc.replace_substring_regex(left.texts.filter(like), shape.pattern, shape.words)
    plain = pc.invert(pc.match_substring_regex(words, _LEFT_OUT))
    places, texts = left.take(pc.replace_with_mask(like, like, plain))
    normal: pa.StringArray | None = None
    for spelling, form in shape.forms:
        forms = pc.replace_substring_regex(texts, shape.pattern, spelling)
        # `Lagos, Lagos` is the same in reverse.
        other = pc.not_equal(forms, normal) if normal is not None else pa.repeat(pa.scalar(True), len(forms))
        yield _SpeltForms(places[np.asarray(other)], forms.filter(other), form)
        normal = forms if normal is None else normal
