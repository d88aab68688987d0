"""Merged ids and names of relations, settled in the work tables of a build before ids become rows."""

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
"""Let each id point to the best that it is known to be, and so what it pointed to; ranks only fall, so that it ends."""

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

PROPERTIES = r"""
CREATE TABLE properties AS
WITH used AS (SELECT DISTINCT relation FROM predicates)
SELECT relation, relation AS entity FROM used
UNION SELECT relation, regexp_replace(relation, '/prop/[a-z/-]+/(P\d+)$', '/entity/\1') FROM used
UNION SELECT relation, regexp_replace(relation, '^wdt:(P\d+)$', 'wd:\1') FROM used
UNION SELECT relation, regexp_replace(relation, '^http.*/prop/direct/(P\d+)$', '\1') FROM used
"""
"""Relations, and the ids under which they are described: Wikidata's `prop/direct/P19` is `entity/P19`, or P19."""

LABELS = """
CREATE TABLE relation_labels AS
SELECT relation, text FROM (
  SELECT relation, text, row_number() OVER (PARTITION BY relation ORDER BY rank, length(text), text) AS place FROM (
    SELECT properties.relation, text, -1 AS rank FROM properties JOIN relation_names r ON r.relation = entity
    UNION ALL SELECT properties.relation, text, rank FROM properties JOIN names USING (entity)
    UNION ALL SELECT properties.relation, text, rank FROM properties JOIN labels USING (entity)))
WHERE place = 1
"""
"""The name of a relation: what a file of relations says, else its first in the first language, the shortest."""

NOT_ENTITIES = r"""
CREATE TABLE not_entities AS
WITH named AS (SELECT DISTINCT properties.entity FROM properties SEMI JOIN names USING (entity))
(SELECT entity FROM named
EXCEPT SELECT DISTINCT id FROM fact_ids WHERE id IN (SELECT entity FROM named))
UNION SELECT entity FROM types WHERE type IN (SELECT type FROM (SELECT DISTINCT type FROM types)
  WHERE type = 'type.property' OR regexp_full_match(type, 'http://(www\.w3\.org/1999/02/22-rdf-syntax-ns|'
  || 'www\.w3\.org/2000/01/rdf-schema|www\.w3\.org/2002/07/owl|wikiba\.se/ontology)#[A-Za-z]*Property'))
UNION SELECT entity FROM names WHERE entity LIKE '%P%' AND
  regexp_matches(entity, '^(https?://www\.wikidata\.org/entity/|wd:)P\d+$')
"""
"""Entities that are properties: relations that no fact is about, and what is typed or numbered as one."""


def merge_ids(tables: Staging) -> int:
    """Rewrite the ids of merged entities in every work table; give the number of ids that are gone."""
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


def name_relations(tables: Staging) -> int:
    """Take the names of properties from the entities and give them to the relations; give the number that have one."""
    for statement in (PROPERTIES, LABELS, NOT_ENTITIES):
        tables.run(statement)
    # Else `place of birth` would be linked as an entity in every question about one.
    tables.run("DELETE FROM names WHERE entity IN (SELECT entity FROM not_entities)")
    return tables.count("relation_labels")
