"""Columns are known by their heads in any spelling."""

import pytest

from kbtools.kb.table_heads import ENTITY_ROLES, entity_role, is_header, name_parts, plain_head

HEADS = {
    "id": "ID qid MID Identifier entity subject key Code uri IRI",
    "name": "name Label",
    "alias": "alias Aliases synonym Synonyme synonymes sinónimos Sinonimi aka Acronym abbreviation",
    "type": "type Types class",
    "description": "description Descriptions summary abstract Beschreibung descripción descrição descrizione",
}


@pytest.mark.parametrize(("role", "head"), [(role, head) for role, heads in HEADS.items() for head in heads.split()])
def test_a_head_has_its_role(role: str, head: str) -> None:
    assert entity_role(head) == entity_role(f" {head.upper()} ") == role


@pytest.mark.parametrize(
    ("head", "role"),
    [
        ("also known as", "alias"), ("Short_Name", "alias"), ("autres noms", "alias"), ("English aliases", "alias"),
        ("instance of", "type"), ("height", ""), ("names", ""), ("identity", ""), ("my id", ""), ("", ""),
    ],
)  # fmt: skip
def test_heads_of_several_words_and_of_values(head: str, role: str) -> None:
    assert entity_role(head) == role
    assert list(HEADS) == list(ENTITY_ROLES)


def test_a_head_is_plain_without_case_accents_and_signs() -> None:
    assert plain_head("  Título_(Español): Ñ ") == "titulo espanol n"
    assert [plain_head(head) for head in ("movieId", "IDs", "№", "GeneID")] == ["movie id", "ids", "no", "gene id"]


@pytest.mark.parametrize(
    ("header", "parts"),
    [
        (["Vorname", "Nachname"], ("Vorname", "Nachname")),
        (["Name", "Vorname"], ("Vorname", "Name")),
        (["First name", "Surname", "name"], ("First name", "Surname")),
        (["nome", "cognome"], ("nome", "cognome")),
        (["Vorname"], None),
        (["name", "id"], None),
        ([], None),
    ],
)
def test_given_and_family_names_are_found(header: list[str], parts: tuple[str, str] | None) -> None:
    assert name_parts(header) == parts


@pytest.mark.parametrize(
    ("cells", "least", "header"),
    [
        (["subject", "relation", "object"], 2, True),
        ([" Head ", "rel", "x", "object"], 2, True),
        (["subject_id", "x", "Object URI"], 2, True),
        (["s", "x", "y"], 2, False),
        (["s", "x", "y"], 1, True),
        (["object", "subject", "relation"], 2, False),
        (["x", "subject", "object"], 2, False),
        (["x", "predicate", "tail"], 2, True),
        (["id", "x", "y"], 1, False),
        ([], 1, False),
    ],
)
def test_two_heads_of_a_triple_make_a_header(cells: list[str], least: int, header: bool) -> None:
    assert is_header(cells, least=least) is header
