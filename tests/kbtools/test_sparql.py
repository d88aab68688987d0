"""The SPARQL query of a pair: a query that endpoints accept, whatever the ids are made of."""

from contextlib import suppress

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib.plugins.sparql import prepareQuery

from kbtools.answering.sparql import object_query, subject_query
from kbtools.errors import NoIRI
from tests.conftest import World

FREEBASE = "http://rdf.freebase.com/ns/"
ID = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from(' "<>\\\n%#[]{}|^`?/.')), max_size=12)


def parse(query: str) -> None:
    """Have two engines parse a query; the stricter one refuses any IRI that RFC 3987 does."""
    prepareQuery(query)
    pyoxigraph.Store().query(query)


@pytest.mark.parametrize(
    ("subject", "relation", "pattern"),
    [
        ("m.078ffw", "book.author", f"<{FREEBASE}m.078ffw> <{FREEBASE}book.author> ?object"),
        ("m.01", "a.b..c.d", f"<{FREEBASE}m.01> <{FREEBASE}a.b>/<{FREEBASE}c.d> ?object"),
        ("Q42", "P31", "<http://www.wikidata.org/entity/Q42> <http://www.wikidata.org/prop/direct/P31> ?object"),
        ("wd:Q42", "wdt:P19", "<http://www.wikidata.org/entity/Q42> <http://www.wikidata.org/prop/direct/P19> ?object"),
        (
            "http://www.wikidata.org/entity/Q42",
            "P1",
            "<http://www.wikidata.org/entity/Q42> <http://www.wikidata.org/prop/direct/P1> ?object",
        ),
        ("dbr:Berlin", "dbo:mayor", "<http://dbpedia.org/resource/Berlin> <http://dbpedia.org/ontology/mayor> ?object"),
        ("urn:isbn:1", "rdf:type", "<urn:isbn:1> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> ?object"),
        ("http://a.org/x", "urn:p..q", "<http://a.org/x> <urn:p..q> ?object"),
        ("m.01", "http://a.org/p", f"<{FREEBASE}m.01> <http://a.org/p> ?object"),
        ("http://a.org/a b", "urn:c<d>", "<http://a.org/a%20b> <urn:c%3Cd%3E> ?object"),
        ('http://a.org/a"b', "urn:c\\d\ne", "<http://a.org/a%22b> <urn:c%5Cd%0Ae> ?object"),
        ("http://a.org/100%", "urn:50%25", "<http://a.org/100%25> <urn:50%25> ?object"),
        ("http://a.org/a#b", "urn:[d]", "<http://a.org/a#b> <urn:%5Bd%5D> ?object"),
        ("http://a.org/東京", "urn:é", "<http://a.org/東京> <urn:é> ?object"),
        ("http://a.org/\x7f", "urn:\ue000", "<http://a.org/%7F> <urn:%EE%80%80> ?object"),
    ],
)
def test_a_pair_becomes_one_pattern(subject: str, relation: str, pattern: str) -> None:
    query = object_query(subject, relation)
    assert query == f"SELECT ?object WHERE {{ {pattern} }}"
    parse(query)


@pytest.mark.parametrize(
    ("subject", "relation", "named"),
    [
        ("Q42", "a.b", "a.b"),
        ("m.01", "P31", "P31"),
        ("a b", "c.d", "a b"),
        ("films.one", "film.film.genre", "films.one"),
        ("m.01", "directed by", "directed by"),
        ("東京", "é", "東京"),
        ("http://a.org/x", "born in", "born in"),
        ("/c/en/dog", "/r/IsA", "/c/en/dog"),
    ],
)
def test_no_namespace_is_made_up(subject: str, relation: str, named: str) -> None:
    with pytest.raises(NoIRI, match=f"no query: '{named}' is neither an IRI nor "):
        object_query(subject, relation)


@given(ID, ID)
def test_an_id_is_refused_or_its_query_is_parsed(subject: str, relation: str) -> None:
    with suppress(NoIRI):
        parse(object_query(subject, relation))


@given(ID, ID)
def test_no_whole_iri_breaks_out_of_its_query(subject: str, relation: str) -> None:
    query = object_query(f"http://a.org/{subject}".replace("#", ""), f"urn:x/{relation}".replace("#", ""))
    assert query.count("<") == query.count(">") == 2
    parse(query)


def test_every_pair_of_the_sample_can_be_asked(sample_world: World) -> None:
    queries = sorted({object_query(subject, relation) for subject, relation, _ in sample_world.facts})
    assert len(queries) > 400
    for query in queries:
        parse(query)


def test_a_query_fetches_the_objects_of_its_pair_alone() -> None:
    node = pyoxigraph.NamedNode
    store = pyoxigraph.Store()
    facts = [("m.0a", "a.r", "m.0o"), ("m.0a", "a.s", "m.0x"), ("m.0ab", "a.r", "m.0y"), ("m.0o", "a.t", "m.0z")]
    for subject, relation, target in facts:
        store.add(pyoxigraph.Quad(node(FREEBASE + subject), node(FREEBASE + relation), node(FREEBASE + target)))

    def objects(subject: str, relation: str) -> list[str]:
        solutions = store.query(object_query(subject, relation))
        assert isinstance(solutions, pyoxigraph.QuerySolutions)
        return [solution["object"].value for solution in solutions]

    assert objects("m.0a", "a.r") == [FREEBASE + "m.0o"]
    assert objects("m.0a", "a.r..a.t") == [FREEBASE + "m.0z"]
    assert objects("m.0a", "a.t") == []


def test_a_literal_has_no_facts_to_ask_for() -> None:
    with pytest.raises(ValueError, match="literal"):
        object_query('"1984"@en', "book.author")


def test_a_relation_that_is_read_backwards_asks_for_subjects() -> None:
    query = subject_query("m.01", "a.b..c.d")
    parse(query)
    assert query == f"SELECT ?x WHERE {{ ?x <{FREEBASE}a.b>/<{FREEBASE}c.d> <{FREEBASE}m.01> }}"
