"""The rows of the table of forms: what each name is stored under, for many names at once.

Names of the common shapes are rewritten together, the others one by one.
"""

import numpy as np
import pyarrow as pa

from kbtools.indexers.building.name_shapes import shaped_forms
from kbtools.kb.contract import match_kind
from kbtools.text.name_forms import name_forms
from kbtools.text.rungs import Form


def form_rows(texts: pa.StringArray, aliases: pa.BooleanArray, entities: pa.UInt32Array, *, first: int) -> pa.Table:
    """List the forms of names and aliases whose rows begin at `first`."""
    spelt, others = shaped_forms(texts)
    forms: list[str] = []
    rewritings: list[Form] = []
    positions: list[int] = []
    for position, text in zip(others.tolist(), texts.take(pa.array(others)).to_pylist(), strict=True):
        for form, rewriting in name_forms(text).items():
            forms.append(form)
            rewritings.append(rewriting)
            positions.append(position)
    at = np.concatenate([*(own.places for own in spelt), np.array(positions, dtype=np.uint32)])
    ranks = np.repeat([*(own.form for own in spelt), 0], [*(len(own.places) for own in spelt), len(forms)])
    ranks[len(at) - len(forms) :] = rewritings
    # `match_kind` of every form.
    kinds = np.array([[match_kind(form, is_alias=side) for side in (False, True)] for form in Form], dtype=np.uint8)
    return pa.table(
        {
            "form": pa.concat_arrays([*(own.forms for own in spelt), pa.array(forms, pa.string())]),
            "kind": kinds[ranks, np.asarray(aliases)[at].astype(np.intp)],
            "text": texts.take(pa.array(at)),
            "entity": entities.take(pa.array(at)),
            "alias": at + np.uint32(first),
        }
    )
