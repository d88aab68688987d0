"""The rows of the table of forms: what each name is stored under, for many names at once.

Most names are words of plain letters, which have one form, themselves in lower case; the others are read one by one.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbtools.kb.contract import match_kind
from kbtools.text.name_forms import name_forms
from kbtools.text.rungs import Form
from kbtools.text.variants import SPECIAL

LETTERS = r"^[A-Za-z]+( [A-Za-z]+)*$"

REWRITTEN = rf"(^| )([b-z]|[xiv]+|{'|'.join(sorted(SPECIAL))})( |$)|^(a|an|the) | the "
"""Words that some rule may rewrite: initials, numbers, abbreviations and articles. Every such name is read by itself,
and some that need not be."""


def form_rows(texts: pa.StringArray, aliases: pa.BooleanArray, entities: pa.UInt32Array, *, first: int) -> pa.Table:
    """List the forms of names and aliases whose rows begin at `first`."""
    plain = is_plain(texts)
    others = pc.indices_nonzero(pc.invert(plain))
    forms, kinds, positions = [], [], []
    rows = (others.to_pylist(), texts.take(others).to_pylist(), aliases.take(others).to_pylist())
    for position, text, is_alias in zip(*rows, strict=True):
        for form, rewriting in name_forms(text).items():
            forms.append(form)
            kinds.append(match_kind(rewriting, is_alias=is_alias))
            positions.append(position)
    at = pa.concat_arrays([pc.indices_nonzero(plain), pa.array(positions, pa.uint64())])
    kinds_of_plain = pc.if_else(
        aliases.filter(plain), *(match_kind(Form.NORMAL, is_alias=side) for side in (True, False))
    )
    return pa.table(
        {
            "form": pa.concat_arrays([pc.ascii_lower(texts.filter(plain)), pa.array(forms, pa.string())]),
            "kind": pa.concat_arrays([kinds_of_plain.cast(pa.uint8()), pa.array(kinds, pa.uint8())]),
            "text": texts.take(at),
            "entity": entities.take(at),
            "alias": pa.array(at.to_numpy().astype(np.uint32) + np.uint32(first)),
        }
    )


def is_plain(texts: pa.StringArray) -> pa.BooleanArray:
    """Tell of each name whether its only form is itself in lower case; of some that it is not, where it is."""
    letters = pc.match_substring_regex(texts, LETTERS)
    return pc.and_(letters, pc.invert(pc.match_substring_regex(pc.ascii_lower(texts), REWRITTEN)))
