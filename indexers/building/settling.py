"""Rows of all sources taken together: superclasses, names of units, labels of what facts speak of."""

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


def widen_types(tables: Staging) -> None:
    """Give every entity the superclasses of its types."""
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
