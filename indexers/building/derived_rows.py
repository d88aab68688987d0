"""Rows that a build derives from the rows of all sources: superclasses, units of quantities, labels, relation names,
redirects and merged ids before ids become rows, cells of tables that are ids of entities, and names made of ids.
"""

from kbtools.indexers.building.staging import IN_LANGUAGES, ONE_LINE, Staging
from kbtools.kb.ids import PATH, TOPIC

_UNIT = r'^"(.*)"\^\^<http://www\.wikidata\.org/entity/(Q\d+)>$'
"""A quantity of Wikidata as its readers return it: the unit is the datatype."""

_SUPERTYPES = """
WITH RECURSIVE above AS (
  SELECT DISTINCT type, type AS parent FROM types
  UNION SELECT above.type, subclasses.parent FROM above JOIN subclasses ON subclasses.type = above.parent)
SELECT DISTINCT entity, parent AS type FROM types JOIN above USING (type)
"""
"""Types and all their superclasses; a union that keeps no row twice ends in circles too."""

_QUANTITIES = """fact_ids WHERE id LIKE '"%"^^<http://www.wikidata.org/entity/Q%>'"""

_UNIT_NAMES = f"""
CREATE TABLE units AS
WITH used AS (SELECT DISTINCT regexp_extract(id, '{_UNIT}', 2) AS entity FROM {_QUANTITIES})
SELECT entity, replace(replace(coalesce(text, entity), '\\', '\\\\'), '"', '\\"') AS text FROM used LEFT JOIN (
  SELECT entity, text, row_number() OVER (PARTITION BY entity ORDER BY rank, length(text), text) AS place
  FROM (SELECT * FROM names UNION ALL SELECT * FROM labels) SEMI JOIN used USING (entity)) USING (entity)
WHERE place IS NULL OR place = 1
"""

_UNITS = f"""
SELECT number,
  CASE WHEN units.text IS NULL THEN id
  ELSE '"' || regexp_extract(id, '{_UNIT}', 1) || ' ' || units.text || '"' END AS id, is_subject
FROM fact_ids LEFT JOIN units ON id LIKE '"%"^^<http://www.wikidata.org/entity/Q%>'
  AND units.entity = regexp_extract(id, '{_UNIT}', 2)
"""

_LENT = r"""
INSERT INTO names SELECT entity, rank, text, language FROM labels
WHERE entity IN (SELECT id FROM fact_ids)
  AND NOT regexp_full_match(entity, 'P\d+') AND entity NOT IN (SELECT entity FROM names)
"""

_PROPERTIES = r"""
CREATE TABLE properties AS
SELECT DISTINCT relation, unnest([
  relation, regexp_replace(relation, '/prop/[a-z/-]+/(P\d+)$', '/entity/\1'),
  regexp_replace(relation, '^wdt:(P\d+)$', 'wd:\1'), regexp_replace(relation, '^http.*/prop/direct/(P\d+)$', '\1')
]) AS entity FROM (SELECT DISTINCT relation FROM predicates)
"""
"""Relations, and the ids under which they are described: Wikidata's `prop/direct/P19` is `entity/P19`, or P19."""

_LABELS = f"""
CREATE TABLE relation_labels AS
SELECT relation, {IN_LANGUAGES.format(order="source, rank, length(line), line", text="line")} AS text FROM (
  SELECT *, row_number() OVER (PARTITION BY relation, tag ORDER BY source, rank, length(line), line) AS place FROM (
    SELECT relation, source, rank, {ONE_LINE} AS line, tag FROM (
      SELECT properties.relation, 0 AS source, rank, text, language
      FROM properties JOIN relation_names r ON r.relation = entity
      UNION ALL SELECT properties.relation, 1, rank, text, language FROM properties JOIN names USING (entity)
      UNION ALL SELECT properties.relation, 1, rank, text, language FROM properties JOIN labels USING (entity))
    JOIN tags USING (language)))
WHERE place = 1 GROUP BY relation
"""
"""The name of a relation in each language: from a file of relations, else from names; the shortest of the best rank.

The name shown is that of the first language.
"""

