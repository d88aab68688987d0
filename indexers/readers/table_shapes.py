"""The shape of a table file: where its header is, heads of two rows, pairs of one entity, and several tables."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kbtools.indexers.readers.batches import Skips
from kbtools.indexers.readers.table_rows import Layout
from kbtools.kb.table_heads import NAME_HEADS, entity_role, plain_head

OPENING = 30
"""Rows searched for the header, which may follow titles and remarks."""

PAIRS = "pairs of keys and values, read as one entity"
"""The note on such a file."""

_OTHER_TABLE = "row of another table"

_KEYS = r"(key|property|attribute|field|parameter|schlussel|eigenschaft|merkmal|feld|champ|propriete|campo|propiedad)s?"
_VALUES = r"(value|content|wert|inhalt|valeur|valor|valore|contenido)(s|e|es)?"
"""The heads of a file of pairs, if it has any."""

_FIGURE = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Header:
    """The heads of the columns, and the first and last row that they come from."""

    heads: list[str]
    first: int
    last: int


def header_place(rows: Sequence[Sequence[str]], layout: Layout) -> int:
    """Return the row of the header: the first that fits, else the first half-filled row of the usual width."""
    for place, row in enumerate(rows[:OPENING]):
        if layout.fits(row):
            return place
    widths = Counter(len(row) for row in rows[:OPENING] if any(row) and not is_rule(row))
    width = max(widths, key=lambda width: (widths[width], width)) if widths else 0
    for place, row in enumerate(rows[:OPENING]):
        if len(row) == width and sum(map(bool, row)) >= (width + 1) // 2:
            return place
    return 0


def is_rule(row: Sequence[str]) -> bool:
    """Return whether a row is a line of dashes."""
    return re.fullmatch(r"[-=+]{4,}", "".join(row)) is not None


def header_at(rows: Sequence[Sequence[str]], place: int) -> Header:
    """Return the heads of a row, joined with the rows of groups above it or the rows of heads below it."""
    heads, first, last = list(rows[place]), place, place
    while first and len(rows[first - 1]) == len(heads) and sum(map(bool, rows[first - 1])) > 1:
        groups, counts = rows[first - 1], Counter(heads)
        # If two rows of heads belong together, the first head is in the upper one.
        joins = [
            (groups[0] and not heads[0]) or counts[head] > 1 or re.fullmatch(r"[\d\W]*", head) is not None
            for head in heads
        ]
        if not any(joins):
            break
        first -= 1
        joined = zip(joins, _joined(groups, heads), heads, strict=True)
        heads = [new if join else old for join, new, old in joined]
    while _continues(heads, rows[last + 1 : OPENING], joined=last > place):
        last += 1
        heads = _joined(heads, rows[last])
    return Header(heads, first, last)


def _continues(heads: Sequence[str], below: Sequence[Sequence[str]], *, joined: bool) -> bool:
    """Return whether the next row continues a header with groups: `Team,Home,,Away,` above `,Won,Lost,Won,Lost`."""
    if len(below) < 2 or not len(heads) == len(below[0]) == len(below[1]) or not below[1][0]:
        return False
    row, rest = below[0], below[1:]
    if joined and not heads[0] and not any(row[1:]):
        # The names of the index, which pandas writes below several rows of heads.
        return bool(row[0])
    filled = [at for at, cell in enumerate(row) if cell]
    groups = [at for at in filled if at and (not heads[at] or heads[at] == heads[at - 1])]
    if len(filled) < 2 or not groups or not all(map(max, heads[1:], row[1:])):
        return False
    if not row[0]:
        return True
    # Without a cell that spans both rows, the heads differ from the figures below them.
    figures = [at for at in groups if all(len(line) > at and re.search(r"\d", line[at]) for line in rest)]
    return len(rest) > 1 and bool(figures) and not any(re.search(r"\d", cell) for cell in row)


def _joined(upper: Sequence[str], lower: Sequence[str]) -> list[str]:
    """Return the heads of two rows; a cell of the upper row stands for those right of it up to the next one."""
    heads, group = [], ""
    for above, below in zip(upper, lower, strict=True):
        group = above if above or not below else group
        heads.append(f"{group} {below}".strip() if below else above)
        if not below:
            group = ""
    return heads


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


def leave_out_table(skips: Skips, *, line: int, text: str, count: int, cure: str) -> None:
    """Count the rows of another table; note its beginning if there is a `cure`."""
    if cure:
        skips.note(f"another table begins here, left out; {cure}", line=line)
    skips.add(_OTHER_TABLE, line=line, text=text, bad=False, count=count)


def _is_other_header(row: Sequence[str], heads: Sequence[str]) -> bool:
    """Return whether a row is the header of another table: words alone, one of them the head of ids or names."""
    cells = [cell.casefold() for cell in row if cell]
    return (
        len(cells) > 1
        and cells != [head.casefold() for head in heads if head]
        and not any(map(_FIGURE.search, cells))
        and any(entity_role(cell) in ("id", "name") or re.fullmatch(NAME_HEADS[0], plain_head(cell)) for cell in cells)
    )
