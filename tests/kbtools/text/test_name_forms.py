"""Forms: the rewritings under which questions ask for a name."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.text.normaliser import normal_form
from kbtools.text.rewritings import join_apostrophes, read_date
from kbtools.text.rungs import Form
from kbtools.text.variants import core_form, name_forms

NAME = st.text(st.one_of(st.characters(), st.sampled_from("aB1 '’,()[]&;#u0e4.\u200b")), max_size=14)


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("Jaws", {"jaws": Form.NORMAL}),
        ("Red Cloud's War", {"red cloud s war": Form.NORMAL, "red clouds war": Form.APOSTROPHE}),
        ("Hawaiʻi", {"hawai i": Form.NORMAL, "hawaii": Form.APOSTROPHE}),
        ("The Who", {"the who": Form.NORMAL, "who": Form.ARTICLE}),
        ("The", {"the": Form.NORMAL}),
        ("An", {"an": Form.NORMAL}),
        ("Theme", {"theme": Form.NORMAL}),
        ("Jaws (film)", {"jaws film": Form.NORMAL, "jaws": Form.BRACKET}),
        ("Jaws [film] ", {"jaws film": Form.NORMAL, "jaws": Form.BRACKET}),
        ("(What)", {"what": Form.NORMAL}),
        (
            "Emma's (film)",
            {
                "emma s film": Form.NORMAL,
                "emmas film": Form.APOSTROPHE,
                "emma s": Form.BRACKET,
                "emmas": Form.BRACKET,
            },
        ),
        (
            "The Bank (film)",
            {"the bank film": Form.NORMAL, "the bank": Form.BRACKET, "bank film": Form.ARTICLE, "bank": Form.ARTICLE},
        ),
        ("Paris, Texas", {"paris texas": Form.NORMAL, "texas paris": Form.COMMA, "paris": Form.COMMA}),
        ("a, b, c", {"a b c": Form.NORMAL, "abc": Form.OTHERWISE, "b c": Form.ARTICLE}),
        (",", {",": Form.NORMAL}),
        ("Aku Syrj00e4", {"aku syrj00e4": Form.NORMAL, "aku syrja": Form.ESCAPE}),
        ("2010", {"2010": Form.NORMAL}),
        (
            "Tom &amp; Jerry",
            {"tom and amp jerry": Form.NORMAL, "tom and jerry": Form.ESCAPE, "tom jerry": Form.OTHERWISE},
        ),
        (
            "The Iron Kite II (film)",
            {
                "the iron kite ii film": Form.NORMAL,
                "iron kite ii film": Form.ARTICLE,
                "the iron kite ii": Form.BRACKET,
                "iron kite ii": Form.ARTICLE,
                "the iron kite 2 film": Form.OTHERWISE,
                "iron kite 2 film": Form.OTHERWISE,
                "the iron kite 2": Form.OTHERWISE,
                "iron kite 2": Form.OTHERWISE,
            },
        ),
        ("AT&T", {"at and t": Form.NORMAL, "att": Form.OTHERWISE}),
        ("Joan P. Strelow", {"joan p strelow": Form.NORMAL, "joan strelow": Form.SHORTENED}),
        ("&#233;t&#233;", {"and 233 t and 233": Form.NORMAL, "ete": Form.ESCAPE}),
        ("Iron the Kite II", {"iron the kite ii": Form.NORMAL, "iron the kite 2": Form.OTHERWISE}),
        ("An Iron Kite", {"an iron kite": Form.NORMAL, "iron kite": Form.ARTICLE}),
        (
            "Five Kites Incorporated",
            {
                "five kites incorporated": Form.NORMAL,
                "5 kites incorporated": Form.OTHERWISE,
                "five kites inc": Form.OTHERWISE,
                "5 kites inc": Form.OTHERWISE,
            },
        ),
        (
            "Venn GmbH Aktiengesellschaft",
            {"venn gmbh aktiengesellschaft": Form.NORMAL, "venn gmbh ag": Form.OTHERWISE},
        ),
        ("PT Venn Kite", {"pt venn kite": Form.NORMAL, "venn kite pt": Form.OTHERWISE}),
        ("P!nk", {"p nk": Form.NORMAL, "pink": Form.OTHERWISE, "pnk": Form.OTHERWISE}),
        ("Ke$ha", {"ke ha": Form.NORMAL, "kesha": Form.OTHERWISE}),
        (
            "GDC 0941 Kite Second Series",
            {"gdc 0941 kite second series": Form.NORMAL, "gdc0941 kite 2 series": Form.OTHERWISE},
        ),
        ("Sk@r", {"sk r": Form.NORMAL, "skar": Form.OTHERWISE, "skr": Form.OTHERWISE}),
        ("Kite+", {"kite": Form.NORMAL, "kite plus": Form.OTHERWISE}),
        ("Bad Company", {"bad company": Form.NORMAL}),
        ("May 31", {"may 31": Form.NORMAL, "may31": Form.OTHERWISE, "31 may": Form.OTHERWISE}),
        ("Feb 32", {"feb 32": Form.NORMAL, "feb32": Form.OTHERWISE}),
        (
            "2 February 2001",
            {"2 february 2001": Form.NORMAL, "february 2 2001": Form.OTHERWISE, "2001 02 02": Form.OTHERWISE},
        ),
        ("!!!", {"!!!": Form.NORMAL}),
        ("", {}),
        (" \u200b", {}),
    ],
)
def test_a_name_is_stored_under_its_forms(name: str, forms: dict[str, Any]) -> None:
    assert name_forms(name) == forms


@given(NAME)
def test_forms_are_normal_and_begin_with_that_of_the_name(name: str) -> None:
    forms = name_forms(name)
    assert list(forms)[:1] == [form for form in [normal_form(name)] if form]
    assert all(form and normal_form(form) == form for form in forms)


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("Nadir's", "Nadirs"),
        ("nadir 's", "nadirs"),
        ("nadir’s", "nadirs"),
        ("nadir‘s", "nadirs"),
        ("nadir´s", "nadirs"),
        ("Kaʿba", "Kaba"),
        ("O`Brien", "OBrien"),
        ("nadirʼs", "nadirs"),
        ("Hawaiʻi", "Hawaii"),
        ("Qurʾan", "Quran"),
        ("'quoted'", "'quoted'"),
        ("the boys' own", "the boys' own"),
        ("rock 'n' roll", "rockn' roll"),
    ],
)
def test_apostrophes_inside_words_are_joined(text: str, joined: str) -> None:
    assert join_apostrophes(text) == joined


@pytest.mark.parametrize("name", ["(" * 50_000, "(" + " " * 50_000 + "x", "&" * 50_000, "'" * 50_000, "x, " * 50_000])
def test_a_long_name_of_awkward_characters_is_no_trap(name: str) -> None:
    assert normal_form(name) in name_forms(name)


@pytest.mark.parametrize(
    ("legal", "short"),
    [
        ("Corporation", "corp"), ("Incorporated", "inc"), ("Limited Liability Company", "llc"),
        ("Public Limited Company", "plc"), ("Limited Partnership", "lp"), ("Limited", "ltd"), ("Company", "co"),
        ("Limited Company", "ltd"), ("Gesellschaft mit beschränkter Haftung", "gmbh"), ("Aktiengesellschaft", "ag"),
        ("Kommanditgesellschaft", "kg"), ("Société Anonyme", "sa"), ("Sociedad Anónima", "sa"),
        ("Sociedade Anônima", "sa"), ("Società per azioni", "spa"), ("Aktiebolag", "ab"), ("Osakeyhtiö", "oy"),
        ("Società a responsabilità limitata", "srl"), ("Société à responsabilité limitée", "sarl"),
        ("Naamloze Vennootschap", "nv"), ("Besloten Vennootschap", "bv"),
    ],
)  # fmt: skip
def test_a_legal_form_may_be_abbreviated_or_left_out(legal: str, short: str) -> None:
    assert name_forms(f"Ada Venn {legal}")[f"ada venn {short}"] is Form.OTHERWISE
    assert core_form(f"Ada Venn {legal}") == core_form(f"Ada Venn {short}") == "ada venn"


@pytest.mark.parametrize(
    ("name", "core"),
    [
        ("Venn Kite Co", "venn kite"),
        ("Kite Co", "kite co"),
        ("Kite Inc", "kite"),
        ("Kite GmbH", "kite"),
        ("The Company", "the company"),
        ("X Inc", "x inc"),
        ("PT Venn Kite", "venn kite"),
        ("Five Kites Incorporated", "5 kites"),
        ("Iron Kite II", "iron kite 2"),
    ],
)
def test_the_core_of_a_name_is_without_its_legal_form(name: str, core: str) -> None:
    assert core_form(name) == core


@pytest.mark.parametrize(
    ("form", "date"),
    [
        ("february 3 2001", ("2001", "02", "03")),
        ("feb 3rd 2001", ("2001", "02", "03")),
        ("22nd of december 1999", ("1999", "12", "22")),
        ("3 march", ("03", "03")),
        ("31 may 1999", ("1999", "05", "31")),
        ("2001 12 31", ("2001", "12", "31")),
        ("2001 13 01", ()),
        ("32 may 1999", ()),
        ("0 may 1999", ()),
        ("may", ()),
        ("may 1999", ()),
    ],
)
def test_a_date_is_read_in_any_order(form: str, date: tuple[str, ...]) -> None:
    assert read_date(form) == date
