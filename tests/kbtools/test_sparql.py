"""The SPARQL query of a pair: a query that endpoints accept, whatever the ids are made of."""

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib.plugins.sparql import prepareQuery

from kbtools.sparql import object_query
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
        ("Q42", "a.b", f"<{FREEBASE}Q42> <{FREEBASE}a.b> ?object"),
        ("m.01", "P31", f"<{FREEBASE}m.01> <{FREEBASE}P31> ?object"),
        ("http://a.org/x", "urn:p..q", "<http://a.org/x> <urn:p..q> ?object"),
        ("a b", "c<d>", f"<{FREEBASE}a%20b> <{FREEBASE}c%3Cd%3E> ?object"),
        ('a"b', "c\\d\ne", f"<{FREEBASE}a%22b> <{FREEBASE}c%5Cd%0Ae> ?object"),
        ("100%", "50%25", f"<{FREEBASE}100%25> <{FREEBASE}50%25> ?object"),
        ("a#b#c", "[d]", f"<{FREEBASE}a%23b%23c> <{FREEBASE}%5Bd%5D> ?object"),
        ("東京", "é", f"<{FREEBASE}東京> <{FREEBASE}é> ?object"),
        ("\x7f", "\ue000", f"<{FREEBASE}%7F> <{FREEBASE}%EE%80%80> ?object"),
    ],
)
def test_a_pair_becomes_one_pattern(subject: str, relation: str, pattern: str) -> None:
    query = object_query(subject, relation)
    assert query == f"SELECT ?object WHERE {{ {pattern} }}"
    parse(query)


@given(ID, ID)
def test_no_id_breaks_out_of_its_query(subject: str, relation: str) -> None:
    query = object_query(subject.replace(":", ""), relation.replace(":", ""))
    assert query.count("<") == query.count(">") == 2 + relation.replace(":", "").count("..")
    parse(query)


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
    for subject, relation, target in [("a%20b", "r", "o"), ("a%20b", "s", "x"), ("ab", "r", "y"), ("o", "t", "z")]:
        store.add(pyoxigraph.Quad(node(FREEBASE + subject), node(FREEBASE + relation), node(FREEBASE + target)))

    def objects(subject: str, relation: str) -> list[str]:
        solutions = store.query(object_query(subject, relation))
        assert isinstance(solutions, pyoxigraph.QuerySolutions)
        return [solution["object"].value for solution in solutions]

    assert objects("a b", "r") == [FREEBASE + "o"]
    assert objects("a b", "r..t") == [FREEBASE + "z"]
    assert objects("a b", "t") == []


def test_a_literal_has_no_facts_to_ask_for() -> None:
    with pytest.raises(ValueError, match="literal"):
        object_query('"1984"@en', "book.author")
