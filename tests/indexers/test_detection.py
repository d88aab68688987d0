"""What a file holds is found without an option."""

import json
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.detection import detect
from kbtools.indexers.readers.reading import WIDE, WIKIDATA

FB = "www.freebase.com/"
ITEM = '{"type": "item", "id": "Q42", "labels": {"en": {"language": "en", "value": "Adams"}}, "claims": {}}'


@pytest.mark.parametrize(
    ("name", "content", "kind", "format", "called"),
    [
        ("f.txt", f"{FB}m/01\t{FB}r/s\t{FB}m/02\n", "facts", "release", "facts without a header"),
        ("facts", "Q1\tcapital\tQ2\n", "facts", "release", "facts without a header"),
        ("n.txt", '<fb:m.01>\t<fb:type.object.name>\t"J"@en\t.\n', "any", "release", "names in the format"),
        ("t.txt", "<fb:m.01>\t<fb:type.object.type>\t<fb:film.film>\t.\n", "any", "release", "types in the format"),
        ("d.nt", "# c\n<http://a/s> <http://a/p> <http://a/o> .\n", "any", "n-triples", "RDF (n-triples)"),
        ("d", "@prefix a: <http://a/> .\n", "any", "turtle", "RDF (turtle)"),
        ("d.nt", "<http://a/s> <http://a/p> <http://a/o> <http://a/g> .\n", "any", "n-quads", "RDF (n-quads)"),
        ("w.json", f"[\n{ITEM},\n{ITEM}\n]\n", "any", WIKIDATA, "a dump of Wikidata"),
        ("w.json", json.dumps([json.loads(ITEM)], indent=1), "any", WIKIDATA, "a dump of Wikidata"),
        ("w.json", json.dumps({"entities": {"Q42": json.loads(ITEM)}}), "any", WIKIDATA, "a dump of Wikidata"),
        ("w.nt", "<http://a/b> <http://c/d> <http://wikiba.se/ontology#Dump> .\n", "any", WIKIDATA, "a dump"),
        ("f.csv", "subject_id,Relation,object\nQ1,r,Q2\n", "facts", "csv", "a table of facts"),
        ("f.txt", "subject\trelation\tobject\nQ1\tr\tQ2\n", "facts", "tsv", "a table of facts"),
        ("f.jsonl", '{"head": "a", "rel": "r", "tail": "b"}\n', "facts", "jsonl", "a table of facts"),
        ("c.csv", "Property,Value,Source\nDensity,19,[1]\n", "any", WIDE, "a table of entities"),
        ("f.csv", "Entity;Attribute;Value\na;r;1\n", "facts", "csv", "a table of facts"),
        ("f.csv", "Subjekt,Prädikat,Objekt\na,r,b\n", "facts", "csv", "a table of facts"),
        ("n.csv", "id,language,name\nQ1,en,A\n", "names", "csv", "a table of names"),
        ("n.csv", "id,lang,name,aliases\nQ1,en,A,B\n", "names", "csv", "a table of names"),
        ("c.csv", "id,title,language,year\n1,Jaws,English,1975\n", "any", WIDE, "a table of entities"),
        ("c.csv", "id,name,property\n1,Ann,barn\n", "any", WIDE, "a table of entities"),
        ("r.csv", "relation,label\nr,is\n", "relations", "csv", "a table of names of relations"),
        ("r.tsv", "old\tnew\na\tb\n", "redirects", "tsv", "a table of merged ids"),
        ("c.csv", "ID,Label,City\n1,Alpha,Bonn\n", "any", WIDE, "a table of entities"),
        ("c.csv", "id;name\n1;Alpha\n", "any", WIDE, "a table of entities"),
        ("c.txt", "name,city\nA,B\n", "any", WIDE, "a table of entities"),
        ("c.txt", "id|name\n1|Alpha\n", "any", WIDE, "a table of entities"),
        ("c.txt", "id\tname\tcity\n1\tAlpha\tBonn\n", "any", WIDE, "a table of entities"),
        ("f.txt", "name\tof\tQ2\n", "facts", "release", "facts without a header"),
        ("f.tsv", "Ann\tborn in\tBonn\nAnn\tworks in\tKiel\n", "facts", "release", "facts without a header"),
        ("c.tsv", "Ann\tborn in\tBonn\nBob\tborn in\tKiel\n", "any", WIDE, "a table of entities"),
        ("c.tsv", "Ann\t1990\tBonn\nAnn\t1990\tKiel\n", "any", WIDE, "a table of entities"),
        ("c.tsv", "Town\tLand\tRiver\nUlm\tD\tDanube\nTown\tLand\tRiver\n", "any", WIDE, "a table of entities"),
        ("c.csv", "name\nAlpha\n", "any", WIDE, "a table of entities"),
        ("c.jsonl", '{"id": "a", "name": "b"}\n', "any", WIDE, "a table of entities"),
        ("c.jsonl", '{"id": "Q1", "labels": ["b"]}\n', "any", WIDE, "a table of entities"),
    ],
)
def test_a_text_file_is_told_by_how_it_begins(
    tmp_path: Path, name: str, content: str, kind: str, format: str, called: str
) -> None:
    (tmp_path / name).write_text(content)
    found = detect(tmp_path / name)
    assert (found.source.kind, found.source.format) == (kind, format)
    assert str(found).startswith(f"{tmp_path / name}: {called}")


def test_columnar_files_and_databases_are_told_by_their_columns(tmp_path: Path) -> None:
    facts = pa.table({"subject": ["a"], "relation": ["r"], "object": ["b"]})
    pyarrow.parquet.write_table(facts, tmp_path / "f.parquet")
    pyarrow.parquet.write_table(facts.rename_columns(["id", "name", "x"]), tmp_path / "e.parquet")
    sqlite3.connect(tmp_path / "d.db").close()

    found = [detect(tmp_path / name) for name in ("f.parquet", "e.parquet", "d.db")]

    assert [(file.source.kind, file.source.format) for file in found] == [("facts", None), ("any", WIDE), ("any", WIDE)]


def test_a_text_of_no_known_form_is_refused_with_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "questions.txt").write_text("one question a line\n")
    with pytest.raises(WrongFormat, match="found 'one question a line', expected subject TAB relation TAB objects"):
        detect(tmp_path / "questions.txt")
