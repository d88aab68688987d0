"""Other spellings of whole names: headings of catalogues, companies, dates, signs and letters."""

import pytest

from kbtools.text.normaliser import normal_form
from kbtools.text.rewritings import contradict, read_date
from kbtools.text.variants import core_form, name_forms


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("Twall, Mark, 1835-1910", "mark twall"),
        ("Twall, Mark, b. 1835", "mark twall"),
        ("The Long Way : a story / Ada Venn", "the long way a story"),
        ("The Long Way [sound recording] : a story", "the long way a story"),
        ("Dorn. Ministry of Fish", "ministry of fish"),
        ("Quill Society (Dorn)", "quill society"),
        ("Orr Corporation", "orr corp"),
        ("Orr Gesellschaft mit beschränkter Haftung", "orr gmbh"),
        ("Venn Brothers", "venn bros"),
        ("July 20, 1969", "20 july 1969"),
        ("1969-07-20", "july 20 1969"),
        ("4th of July", "july 4"),
        ("20,000 Miles Below", "20000 miles below"),
        ("TGF-β", "tgf beta"),
        ("P!nx", "pinx"),
        ("A$AP Rock", "asap rock"),
        ("+44", "plus 44"),
    ],
)
def test_a_name_is_found_by_its_other_spelling(name: str, form: str) -> None:
    assert form in name_forms(name)


@pytest.mark.parametrize("name", ["Blade Runner 2049", "Bad Company", "St. Louis", "Mr. Bean", "Yahoo!", "Le Mans"])
def test_names_that_only_look_like_headings_keep_their_words(name: str) -> None:
    assert {form for form in name_forms(name) if " " not in form} <= {normal_form(name)}


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("Kite / Lamp", {"kite lamp"}),
        ("Kite : Lamp", {"kite lamp"}),
        ("Kite : a story / Ada Venn", {"kite a story ada venn", "kite a story", "kite story ada venn", "kite story"}),
        ("July 20, 1969", {"july 20 1969", "1969 july 20", "july 20", "20 july 1969", "1969 07 20"}),
        ("1969-07-20", {"1969 07 20", "19690720", "july 20 1969", "20 july 1969"}),
        ("4 July", {"4 july", "july 4"}),
        ("Kite, Lamp, Ink", {"kite lamp ink"}),
    ],
)
def test_a_name_has_no_other_spellings(name: str, forms: set[str]) -> None:
    assert set(name_forms(name)) == forms


def test_legal_forms_are_no_part_of_a_core() -> None:
    assert core_form("PT Telk Indo Tbk") == core_form("Telk Indo") == "telk indo"
    assert core_form("A.B.C. Company") != core_form("A.B.D. Company")
    assert core_form("Bad Company") == "bad company"
    assert core_form("Kite Co. Ltd.") == core_form("Kite Limited Company") == "kite"
    assert core_form("B Ltd") == "b ltd"


def test_brackets_and_years_contradict_where_no_word_is_shared() -> None:
    assert contradict("Summer Games (1992)", "Summer Games (1996)")
    assert contradict("Twall, Mark, 1835-1910", "Twall, Mark, 1902-1999")
    assert not contradict("Summer Games (1992 video game)", "Summer Games (1992)")
    assert not contradict("Summer Games (1992)", "Summer Games")


def test_a_date_is_read_whatever_the_order_of_its_parts() -> None:
    assert read_date("20 july 1969") == read_date("july 20 1969") == read_date("1969 07 20") == ("1969", "07", "20")
    assert read_date("july 31") == read_date("31st of july") == ("07", "31")
    assert read_date("july 40") == read_date("july 32") == read_date("july 0") == ()
    assert normal_form("臺灣") == normal_form("台湾")
