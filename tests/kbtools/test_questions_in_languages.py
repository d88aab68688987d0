"""Questions in other languages than English, scored by what relations are called in them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.kb.views import question_languages, relation_labels
from kbtools.ranking.contracts import Teachable
from kbtools.scorers.relations.label_words import stem
from kbtools.scorers.relations.lexical import LexicalScorer
from kbtools.text.lexicons import Label, language_of, lexicon
from kbtools.text.question import MarkedQuestion, Question

NAMES = [
    *(("e", "Albert Einstein", tag) for tag in ("en", "de", "fr", "es", "it", "pt", "nl")),
    ("f", "Faust", "de"), ("f", "Faust", "fr"), ("u", "Ulm", "de"), ("p", "Princeton", "de"),
    ("m", "Mileva Marić", "de"),
    ("g", "Goethe", "de"), ("d", "Deutschland", "de"), ("d", "Allemagne", "fr"), ("b", "Berlin", "de"),
    ("w", "Wo", "de"),
]  # fmt: skip
FACTS = [
    ("e", "P19", "u"), ("e", "P20", "p"), ("e", "P569", "1879"), ("e", "P570", "1955"), ("e", "P26", "m"),
    ("f", "P50", "g"), ("f", "P577", "1808"), ("d", "P36", "b"), ("d", "P1082", "83"), ("w", "P17", "d"),
]  # fmt: skip
LABELS = {
    "P19": "Geburtsort lieu_de_naissance lugar_de_nacimiento luogo_di_nascita local_de_nascimento geboorteplaats",
    "P20": "Sterbeort lieu_de_mort lugar_de_fallecimiento luogo_di_morte local_de_morte overlijdensplaats",
    "P569": "Geburtsdatum date_de_naissance fecha_de_nacimiento data_di_nascita data_de_nascimento geboortedatum",
    "P570": "Sterbedatum date_de_mort fecha_de_fallecimiento data_di_morte data_de_morte overlijdensdatum",
    "P26": "Ehepartner conjoint cónyuge coniuge cônjuge echtgenoot",
    "P50": "Autor auteur autor autore autor auteur",
    "P577": "Veröffentlichungsdatum date_de_publication fecha_de_publicación data_di_pubblicazione data_de_publicação "
    "publicatiedatum",
    "P36": "Hauptstadt capitale capital capitale capital hoofdstad",
    "P1082": "Einwohnerzahl population población popolazione população inwonertal",
    "P17": "Staat pays país paese país land",
}
ENGLISH = {"P19": "place of birth", "P20": "place of death", "P569": "date of birth"}
RELATIONS = [
    (relation, label.replace("_", " "), tag)
    for relation, labels in LABELS.items()
    for tag, label in zip(("de", "fr", "es", "it", "pt", "nl"), labels.split(" "), strict=True)
] + [(relation, label, "en") for relation, label in ENGLISH.items()]


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Answerer:
    out = tmp_path_factory.mktemp("languages") / "k.kb"
    return kbtools.index(facts=FACTS, names=NAMES, relations=RELATIONS, out=out, language="en,")


def winner(kb: Answerer, question: str, lang: str, scorer: str) -> str | None:
    result = kb.query(question, lang=lang, scorer=scorer)
    return result.candidates[0].relation if result.answered else None


@pytest.mark.parametrize("scorer", ["lexical", "static"])
@pytest.mark.parametrize(
    ("lang", "question", "relation"),
    [
        ("de", "Was ist der Geburtsort von Albert Einstein?", "P19"),
        ("de", "wo wurde Albert Einstein geboren", "P19"),
        ("de", "WANN STARB ALBERT EINSTEIN?", "P570"),
        ("de", "Albert Einstein ist wo gestorben", "P20"),
        ("de", "mit wem war Albert Einstein verheiratet", "P26"),
        ("de", "wer hat Faust geschrieben?", "P50"),
        ("de", "Wann wurde Faust veroeffentlicht?", "P577"),
        ("de", "Wie viele Einwohner hat Deutschland?", "P1082"),
        ("fr", "Où est né Albert Einstein ?", "P19"),
        ("fr", "quand Albert Einstein est-il mort", "P570"),
        ("fr", "Qui est l'auteur de Faust ?", "P50"),
        ("fr", "Combien d'habitants a l'Allemagne ?", "P1082"),
        ("es", "¿Dónde nació Albert Einstein?", "P19"),
        ("es", "¿Cuándo murió Albert Einstein?", "P570"),
        ("it", "Dov'è nato Albert Einstein?", "P19"),
        ("it", "quando è morto Albert Einstein", "P570"),
        ("it", "anno di morte di Albert Einstein", "P570"),
        ("pt", "Onde nasceu Albert Einstein?", "P19"),
        ("pt", "quando morreu Albert Einstein", "P570"),
        ("nl", "Waar is Albert Einstein geboren?", "P19"),
        ("nl", "wanneer overleed Albert Einstein", "P570"),
    ],
)
def test_a_question_is_answered_in_its_language(
    kb: Answerer, lang: str, question: str, relation: str, scorer: str
) -> None:
    assert winner(kb, question, lang, scorer) == relation


def test_relations_are_called_as_the_language_calls_them(kb: Answerer) -> None:
    french = kb.query("Où est né Albert Einstein ?", lang="fr")

    assert french.candidates[0].relation_name == "lieu de naissance"
    assert kb.query("place of birth of Albert Einstein").candidates[0].relation_name == "place of birth"


def test_function_words_of_a_language_are_no_mention_beside_a_name(kb: Answerer) -> None:
    result = kb.query("Wo wurde Albert Einstein geboren?", lang="de")

    assert {candidate.mention.text for candidate in result.candidates[:2]} == {"Albert Einstein"}


@pytest.mark.parametrize(
    ("lang", "languages"),
    [(None, ()), ("en", ()), ("de", ("de",)), ("fr,en", ("fr", "en"))],
)
def test_questions_are_in_the_languages_asked_for_and_else_in_english(
    kb: Answerer, lang: str | None, languages: Sequence[str]
) -> None:
    view = kb.kb if lang is None else kb.in_languages(lang).kb

    assert question_languages(view) == languages


def test_without_english_names_every_language_of_the_names_counts(tmp_path: Path) -> None:
    names = [("e", "Albert Einstein", "de"), ("e", "Albert Einstein", "fr"), ("u", "Ulm", "de")]
    relations = [relation for relation in RELATIONS if relation[2] in ("de", "fr")]
    kb = kbtools.index(facts=FACTS, names=names, relations=relations, out=tmp_path / "k.kb", language="de,fr")

    assert question_languages(kb.kb) == ("de", "fr")
    for question in ("wo wurde Albert Einstein geboren", "où est né Albert Einstein"):
        assert kb.query(question).candidates[0].relation == "P19"


def test_a_relation_has_a_label_for_each_language_that_is_asked_for(kb: Answerer) -> None:
    place = list(kb.kb.relations).index("P19")

    assert relation_labels(kb.kb)[place] == ["place of birth"]
    assert relation_labels(kb.in_languages("de,en").kb)[place] == ["Geburtsort", "place of birth"]
    assert [language_of(label) for label in relation_labels(kb.in_languages("de").kb)[place]] == ["de"]


def test_a_relation_without_labels_is_called_by_its_id_in_any_language(tmp_path: Path) -> None:
    names = [("e", "Albert Einstein", "de"), ("e", "Albert Einstein", "fr")]
    kb = kbtools.index(facts=[("e", "geburtsort", "u")], names=names, out=tmp_path / "k.kb", language="de,fr")
    (labels,) = relation_labels(kb.in_languages("de").kb)

    assert list(map(language_of, labels)) == ["de", "en"]


def test_what_is_taught_in_a_language_counts_there(kb: Answerer) -> None:
    question = MarkedQuestion(Question.read("wo wurde X geboren"), 9, 10)
    scorer = kb.in_languages("de,fr").scorer("static")

    assert isinstance(scorer, Teachable)
    assert scorer.score([question]).shape == (1, len(kb.kb.relations))
    assert (scorer.score_embedded(scorer.embed([question]), [question]) == scorer.score([question])).all()


def test_a_part_of_a_compound_counts_less_than_the_word(kb: Answerer) -> None:
    question = MarkedQuestion(Question.read("welche stadt X"), 13, 14)
    labels = [Label.of(text, "de") for text in ("Stadt", "Hauptstadt", "Vater")]
    ((whole, part, other),) = LexicalScorer(labels).score([question])

    assert whole > part > other == 0


def test_labels_in_english_score_as_plain_texts_do() -> None:
    texts = ["place of birth", "date of birth", "author"]
    question = MarkedQuestion(Question.read("where was X born"), 10, 11)
    plain = LexicalScorer(texts).score([question])
    beside = LexicalScorer([*(Label.of(text, "en") for text in texts), Label.of("Autor", "de")]).score([question])

    assert (beside[:, :3] == plain).all()


def test_a_language_without_a_table_has_its_own_words_alone() -> None:
    assert not lexicon("tlh").function_words
    assert stem("tlh", "words") == "words"
    assert stem("fi", "taloissa") == "talo"


@pytest.mark.parametrize(
    ("lang", "text", "mentions"),
    [
        ("de", "WO WAR ALBERT EINSTEIN?", ["ALBERT EINSTEIN"]),
        ("de", "Wo war Albert Einstein?", ["Albert Einstein"]),
        ("de", "Wo ist hier der Faust?", ["Faust"]),
    ],
)
def test_function_words_are_no_mentions_of_a_text_in_their_language(
    kb: Answerer, lang: str, text: str, mentions: list[str]
) -> None:
    assert [mention.text for mention in kb.link(text, lang=lang).mentions] == mentions


def test_a_head_is_learned_from_the_labels_of_the_language_asked_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTOOLS_TAUGHT", str(tmp_path / "taught.tsv"))
    out = tmp_path / "k.kb"
    taught = kbtools.index(facts=FACTS, names=NAMES, relations=RELATIONS, out=out, language="en,")
    taught.teach("Albert Einsteins Wiege", "e", "P19")
    taught.query("where did Albert Einstein die", scorer="static")  # learns in English first
    after_english = taught.query("Albert Einsteins Wiege bitte", lang="de", scorer="static").candidates
    monkeypatch.setenv("KBTOOLS_CACHE", str(tmp_path / "empty"))
    alone = kbtools.open(out).query("Albert Einsteins Wiege bitte", lang="de", scorer="static").candidates

    assert [candidate.score for candidate in after_english] == [candidate.score for candidate in alone]
    assert after_english[0].relation == "P19"
