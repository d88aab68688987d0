"""Cells of tables in the work tables of a build: entities where they are the id of one, else values of their kind."""

from kbtools.indexers.building.staging import Staging

CELL = r'^"(.*)"\^\^<cell:([a-z]+)>$'
"""A cell of a table as its reader leaves it: the kind of its value, or how it is linked, is the datatype."""

CELLS = f"""
CREATE TABLE cells AS
SELECT DISTINCT id, regexp_extract(id, '{CELL}', 1) AS text, regexp_extract(id, '{CELL}', 2) AS kind
FROM fact_ids WHERE id LIKE '"%"^^<cell:%>'
"""

LINKED = """
CREATE TABLE linked AS
WITH known AS (SELECT entity AS id FROM names UNION SELECT entity FROM types UNION SELECT old FROM redirects
  UNION SELECT id FROM fact_ids WHERE is_subject),
called AS (SELECT lower(text) AS text, min(entity) AS entity FROM names GROUP BY ALL HAVING count(DISTINCT entity) = 1)
SELECT cells.id, coalesce(known.id, called.entity) AS entity FROM cells
LEFT JOIN known ON known.id = cells.text AND kind NOT IN ('number', 'date')
LEFT JOIN called ON kind = 'name' AND called.text = lower(cells.text)
WHERE known.id IS NOT NULL OR called.entity IS NOT NULL
"""
"""The cells that are ids of entities, or names that one entity alone has, in columns that are linked by names."""

VALUES = """
CREATE TABLE settled AS SELECT number, CASE
  WHEN linked.entity IS NOT NULL THEN linked.entity
  WHEN cells.id IS NULL THEN fact_ids.id
  ELSE '"' || cells.text || CASE kind
    WHEN 'number' THEN '"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    WHEN 'date' THEN '"^^<http://www.w3.org/2001/XMLSchema#' || if(contains(cells.text, ':'), 'dateTime>', 'date>')
    WHEN 'url' THEN '"^^<http://www.w3.org/2001/XMLSchema#anyURI>'
    ELSE '"' END
  END AS id, is_subject
FROM fact_ids LEFT JOIN cells ON cells.id = fact_ids.id LEFT JOIN linked ON linked.id = fact_ids.id;
DROP TABLE fact_ids; ALTER TABLE settled RENAME TO fact_ids; DROP TABLE cells; DROP TABLE linked
"""
"""All other cells are literals of their kind."""


def link_cells(tables: Staging) -> None:
    """Write each cell of a table as the entity that it is the id of, or as a value."""
    for statement in (CELLS, LINKED, VALUES):
        tables.run(statement)
