"""Work tables that take far more than the memory they are given."""

from pathlib import Path

from kbtools.indexers.building.staging import ENTITY_IDS, Staging

IDS = 450_000
TIGHT = "15MB"
"""What the hash table of so many distinct ids does not fit in."""


def test_more_distinct_ids_than_fit_in_memory_are_numbered_in_their_order(tmp_path: Path) -> None:
    with Staging(tmp_path, threads=2, memory=TIGHT) as tables:
        spelt = f"'m.' || lpad((i * 7919 % {IDS})::VARCHAR, 10, '0')"
        tables.run(f"INSERT INTO fact_ids SELECT i, {spelt}, true FROM range({8 * IDS}) AS of(i)")
        tables.number_ids("entities", ENTITY_IDS)
        rows = [
            tables.connection.execute(f"SELECT * FROM entities WHERE row = {row}").fetchall() for row in (0, 9, IDS)
        ]
        number = tables.count("entities")

    assert (number, rows) == (IDS, [[("m.0000000000", 0)], [("m.0000000009", 9)], []])
