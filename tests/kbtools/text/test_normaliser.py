"""The normaliser: which spellings are one."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.text.normaliser import fold, fold_character, normal_form, normal_forms

ANY_TEXT = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(
            "aé&'-_.!?İıßǰŉﬁℌ１Ａ가가़िが゛\u3099\u0301\u0338\u200d\u200b\u00ad\ufe0f\u20e3\u202e\ufeff\r\n\t\u2028…℀½\U0001f600\U0001d504"
        ),
    ),
    max_size=12,
)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Harder.....Faster", "harder faster"),
        ("harder.....faster?", "harder faster"),
        ("It", "it"),
        ("The Who", "the who"),
        ("1984", "1984"),
        ("user100", "user100"),
        ("MAP", "map"),
        ("Nízke Tatry", "nizke tatry"),
        ("Ni\u0301zke Tatry", "nizke tatry"),
        ("Sasha Vujačić", "sasha vujacic"),
        ("Peter's Point Plantation", "peter s point plantation"),
        ("C++", "c"),
        ("m/s", "m s"),
        ("AT&T", "at and t"),
        ("AT＆T", "at and t"),
        ("Straße", "strasse"),
        ("STRASSE", "strasse"),
        ("Diyarbakır", "diyarbakir"),
        ("DİYARBAKIR", "diyarbakir"),
        ("Øresund", "oresund"),
        ("Æon Flux", "aeon flux"),
        ("ﬁnal", "final"),
        ("Ａｋｉｒａ　１９８８", "akira 1988"),
        ("H₂O", "h2o"),
        ("a_b", "a b"),
        ("Nadirʼs", "nadir s"),
        ("Hawaiʻi", "hawai i"),
        ("Qurʾan", "qur an"),
        ("Kaʿba", "ka ba"),
        ("\u095bमीन", "ज\u093cमीन"),
        ("a\r\nb\tc", "a b c"),
        ("Ελλάς", "ελλασ"),
        ("ЙОД", "иод"),
        ("が", "が"),
        ("か\u3099", "が"),
        ("हिन्दी", "हिन्दी"),
        ("한국", "한국"),
        ("ᄒ\u1161ᆫ국", "한국"),
        ("שָׁלוֹם", "שלום"),
        ("١٩٨٤", "١٩٨٤"),
        ("𝔄𝔟𝔠", "abc"),
        ("8½", "8 1 2"),
        ("2¾ Days", "2 3 4 days"),
        ("Ronma ½", "ronma 1 2"),
        ("Scrumble™", "scrumble"),
        ("Scrumble℠ Legno®", "scrumble legno"),
        ("Ɓøłđə ƀǥŋ", "bolda bgn"),
        ("ᴀʙᴄ ǣ Ǆ ŀ", "abc ae dz l"),
        ("طنجة", "طنجه"),
        ("الدورى", "الدوري"),
        ("شـابوص", "شابوص"),
        ("کیف", "كيف"),
        ("װאָס", "וואס"),
        ("Саrаvel", "caravel"),
        ("Оре", "ope"),
        ("Αtlas", "atlas"),
        ("Москвa", "москва"),
        ("ТЕСТ тест", "тест тест"),
        ("Mat\u0442", "matt"),
        ("M\u0430t\u0442", "\u043c\u0430\u0442\u0442"),
    ],
)
def test_a_name_has_its_normal_form(text: str, normal: str) -> None:
    assert normal_form(text) == normal


@pytest.mark.parametrize(
    ("seen", "written"),
    [
        ("Harry Potter", "Har\u200bry Pot\u00adter"),
        ("Harry Potter", "\ufeffHarry Potter\u200e"),
        ("Harry Potter", "\u202bHarry Potter\u202c"),
        ("می\u200cخواهم", "میخواهم"),
        ("I ❤ Huckabees", "I ❤\ufe0f Huckabees"),
        ("❤", "❤\ufe0f"),
        ("7 Up", "7\ufe0f\u20e3 Up"),
        ("café", "cafe\u0301\u034f"),
    ],
)
def test_what_cannot_be_seen_is_no_part_of_a_name(seen: str, written: str) -> None:
    assert normal_form(seen) == normal_form(written)


@pytest.mark.parametrize(
    ("text", "normal"),
    [("?", "?"), ("!!!", "!!!"), (" ! ! ", "!!"), ("…", "..."), ("( )", "()"), ("👨\u200d👩", "👨👩")],
)
def test_a_name_without_a_word_keeps_its_punctuation(text: str, normal: str) -> None:
    assert normal_form(text) == normal


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u00a0", "\u200b", "\ufe0f", "\u0301", "\udc80"])
def test_a_text_with_nothing_to_see_has_no_normal_form(text: str) -> None:
    assert normal_form(text) == ""


def test_the_normal_form_of_a_normal_form_is_itself_for_every_character(characters: list[str]) -> None:
    text = [normal_form(f"a{character}b") for character in characters]
    assert list(map(normal_form, text)) == text


@given(ANY_TEXT)
def test_the_normal_form_of_a_normal_form_is_itself(text: str) -> None:
    assert normal_form(normal_form(text)) == normal_form(text)


@given(ANY_TEXT)
def test_a_normal_form_can_be_stored(text: str) -> None:
    normal = normal_form(text)
    assert normal.encode().decode() == normal
    assert normal == " ".join(normal.split())


def test_a_text_without_spaces_is_folded_in_a_time_that_grows_with_its_length() -> None:
    text = "中" * 300_000  # minutes, where time grew with the square of the length

    assert fold(text) == text


@given(ANY_TEXT, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_no_composition_changes_a_normal_form(text: str, form: Any) -> None:
    text = "".join(character for character in text if "K" not in form or not loses_its_meaning(character))
    assert normal_form(unicodedata.normalize(form, text)) == normal_form(text)


def loses_its_meaning(character: str) -> bool:
    """Compatibility runs a fraction into the number before it, and makes letters of a trademark."""
    return "\u2044" in unicodedata.normalize("NFKC", character) or character in "\u2122\u2120"


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_folds_as_its_characters_do(text: str) -> None:
    assert fold(text) == "".join(map(fold_character, text))


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_splits_as_any_text_does(text: str) -> None:
    assert normal_form(f"{text} é a") == normal_form(" ".join(filter(None, [text_of_words(text), "e a"])))


def text_of_words(text: str) -> str:
    """The normal form of an ASCII text, one without a word giving none."""
    return "".join(
        character if character.isalnum() else " and " if character == "&" else " " for character in text.lower()
    )


@given(st.lists(ANY_TEXT | st.text(st.sampled_from("aB &-!\n"), max_size=6), max_size=4))
def test_many_texts_have_the_normal_forms_of_each(texts: list[str]) -> None:
    assert normal_forms(texts) == list(map(normal_form, texts))


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("m\u03c5sic", "music"),
        ("a\u03bdenue", "avenue"),
        ("\u03bcouse", "mouse"),
        ("mo\u03b7ey", "money"),
        ("\u043cusic", "music"),
        ("\u0432ook", "book"),
        ("\u043douse", "house"),
        ("\u0442able", "table"),
        ("\u043b\u0430\u0434a", "\u043b\u0430\u0434\u0430"),
        ("\u0430\u0435\u043e\u0440", "aeop"),
        ("\u03bd\u03b7", "\u03bd\u03b7"),
        ("\u03c0\u03bf\u03b5m", "\u03c0\u03bf\u03b5\u03bc"),
    ],
)
def test_a_word_of_letters_that_look_alike_is_of_one_script(text: str, normal: str) -> None:
    assert normal_form(text) == normal


@pytest.mark.parametrize(
    "mark", ["\u093c", "\u094d", "\u0e38", "\u0eb8", "\u0f71", "\u0f72", "\u0f74", "\u093f", "\u0301"]
)
def test_vowel_signs_belong_to_the_spelling_and_accents_do_not(mark: str) -> None:
    assert (normal_form(f"a{mark}b") == "ab") is (mark == "\u0301")