_NOT_ENTITIES = r"""
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
"""Entities that are properties: named relations that occur in no fact as an entity, and properties by type or id."""

_LINKS = """
CREATE TABLE links AS
SELECT old, new FROM redirects WHERE old <> new UNION SELECT old, new FROM same WHERE old <> new
"""

_RANKS = """
CREATE TABLE ranks AS
WITH ids AS (SELECT old AS id FROM links UNION SELECT new FROM links),
subjects AS (SELECT DISTINCT id AS subject FROM fact_ids WHERE is_subject AND id IN (SELECT id FROM ids))
SELECT id, row_number() OVER (ORDER BY id IN (SELECT old FROM redirects), id NOT IN (SELECT subject FROM subjects),
  id IN (SELECT old FROM same), id) AS rank
FROM ids
"""
"""Merged entities keep the id of the lowest rank: not redirected by a file, then with facts, then by spelling."""

_PAIRS = """
CREATE TABLE pairs AS SELECT DISTINCT greatest(o.rank, n.rank) AS old, least(o.rank, n.rank) AS new
FROM links JOIN ranks o ON o.id = links.old JOIN ranks n ON n.id = links.new
"""

_STEP = """
CREATE OR REPLACE TABLE pairs AS
WITH best AS (SELECT old, min(new) AS new FROM pairs GROUP BY old),
nearer AS (SELECT old, new FROM best
  UNION SELECT pairs.new, best.new FROM pairs JOIN best USING (old) WHERE pairs.new <> best.new),
target AS (SELECT old, min(new) AS new FROM nearer GROUP BY old)
SELECT nearer.old, coalesce(target.new, nearer.new) AS new FROM nearer LEFT JOIN target ON target.old = nearer.new
UNION SELECT old, new FROM target WHERE old IN (SELECT new FROM nearer)
"""
"""Point each id, and its previous target, to the best id known for it; ranks only fall, so this ends."""

_OPEN = """
(SELECT 1 FROM pairs GROUP BY old HAVING count(*) > 1
UNION ALL SELECT 1 FROM pairs WHERE new IN (SELECT old FROM pairs))
"""

_MERGED = """
INSERT INTO merged SELECT o.id AS old, n.id AS new FROM pairs
JOIN ranks o ON o.rank = pairs.old JOIN ranks n ON n.rank = pairs.new
"""

_RENAMED = {
    "fact_ids": ("id",), "names": ("entity",), "counts": ("entity",), "descriptions": ("entity",),
    "labels": ("entity",), "subclasses": ("type", "parent"), "types": ("entity", "type"),
}  # fmt: skip
"""The columns of work tables that hold ids of entities or types."""

CELL = r'^"(.*)"\^\^<cell:([a-z]+)>$'
"""A cell of a table as its reader returns it: the kind of its value, or how it is linked, is the datatype."""

_CELLS = f"""
CREATE TABLE cells AS
SELECT DISTINCT id, regexp_extract(id, '{CELL}', 1) AS text, regexp_extract(id, '{CELL}', 2) AS kind
FROM fact_ids WHERE id LIKE '"%"^^<cell:%>'
"""

_LINKED = """
CREATE TABLE linked AS
WITH known AS (SELECT entity AS id FROM names UNION SELECT entity FROM types UNION SELECT old FROM redirects
  UNION SELECT id FROM fact_ids WHERE is_subject),
called AS (SELECT lower(text) AS text, min(entity) AS entity FROM names GROUP BY ALL HAVING count(DISTINCT entity) = 1)
SELECT cells.id, coalesce(known.id, called.entity) AS entity FROM cells
LEFT JOIN known ON known.id = cells.text AND kind NOT IN ('number', 'date')
LEFT JOIN called ON kind = 'name' AND called.text = lower(cells.text)
WHERE known.id IS NOT NULL OR called.entity IS NOT NULL
"""
"""The cells that are ids of entities, or, in columns linked by name, names that only one entity has."""

_VALUES = """
SELECT number, CASE
  WHEN linked.entity IS NOT NULL THEN linked.entity
  WHEN cells.id IS NULL THEN fact_ids.id
  ELSE '"' || cells.text || CASE kind
    WHEN 'number' THEN '"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    WHEN 'date' THEN '"^^<http://www.w3.org/2001/XMLSchema#' || if(contains(cells.text, ':'), 'dateTime>', 'date>')
    WHEN 'url' THEN '"^^<http://www.w3.org/2001/XMLSchema#anyURI>'
    ELSE '"' END
  END AS id, is_subject
