"""Files that are not one header above an entity per row: pairs of one entity, and several tables below each other."""

import re
from collections.abc import Sequence

from kbtools.kb.table_heads import NAME_HEADS, entity_role, plain_head

OTHER_TABLE = "row of another table"

_KEYS = r"(key|property|attribute|field|parameter|schlussel|eigenschaft|merkmal|feld|champ|propriete|campo|propiedad)s?"
_VALUES = r"(value|content|wert|inhalt|valeur|valor|valore|contenido)(s|e|es)?"
"""The heads of a file of pairs, if it has any."""

_FIGURE = re.compile(r"\d")


def as_pairs(rows: Sequence[Sequence[str]]) -> tuple[list[str], list[str]] | None:
    """Return the keys and values of a file of pairs that describe one entity, such as `name,Ocean Pearl`; else None.

    Without heads for them, such pairs are recognised by their keys: several usual ones, keys with colons, or keys in
    lower case beside a name in capitals. Their values are of several kinds, unlike those of a column.
    """
    if len(rows) < 3 or any(len(row) != 2 or not row[0] for row in rows):
        return None
    headed = [re.fullmatch(part, plain_head(head)) for part, head in zip((_KEYS, _VALUES), rows[0], strict=True)]
    pairs = rows[1:] if all(headed) else rows
    keys, values = [key.removesuffix(":").rstrip() for key, _ in pairs], [value for _, value in pairs]
    roles = [entity_role(key) for key in keys]
    if len({*keys}) < len(keys) or "name" not in roles:
        return None
    if all(headed):
        return keys, values
    name = values[roles.index("name")]
    usual = sum(map(bool, roles)) > 1 and not any(map(entity_role, values))
    colons = all(key.endswith(":") for key, _ in pairs)
    lower = all(key == key.lower() for key in keys) and name[:1].isupper()
    others = [value for value, role in zip(values, roles, strict=True) if value and role != "name"]
    mixed = len({bool(_FIGURE.search(value)) for value in others}) == 2
    return (keys, values) if colons or ((usual or lower) and mixed) else None


def next_table(rows: Sequence[Sequence[str]], heads: Sequence[str]) -> int | None:
    """Return the row where another table begins: a header with a usual head, below a blank row and maybe a title."""
    for place, row in enumerate(rows):
        if place and not any(rows[place - 1]):
            start = place
            if sum(map(bool, row)) == 1 and place + 1 < len(rows):
                row, place = rows[place + 1], place + 1
            if place + 1 < len(rows) and sum(map(bool, rows[place + 1])) > 1 and _is_other_header(row, heads):
                return start
    return None


def _is_other_header(row: Sequence[str], heads: Sequence[str]) -> bool:
    """Return whether a row is the header of another table: words alone, one of them the head of ids or names."""
    cells = [cell.casefold() for cell in row if cell]
    return (
        len(cells) > 1
        and cells != [head.casefold() for head in heads if head]
        and not any(map(_FIGURE.search, cells))
        and any(entity_role(cell) in ("id", "name") or re.fullmatch(NAME_HEADS[0], plain_head(cell)) for cell in cells)
    )
