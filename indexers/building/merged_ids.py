"""Merged ids in the work tables of a build: redirects and ids said to be the same, before ids become rows."""

from kbtools.indexers.building.staging import Staging

LINKS = """
CREATE TABLE links AS
SELECT old, new FROM redirects WHERE old <> new UNION SELECT old, new FROM same WHERE old <> new
"""

RANKS = """
CREATE TABLE ranks AS
WITH ids AS (SELECT old AS id FROM links UNION SELECT new FROM links),
subjects AS (SELECT DISTINCT id AS subject FROM fact_ids WHERE is_subject AND id IN (SELECT id FROM ids))
SELECT id, row_number() OVER (ORDER BY id IN (SELECT old FROM redirects), id NOT IN (SELECT subject FROM subjects),
  id IN (SELECT old FROM same), id) AS rank
FROM ids
"""
"""The id of an entity that stays has the lowest rank: no file redirects it, then it has facts, then by spelling."""

PAIRS = """
CREATE TABLE pairs AS SELECT DISTINCT greatest(o.rank, n.rank) AS old, least(o.rank, n.rank) AS new
FROM links JOIN ranks o ON o.id = links.old JOIN ranks n ON n.id = links.new
"""

STEP = """
CREATE OR REPLACE TABLE pairs AS
WITH best AS (SELECT old, min(new) AS new FROM pairs GROUP BY old),
nearer AS (SELECT old, new FROM best
  UNION SELECT pairs.new, best.new FROM pairs JOIN best USING (old) WHERE pairs.new <> best.new),
target AS (SELECT old, min(new) AS new FROM nearer GROUP BY old)
SELECT nearer.old, coalesce(target.new, nearer.new) AS new FROM nearer LEFT JOIN target ON target.old = nearer.new
UNION SELECT old, new FROM target WHERE old IN (SELECT new FROM nearer)
"""
"""Point each id to the best id that it is known to be, and what it pointed to as well; ranks only fall, so it ends."""

OPEN = """
(SELECT 1 FROM pairs GROUP BY old HAVING count(*) > 1
UNION ALL SELECT 1 FROM pairs WHERE new IN (SELECT old FROM pairs))
"""

MERGED = """
INSERT INTO merged SELECT o.id AS old, n.id AS new FROM pairs
JOIN ranks o ON o.rank = pairs.old JOIN ranks n ON n.rank = pairs.new
"""

RENAMED = {
    "fact_ids": "number, coalesce(a.new, id) AS id, is_subject FROM fact_ids LEFT JOIN merged a ON a.old = id",
    "names": "coalesce(a.new, entity) AS entity, rank, text, language FROM names LEFT JOIN merged a ON a.old = entity",
    "counts": "coalesce(a.new, entity) AS entity, key, count FROM counts LEFT JOIN merged a ON a.old = entity",
    "descriptions": "coalesce(a.new, entity) AS entity, rank, text FROM descriptions "
    "LEFT JOIN merged a ON a.old = entity",
    "labels": "coalesce(a.new, entity) AS entity, rank, text, language FROM labels "
    "LEFT JOIN merged a ON a.old = entity",
    "subclasses": "coalesce(a.new, type) AS type, coalesce(b.new, parent) AS parent FROM subclasses "
    "LEFT JOIN merged a ON a.old = type LEFT JOIN merged b ON b.old = parent",
    "types": "coalesce(a.new, entity) AS entity, coalesce(b.new, type) AS type FROM types "
    "LEFT JOIN merged a ON a.old = entity LEFT JOIN merged b ON b.old = type",
}


def merge_ids(tables: Staging) -> int:
    """Rewrite the ids of merged entities in every work table; return the number of merged ids."""
    if not tables.count("redirects") + tables.count("same"):
        return 0
    for statement in (LINKS, RANKS, PAIRS):
        tables.run(statement)
    # Each step lets every id point to the best that is known of it, until none points on.
    while tables.count(OPEN):
        tables.run(STEP)
    tables.run(MERGED)
    for table, columns in RENAMED.items():
        tables.run(
            f"CREATE TABLE renamed AS SELECT {columns}; DROP TABLE {table}; ALTER TABLE renamed RENAME TO {table}"
        )
    return tables.count("merged")
