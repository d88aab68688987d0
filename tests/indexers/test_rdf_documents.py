"""RDF in every syntax: the same triples give the same rows, blank nodes stay apart, and errors say where they are."""

from pathlib import Path
from typing import Any

import pytest

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import ALIAS
from kbtools.indexers.readers.reading import Reading, ReadOptions, Source

SKOS = "http://www.w3.org/2004/02/skos/core#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"

SAME: dict[str, str] = {
    "k.nt": f"""<http://a/s> <{RDF}type> <http://a/T> .
<http://a/s> <{SKOS}prefLabel> "Name"@en .
<http://a/s> <{SKOS}altLabel> "Nick"@en .
<http://a/s> <{LABEL}> "Nom"@fr .
<http://a/s> <http://a/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
""",
    "k.nq": f"""<http://a/s> <{RDF}type> <http://a/T> <http://a/g> .
<http://a/s> <{SKOS}prefLabel> "Name"@en .
<http://a/s> <{SKOS}altLabel> "Nick"@en <http://a/g> .
<http://a/s> <{LABEL}> "Nom"@fr <http://a/g> .
<http://a/s> <http://a/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> <http://a/h> .
""",
    "k.ttl": f"""@prefix a: <http://a/> . @prefix s: <{SKOS}> .
a:s a a:T ; s:prefLabel "Name"@en ; s:altLabel "Nick"@en ;
  <{LABEL}> "Nom"@fr ; a:p 1 .
""",
    "k.trig": f"""@prefix a: <http://a/> . @prefix s: <{SKOS}> .
a:g {{ a:s a a:T ; s:prefLabel "Name"@en ; s:altLabel "Nick"@en . }}
a:h {{ a:s <{LABEL}> "Nom"@fr ; a:p 1 . }}
""",
    "k.owl": f"""<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="{RDF}" xmlns:a="http://a/" xmlns:s="{SKOS}" xmlns:r="http://www.w3.org/2000/01/rdf-schema#">
<a:T rdf:about="http://a/s"><s:prefLabel xml:lang="en">Name</s:prefLabel><s:altLabel xml:lang="en">Nick</s:altLabel>
<r:label xml:lang="fr">Nom</r:label>
<a:p rdf:datatype="http://www.w3.org/2001/XMLSchema#integer">1</a:p></a:T>
</rdf:RDF>
""",
    "k.jsonld": f"""{{"@id": "http://a/s", "@type": "http://a/T",
"{SKOS}prefLabel": {{"@value": "Name", "@language": "en"}}, "{SKOS}altLabel": {{"@value": "Nick", "@language": "en"}},
"{LABEL}": {{"@value": "Nom", "@language": "fr"}},
"http://a/p": 1}}
""",
}


def read(path: Path, content: str, **options: Any) -> tuple[dict[str, set[tuple[Any, ...]]], Reading]:
    path.write_text(content, encoding="utf-8")
    reading = Reading(Source(path, "any"), ReadOptions(**options))
    rows: dict[str, set[tuple[Any, ...]]] = {}
    for batch in reading.batches():
        rows.setdefault(batch.kind, set()).update(tuple(row.values()) for row in batch.table.to_pylist())
    return rows, reading


