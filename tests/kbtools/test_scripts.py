"""Names in scripts of the world: inside runs without spaces, misspelt, in other widths, directions and cases."""

import pytest

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.text.question import Question
from tests.work import calls_of

NAMES = [
    ("chengdu", "成都"),
    ("peking", "北京大学"),
    ("sinopec", "中国石油化工集团公司"),
    ("star", "スターウォーズ"),
    ("wars", "スター・ウォーズ外伝"),
    ("pokemon", "ポケモン"),
    ("bangkok", "กรุงเทพมหานคร"),
    ("phuket", "ภูเก็ต"),
    ("vientiane", "ວຽງຈັນ"),
    ("seoul", "서울"),
    ("kim", "김대중"),
    ("muhammad", "محمد"),
    ("cairo", "القاهرة"),
    ("jerusalem", "ירושלים"),
    ("fifa", "FIFA"),
    ("delhi", "दिल्ली"),
    ("istanbul", "İstanbul"),
    ("igdir", "Iğdır"),
    ("street", "Straße"),
    ("apple", "🍎"),
    ("danang", "Đà Nẵng"),
]


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Answerer:
    out = tmp_path_factory.mktemp("scripts") / "kb"
    return kbtools.index(names=NAMES, facts=[(entity, "is", "there") for entity, _ in NAMES], out=out)


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("成都的人口是多少", "chengdu"),
        ("请问成都在哪里", "chengdu"),
        ("我在成都", "chengdu"),
        ("2020年成都GDP", "chengdu"),
        ("GDP成都", "chengdu"),
        ("スターウォーズの監督", "star"),
        ("スター・ウォーズの監督", "star"),
        ("スターウォーズ外伝の監督", "wars"),
        ("ｽﾀｰｳｫｰｽﾞの監督", "star"),
        ("ﾎﾟｹﾓﾝの作者", "pokemon"),
        ("ฉันไปภูเก็ตเมื่อวาน", "phuket"),
        ("ວຽງຈັນຢູ່ໃສ", "vientiane"),
        ("서울은 어디에 있나요", "seoul"),
        ("김대중이 누구인가", "kim"),
        ("من هو مُحَمَّد", "muhammad"),
        ("محـــمد", "muhammad"),
        ("\u200fمحمد\u200f متى ولد", "muhammad"),
        ("أين تقع القاهره؟", "cairo"),
        ("\u202bיְרוּשָׁלַיִם\u202c", "jerusalem"),
        ("who runs ＦＩＦＡ", "fifa"),
        ("दिल्ली कहाँ है", "delhi"),
        ("what is 🍎", "apple"),
        ("where is da nang", "danang"),
        ("where is Đa\u0300 Nẵng", "danang"),
    ],
)
def test_a_name_is_found_in_its_script(kb: Answerer, question: str, subject: str) -> None:
    assert subject in {candidate.subject for candidate in kb.query(question).candidates}


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("北京太学在哪里", "peking"),
        ("中国石油化工集团公斯总部", "sinopec"),
        ("中国石油化工集团总公司的总部在哪里", "sinopec"),
        ("ポケモソの作者", "pokemon"),
        ("ภูเกตอยู่ที่ไหน", "phuket"),
        ("दिल्लि कहाँ है", "delhi"),
    ],
)
def test_a_misspelt_name_is_found_inside_a_run_of_letters(kb: Answerer, question: str, subject: str) -> None:
    (candidate,) = kb.query(question).candidates

    assert (candidate.subject, candidate.rung) == (subject, "fuzzy")


@pytest.mark.parametrize(
    ("name", "entity"),
    [
        ("istanbul", "istanbul"),
        ("İSTANBUL", "istanbul"),
        ("ıstanbul", "istanbul"),
        ("IĞDIR", "igdir"),
        ("igdir", "igdir"),
        ("strasse", "street"),
        ("STRASSE", "street"),
        ("STRAẞE", "street"),
    ],
)
def test_turkish_i_and_sharp_s_are_folded(kb: Answerer, name: str, entity: str) -> None:
    (match,) = kb.lookup(name).matches

    assert match.id == entity
    assert match.similarity == 100


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("我在成都和北京大学读书，然后看スターウォーズ。", ["chengdu", "peking", "star"]),
        ("김대중은 서울에서 살았다.", ["kim", "seoul"]),
        ("ฉันไปภูเก็ตและกรุงเทพมหานคร", ["phuket", "bangkok"]),
    ],
)
def test_running_text_without_spaces_is_linked(kb: Answerer, text: str, entities: list[str]) -> None:
    linked = kb.link(text)

    assert [mention.candidates[0].id for mention in linked.mentions] == entities
    assert all(text[mention.start : mention.end] == mention.text for mention in linked.mentions)


@pytest.mark.parametrize("letter", ["成", "ก", "ス"])
def test_of_a_run_without_spaces_a_limited_number_of_letters_is_read(letter: str) -> None:
    assert [Question.read(letter * count).unread for count in (2_000, 2_500, 10_500)] == [0, 500, 8_500]
    assert Question.read("word " * 9_000 + letter * 2_500).unread > 0


@pytest.mark.parametrize("letters", ["成都的人口是多少", "カタカナヲヨム", "กขคงจฉชซ"])
def test_a_run_without_spaces_of_any_length_is_limited_work(
    kb: Answerer, letters: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtools.text.question.MOST_LETTERS", 200)
    text = letters * 25
    kb.query("who")

    assert calls_of(kb.query, text * 40) < 1.5 * calls_of(kb.query, text)
