"""Rows that a build derives from the rows of all sources: superclasses, units of quantities, labels, relation names."""

from kbtools.indexers.building.staging import Staging

UNIT = r'^"(.*)"\^\^<http://www\.wikidata\.org/entity/(Q\d+)>$'
"""A quantity of Wikidata as its readers leave it: the unit is the datatype."""

SUPERTYPES = """
CREATE TABLE widened AS
WITH RECURSIVE above AS (
  SELECT DISTINCT type, type AS parent FROM types
  UNION SELECT above.type, subclasses.parent FROM above JOIN subclasses ON subclasses.type = above.parent)
SELECT DISTINCT entity, parent AS type FROM types JOIN above USING (type);
DROP TABLE types; ALTER TABLE widened RENAME TO types
"""
"""Types and all that is above them; a union that keeps no row twice ends in circles too."""

UNIT_NAMES = f"""
CREATE TABLE units AS
WITH used AS (SELECT DISTINCT regexp_extract(id, '{UNIT}', 2) AS entity FROM fact_ids
  WHERE id LIKE '"%"^^<http://www.wikidata.org/entity/Q%>')
SELECT entity, replace(replace(coalesce(text, entity), '\\', '\\\\'), '"', '\\"') AS text FROM used LEFT JOIN (
  SELECT entity, text, row_number() OVER (PARTITION BY entity ORDER BY rank, length(text), text) AS place
  FROM (SELECT * FROM names UNION ALL SELECT * FROM labels) SEMI JOIN used USING (entity)) USING (entity)
WHERE place IS NULL OR place = 1
"""

UNITS = f"""
CREATE TABLE measured AS SELECT number,
  CASE WHEN units.text IS NULL THEN id
  ELSE '"' || regexp_extract(id, '{UNIT}', 1) || ' ' || units.text || '"' END AS id, is_subject
FROM fact_ids LEFT JOIN units ON id LIKE '"%"^^<http://www.wikidata.org/entity/Q%>'
  AND units.entity = regexp_extract(id, '{UNIT}', 2);
DROP TABLE fact_ids; ALTER TABLE measured RENAME TO fact_ids
"""

LENT = r"""
INSERT INTO names SELECT entity, rank, text, language FROM labels
WHERE entity IN (SELECT id FROM fact_ids)
  AND NOT regexp_full_match(entity, 'P\d+') AND entity NOT IN (SELECT entity FROM names)
"""

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


def widen_types(tables: Staging) -> None:
    """Add the superclasses of its types to every entity."""
    if tables.count("subclasses"):
        tables.run(SUPERTYPES)


def name_units(tables: Staging) -> None:
    """Write the name of the unit behind each quantity, its id if it has none."""
    tables.run(UNIT_NAMES)
    if tables.count("units"):
        tables.run(UNITS)


def lend_labels(tables: Staging) -> None:
    """Name the entities that were left out and that facts speak of."""
    if tables.count("labels"):
        tables.run(LENT)


def name_relations(tables: Staging) -> int:
    """Move the names of properties from the entities to the relations; return the number of names."""
    for statement in (PROPERTIES, LABELS, NOT_ENTITIES):
        tables.run(statement)
    # Else `place of birth` would be linked as an entity in every question about one.
    tables.run("DELETE FROM names WHERE entity IN (SELECT entity FROM not_entities)")
    return tables.count("relation_labels")