FROM fact_ids LEFT JOIN cells ON cells.id = fact_ids.id LEFT JOIN linked ON linked.id = fact_ids.id
"""
"""All other cells are literals of their kind."""

_SPELT = rf"""
CREATE TABLE spelt AS
SELECT id, text, is_subject, NOT regexp_full_match(id, '{TOPIC.pattern}')
  AND regexp_matches(text, '\pL{{3}}|\p{{Lo}}{{2}}')
  AND length(regexp_replace(text, '\d', '', 'g')) > length(regexp_replace(text, '\pL', '', 'g')) AS worded
FROM (
  SELECT id, is_subject, trim(replace(
    if(contains(id, '://'), coalesce(TRY(url_decode(part)), part), part), '_', ' '), ' /#<>') AS text
  FROM (
    SELECT id, bool_or(is_subject) AS is_subject,
      regexp_replace(id, '{PATH}', '\1\2\3') AS part FROM fact_ids
    WHERE NOT starts_with(id, '"') AND NOT starts_with(id, '_:') GROUP BY id))
WHERE regexp_matches(text, '\pL')
"""
"""Ids as names, as `name_of_id` spells them, and whether they consist of words rather than of figures."""


def widen_types(tables: Staging) -> None:
    """Add the superclasses of its types to every entity."""
    if tables.count("subclasses"):
        tables.rewrite("types", _SUPERTYPES)


def name_units(tables: Staging) -> None:
    """Write the unit's name after each quantity, or its id if it has no name."""
    if tables.first(_QUANTITIES, "id"):
        tables.run(_UNIT_NAMES)
        tables.rewrite("fact_ids", _UNITS)


def lend_labels(tables: Staging) -> None:
    """Add the names of entities that were left out but occur in facts."""
    if tables.count("labels"):
        tables.run(_LENT)


def name_relations(tables: Staging) -> None:
    """Move the names of properties from the entities to the relations."""
    tables.write_tags()
    for statement in (_PROPERTIES, _LABELS, _NOT_ENTITIES):
        tables.run(statement)
    # Otherwise `place of birth` would be linked as an entity in every question about one.
    tables.run("DELETE FROM names WHERE entity IN (SELECT entity FROM not_entities)")


def merge_ids(tables: Staging) -> None:
    """Rewrite the ids of merged entities in every work table."""
    if not tables.count("redirects") + tables.count("same"):
        return
    for statement in (_LINKS, _RANKS, _PAIRS):
        tables.run(statement)
    # Each step points every id to the best id known for it, until no target points further.
    while tables.count(_OPEN):
        tables.run(_STEP)
    tables.run(_MERGED)
    for table, columns in _RENAMED.items():
        renamed = ", ".join(f"coalesce(of_{column}.new, {column}) AS {column}" for column in columns)
        joined = " ".join(f"LEFT JOIN merged of_{column} ON of_{column}.old = {column}" for column in columns)
        tables.rewrite(table, f"SELECT {table}.* REPLACE ({renamed}) FROM {table} {joined}")


def link_cells(tables: Staging) -> None:
    """Replace each cell of a table by the entity whose id it is, or by a value."""
    tables.run(_CELLS + ";" + _LINKED)
    tables.rewrite("fact_ids", _VALUES)
    tables.drop("cells")
    tables.drop("linked")


def name_ids(tables: Staging) -> tuple[str, str] | None:
    """Name every entity by its id if the ids of at least half of the subjects are words; return an id and its name."""
    tables.run(_SPELT)
    worded = tables.count("spelt WHERE is_subject AND worded")
    if not worded or 2 * worded < tables.count("(SELECT DISTINCT id FROM fact_ids WHERE is_subject)"):
        return None
    language = tables.languages.setdefault("", len(tables.languages))
    tables.run(f"INSERT INTO names SELECT id, 0, text, {language} FROM spelt")
    example = "(SELECT id, text FROM spelt WHERE is_subject AND worded ORDER BY id = text, id LIMIT 1)"
    return str(tables.first(example, "id")), str(tables.first(example, "text"))