@pytest.mark.parametrize("name", SAME)
def test_every_syntax_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    rows, reading = read(tmp_path / name, SAME[name])
    assert rows == {
        "names": {("http://a/s", 0, "Name", "en"), ("http://a/s", ALIAS, "Nick", "en")},
        "types": {("http://a/s", "http://a/T")},
        "facts": {
            ("http://a/s", f"{RDF}type", "http://a/T"),
            ("http://a/s", "http://a/p", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        },
    }
    assert {kind: skip.count for kind, skip in reading.skips.kinds.items()} == {
        "literal in a language other than 'en,mul'": 1
    }
    assert reading.skips.lines == SAME[name].count("\n")


@pytest.mark.parametrize(
    ("name", "format"), [("k.ttl", "turtle"), ("k.owl", "rdf-xml"), ("k.nq", "n-quads"), ("k.jsonld", "json-ld")]
)
@pytest.mark.parametrize("unsaid", ["dump", "dump.json", "dump.txt"])
def test_a_file_without_a_suffix_of_rdf_is_known_by_its_beginning(
    tmp_path: Path, name: str, format: str, unsaid: str
) -> None:
    assert read(tmp_path / unsaid, SAME[name])[0] == read(tmp_path / "x.nt", SAME[name], format=format)[0]


@pytest.mark.parametrize(
    "content",
    [
        "<http://a/s> a <http://a/T> ;\n  <http://a/p> <http://a/o> .\n",
        "<http://a/s> <http://a/p> <http://a/o> ,\n    <http://a/q> .\n",
        '_:s <http://a/p> "x; y"@en ;\n  <http://a/p> <http://a/o> .\n',
        "<http://a/g> {\n<http://a/s> <http://a/p> <http://a/o> .\n}\n",
        "GRAPH <http://a/g> { <http://a/s> <http://a/p> <http://a/o> . }\n",
    ],
)
def test_turtle_and_trig_are_known_without_prefixes(tmp_path: Path, content: str) -> None:
    assert read(tmp_path / "dump", content)[0]["facts"]
    with pytest.raises(WrongFormat, match=r"k\.nt:1: found (Turtle|TriG) .* use --format (turtle|trig)"):
        read(tmp_path / "k.nt", content)


def test_languages_fall_back_in_the_order_asked_for(tmp_path: Path) -> None:
    rows, _ = read(tmp_path / "k.ttl", SAME["k.ttl"], language="fr,en")
    assert ("http://a/s", 0, "Nom", "fr") in rows["names"]
    assert ("http://a/s", 1, "Name", "en") in rows["names"]


def test_blank_nodes_of_two_files_are_never_one_and_read_again_the_same(tmp_path: Path) -> None:
    text = "@prefix a: <http://a/> .\na:s a:p [ a:q a:o ] .\n"
    first, _ = read(tmp_path / "a.ttl", text)
    again, _ = read(tmp_path / "b.ttl", text)
    other, _ = read(tmp_path / "c.ttl", text + "a:x a:y a:z .\n")
    assert first == again
    assert {row for row in first["facts"] if "_:" in str(row)}.isdisjoint(other["facts"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("k.ttl", "@prefix a: <http://a/> .\na:s a:p a:o .\na:s ; .\n", r"k\.ttl:3: invalid Turtle from here on"),
        ("k.owl", SAME["k.owl"].replace("</a:T>", ""), r"k\.owl:\d: invalid RDF/XML from here on"),
        ("k.jsonld", '{"@context": "http://schema.org/", "name": "x"}\n', "contexts on the web are not loaded"),
        ("k.nt", SAME["k.ttl"], "found Turtle .* use --format turtle, or name it .ttl"),
        ("k.ttl", SAME["k.trig"], "invalid Turtle from here on .* if it is TriG, .* use --format trig"),
        ("k.ttl", "@base <http://a/> .\nGRAPH <g> { <a> <b> <c> }\n", "if it is TriG, .* use --format trig"),
        ("k.owl", "{" + 5000 * " " + "}", r"invalid RDF/XML from here on .{,200}; fix it"),
        ("k.ttl", SAME["k.jsonld"], "found JSON-LD .* use --format json-ld, or name it .jsonld"),
        ("k.ttl", "{" + '"@id":'.rjust(4_095) + ' "http://a/s"}\n', "found JSON-LD"),
        ("k.nt", f"[{SAME['k.jsonld']}]", "found JSON-LD .* use --format json-ld, or name it .jsonld"),
        ("k.ttl", SAME["k.owl"], "found RDF/XML .* use --format rdf-xml, or name it .rdf"),
    ],
)
def test_what_is_no_such_document_says_where_and_what_to_do(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    with pytest.raises(WrongFormat, match=message):
        read(tmp_path / name, content)


XML = (
    '<?xml version="1.0"?>\n{dtd}<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="http://a/">'
)


def test_declared_entities_are_refused_before_they_expand(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 100}">' for n in range(12))
    dtd = f"<!DOCTYPE rdf:RDF [{entities}]>\n"
    path = tmp_path / "bomb.rdf"
    path.write_text(
        XML.format(dtd=dtd) + '<rdf:Description rdf:about="http://a/s"><a:p>&e11;</a:p></rdf:Description></rdf:RDF>'
    )
    with pytest.raises(WrongFormat, match=r"bomb\.rdf:\d+: found entity declarations, .*xmllint --noent FILE"):
        list(Reading(Source(path, "any"), ReadOptions()).batches())


def test_an_entity_declared_across_two_pieces_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "late.rdf"
    text = XML.format(dtd='<!DOCTYPE rdf:RDF [{padding}<!ENTITY e "x">]>\n').replace("{padding}", " " * 5_000)
    cut = text.index("ENTITY") - 4_096
    path.write_text(text.replace(" " * cut, "", 1) + "</rdf:RDF>")
    with pytest.raises(WrongFormat, match="found entity declarations"):
        list(Reading(Source(path, "any"), ReadOptions()).batches())


def test_remarks_instructions_and_empty_elements_are_not_nested(tmp_path: Path) -> None:
    remarks = "<!-- a remark --><?an instruction?>" * 2_000
    fact = '<rdf:Description rdf:about="http://a/s"><a:p>x</a:p></rdf:Description>'
    empty = '<rdf:Description rdf:about="http://a/e"/>' * 2_000
    rows, _ = read(tmp_path / "flat.rdf", XML.format(dtd="") + remarks + empty + fact + "</rdf:RDF>")
    assert rows["facts"] == {("http://a/s", "http://a/p", '"x"')}


@pytest.mark.parametrize(("depth", "refused"), [(100, False), (200_000, True)])
def test_elements_nested_too_deep_are_refused(tmp_path: Path, depth: int, refused: bool) -> None:
    inner = "<a:p><rdf:Description>" * depth + "</rdf:Description></a:p>" * depth
    path = tmp_path / "deep.rdf"
    path.write_text(XML.format(dtd="") + f'<rdf:Description rdf:about="http://a/s">{inner}</rdf:Description></rdf:RDF>')
    reading = Reading(Source(path, "any"), ReadOptions())
    if refused:
        with pytest.raises(WrongFormat, match="found elements nested deeper than 1,000"):
            list(reading.batches())
    else:
        assert sum(batch.table.num_rows for batch in reading.batches()) == depth


def test_the_encoding_that_xml_names_is_heeded(tmp_path: Path) -> None:
    text = XML.format(dtd="") + '<rdf:Description rdf:about="http://a/s"><a:p>café</a:p></rdf:Description></rdf:RDF>'
    head = '<?xml version="1.0" encoding="ISO-8859-1"?>'
    (tmp_path / "l.rdf").write_bytes(text.replace('<?xml version="1.0"?>', head).encode("latin-1"))
    (batch,) = Reading(Source(tmp_path / "l.rdf", "any"), ReadOptions()).batches()
    assert batch.table["object"].to_pylist() == ['"café"']


def test_names_that_are_nodes_name_their_owners_in_any_order(tmp_path: Path) -> None:
    xl = "@prefix xl: <http://www.w3.org/2008/05/skos-xl#> . @prefix : <http://a/> .\n"
    forms = ':l1 xl:literalForm "Hound"@en .\n:l2 xl:literalForm "Dog"@en , "Cur"@en , "Chien"@fr .\n'
    forms += ':l3 xl:literalForm "Dgo" .\n'
    owners = ":s xl:prefLabel :l1 ; xl:altLabel :l2 ; xl:hiddenLabel :l3 .\n"
    for text in (xl + forms + owners, xl + owners + forms):
        (tmp_path / "k.ttl").write_text(text)
        batches = list(Reading(Source(tmp_path / "k.ttl", "any"), ReadOptions()).batches())
        names = {tuple(row.values()) for batch in batches for row in batch.table.to_pylist()}
        aliases = (("Dog", "en"), ("Cur", "en"), ("Dgo", ""))
        assert names == {("http://a/s", 0, "Hound", "en"), *(("http://a/s", ALIAS, *alias) for alias in aliases)}


@pytest.mark.parametrize("name", ["k.ttl", "k.nt"])
def test_members_of_a_list_are_objects_of_the_fact_that_has_it(tmp_path: Path, name: str) -> None:
    lines = {
        "k.ttl": "<http://a/s> <http://a/p> (<http://a/x> <http://a/y>) .\n",
        "k.nt": f"<http://a/s> <http://a/p> _:a .\n_:a <{RDF}first> <http://a/x> .\n_:a <{RDF}rest> _:b .\n"
        f"_:b <{RDF}first> <http://a/y> .\n_:b <{RDF}rest> <{RDF}nil> .\n",
    }[name]
    (tmp_path / name).write_text(lines)
    batches = list(Reading(Source(tmp_path / name, "any"), ReadOptions()).batches())
    rows = [row for batch in batches for row in batch.table.to_pylist()]
    members = {row["object"] for row in rows if row["subject"] == "http://a/s" and not row["object"].startswith("_:")}
    assert members == {"http://a/x", "http://a/y"}
