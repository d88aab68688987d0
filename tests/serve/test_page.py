"""The page in a real browser: what is seen, what can be clicked, and that nothing of a knowledge base is markup."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

from tests.kbtools.test_languages import SPEAKING
from tests.serve.conftest import RunningServer, serving

QUESTION = "who created the character harry potter"
ASKED = "#ask?q=" + quote(QUESTION)
COMPARED = ASKED + "&compare=on&pruning=n-gram-idf&pruning2=n-gram%2B&scorer2=lexical&subject2=type-count"
ADDRESSES = {
    "ask": ASKED,
    "compare": COMPARED,
    "lookup": "#lookup?name=harry+poter",
    "link": "#link?text=J.+K.+Rowling+lives+in+France",
    "entity": "#entity?id=m.042xh",
    "about": "#about",
}

Shown = TypeVar("Shown")

AXE = Path(__file__).resolve().parents[2] / "build" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="session")
def chrome(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Start a browser without a window."""
    options = ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    yield driver
    driver.quit()


@pytest.fixture
def browser(chrome: Chrome) -> Iterator[Chrome]:
    """Give the browser with a wide window; afterwards its console must hold no error."""
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    widen(chrome, 1200)
    yield chrome
    assert [line["message"] for line in chrome.get_log("browser") if line["level"] == "SEVERE"] == []


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the script of axe-core, which finds what keeps people from using a page."""
    if not AXE.is_file():
        pytest.skip("needs axe-core: make axe")
    return AXE.read_text()


def widen(chrome: Chrome, width: int) -> None:
    """Give the page a width in pixels; one below 500 is that of a telephone."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def visit(chrome: Chrome, address: str, shown: str) -> WebElement:
    """Open an address afresh and wait until something is there."""
    chrome.get("about:blank")
    chrome.get(address)
    return wait(chrome, shown)


def wait(chrome: Chrome, shown: str) -> WebElement:
    def find(driver: Chrome) -> WebElement | None:
        elements = driver.find_elements(By.CSS_SELECTOR, shown)
        return next((element for element in elements if element.is_displayed()), None)

    return until(chrome, find)


def until(chrome: Chrome, condition: Callable[[Chrome], Literal[False] | Shown | None]) -> Shown:
    """Wait until a condition holds; the page may be drawn again while it is read.

    Selenium looks twice a second, which is longer than the page takes.
    """
    return WebDriverWait(chrome, 20, 0.02, [StaleElementReferenceException]).until(condition)


def texts(chrome: Chrome, selector: str) -> list[str]:
    return [element.text for element in chrome.find_elements(By.CSS_SELECTOR, selector)]


def test_a_question_is_asked_by_keyboard(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url, "#focus")

    browser.find_element(By.TAG_NAME, "body").send_keys("/")
    browser.switch_to.active_element.send_keys(QUESTION, Keys.ENTER)

    assert wait(browser, ".answers").text == "J. K. Rowling"
    assert quote("harry") in browser.current_url


def test_the_answer_comes_first_then_the_candidates(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url + ASKED, "table.candidates")

    assert texts(browser, "#output > *")[0].startswith("J. K. Rowling")
    first = browser.find_element(By.CSS_SELECTOR, "tr.summary")
    assert "fictional_universe.fictional_character.character_created_by" in first.text
    assert first.find_element(By.TAG_NAME, "mark").text == "harry potter"


def test_the_bars_add_up_to_the_score(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url + ASKED, ".bars")

    values = [float(text.replace("−", "-")) for text in texts(browser, "tr.why:not([hidden]) .value")]
    labels = texts(browser, "tr.why:not([hidden]) .part span:first-child")

    assert labels == ["relation", "mention", "rung", "similarity", "popularity", "score"]
    assert sum(values[:-1]) == pytest.approx(values[-1], abs=0.003)
    assert last_end(browser, "tr.why:not([hidden]) .bar:not(.total)") == last_end(
        browser, "tr.why:not([hidden]) .total"
    )


def last_end(browser: Chrome, selector: str) -> int:
    """Find where the last bar that ends away from the zero line ends, in pixels."""
    script = """
      const bars = [...document.querySelectorAll(arguments[0])];
      const box = bars[bars.length - 1].getBoundingClientRect();
      return Math.round(bars[bars.length - 1].classList.contains("plus") ? box.right : box.left);
    """
    return int(browser.execute_script(script, selector))


def test_the_reasons_of_another_candidate_open(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url + ASKED, "table.candidates")
    second = browser.find_elements(By.CSS_SELECTOR, "tr.summary button")[1]

    second.click()

    assert second.get_attribute("aria-expanded") == "true"
    assert len([row for row in browser.find_elements(By.CSS_SELECTOR, "tr.why") if row.is_displayed()]) == 2


def test_a_candidate_is_taught_by_its_button(browser: Chrome, sample_path: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sample_path, tmp_path / "sample.kb")
    with serving(tmp_path / "log", "--kb", str(folder), "--teach") as server:
        visit(browser, server.url + "#ask?q=" + quote("what is the capital of France"), "table.candidates")
        row = next(row for row in browser.find_elements(By.CSS_SELECTOR, "tr.summary") if "currency" in row.text)

        row.find_element(By.CSS_SELECTOR, "button.teach").click()

        until(browser, lambda driver: texts(driver, ".answers") == ["Euro"])
        assert "taught by 1 question" in browser.find_element(By.ID, "output").text


def test_without_the_option_nothing_can_be_taught(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url + ASKED, "table.candidates")

    assert browser.find_elements(By.CSS_SELECTOR, "button.teach") == []


def test_facts_are_read_backwards_where_the_switch_says_so(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url + "#ask", "summary").click()
    wait(browser, 'input[name="inverse"]').click()
    browser.find_element(By.CSS_SELECTOR, 'input[type="search"]').send_keys("what films did steven spielberg direct")
    browser.find_element(By.CSS_SELECTOR, "button.first").click()

    assert wait(browser, "table.candidates .summary").text.count("inverse of directed by") == 1
    assert texts(browser, ".answers") == ["Jaws"]
    assert "inverse=on" in browser.current_url
    assert browser.find_element(By.NAME, "inverse").is_selected()
    assert browser.find_element(By.TAG_NAME, "summary").text == "Settings: facts backwards too"


def test_a_name_without_facts_is_named(browser: Chrome, server: RunningServer) -> None:
    shown = visit(browser, server.url + "#ask?q=" + quote("where is atlantis"), "#output .nothing")

    assert shown.text == "No candidates: no fact is known of Atlantis."


def test_equally_likely_readings_are_shown_and_none_is_the_answer(browser: Chrome, server: RunningServer) -> None:
    shown = visit(browser, server.url + "#ask?q=" + quote("where is springfield"), "#output .readings")

    assert shown.text.startswith("Not sure: 2 readings are equally likely:")
    assert texts(browser, ".readings .answers") == ["Illinois", "Massachusetts"]


def test_an_answer_that_is_a_guess_looks_like_one(browser: Chrome, server: RunningServer) -> None:
    question = "#ask?q=" + quote("what famous harbour bridge genre is amélie near last winter beside trains boats")
    shown = visit(browser, server.url + question, ".result > .doubt")

    assert shown.text.startswith("Doubtful: this is a guess")
    assert "confidence" in shown.text


def test_the_home_asks_questions_that_are_answered(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url, ".questions a")
    questions = texts(browser, ".questions a")

    assert "location 25.9 %" in texts(browser, ".shares .part")[0].replace("\n", " ")
    browser.find_element(By.CSS_SELECTOR, ".questions a").click()

    wait(browser, ".result .answers a")
    assert len(questions) == 6
    assert browser.find_element(By.ID, "focus").get_attribute("value") == questions[0]
    assert browser.find_elements(By.CSS_SELECTOR, ".doubt") == []


def test_entities_appear_as_one_types(browser: Chrome, server: RunningServer) -> None:
    field = visit(browser, server.url + "#lookup", "#focus")

    field.send_keys("harry p")
    suggestion = wait(browser, ".suggestions a")
    name = suggestion.text
    field.send_keys(Keys.TAB)
    for _ in range(3):  # the type, the button, the first suggestion
        if browser.switch_to.active_element != suggestion:
            browser.switch_to.active_element.send_keys(Keys.TAB)
    browser.switch_to.active_element.send_keys(Keys.ENTER)

    assert wait(browser, "#output h1").text == name


def test_facts_of_one_relation_stand_together(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url + "#entity?id=m.0f8l9c", ".facts-out li")

    rows = [text.replace("\n", " ") for text in texts(browser, ".facts-out tr")]
    assert "contains location.location.contains ParisLille" in rows  # a dot of the style sheet between
    assert "inverse of country film.film.country Amélie" in texts(browser, ".facts-in tr")[0].replace("\n", " ")
    assert texts(browser, ".neighbours a") == ["Amélie", "Paris", "Lille", "Paris", "Euro", "French Language", "Lille"]


def test_entities_lead_to_their_source(browser: Chrome, sample_path: Path, scripted_path: Path, tmp_path: Path) -> None:
    source = "https://example.org/{id}/about"
    kbs = ("--kb", str(sample_path), "--kb", str(scripted_path))
    with serving(tmp_path / "log", *kbs, "--link", source) as server:
        visit(browser, server.url + ADDRESSES["entity"], "#output h1")
        assert browser.find_element(By.LINK_TEXT, "source").get_attribute("href") == "https://example.org/m.042xh/about"

        menu = Select(browser.find_element(By.CSS_SELECTOR, "header select"))
        menu.select_by_index(1)

        wait(browser, "#output h1")
        assert browser.current_url.startswith(server.url + scripted_path.name.removesuffix(".kb"))


def test_the_path_leads_from_the_question_to_the_answer(browser: Chrome, server: RunningServer) -> None:
    path = visit(browser, server.url + ASKED, "svg.path")

    assert path.get_attribute("aria-label") == (
        f"question: {QUESTION} → mention: harry potter → entity: Harry Potter → "
        "relation: character created by → answer: J. K. Rowling"
    )
    assert texts(browser, "svg.path .entity text") == ["m.078ffw", "Harry Potter"]


def test_two_settings_stand_side_by_side(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url + COMPARED, ".difference")

    left, right = browser.find_elements(By.CSS_SELECTOR, ".result")
    assert texts(browser, ".result h2") == ["n-gram-idf, lexical, popularity", "n-gram+, lexical, type-count"]
    assert left.location["y"] == right.location["y"]
    assert "Both put the same first" in texts(browser, ".difference")[0]
    assert "only by the first" in texts(browser, ".difference")[0]
    assert len(left.find_elements(By.CSS_SELECTOR, "tr.only")) > 0


def test_a_choice_is_part_of_the_address(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url + ASKED, "summary").click()

    Select(browser.find_element(By.NAME, "pruning")).select_by_value("n-gram+")
    browser.find_element(By.CSS_SELECTOR, "button.first").click()

    until(browser, lambda driver: "pruning=n-gram%2B" in driver.current_url)
    wait(browser, ".result")
    assert texts(browser, ".result > p:last-child")[0].startswith("n-gram+, lexical, popularity")


def test_an_answer_leads_to_its_entity(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url + ASKED, ".answers a").click()

    assert wait(browser, "h1").text == "J. K. Rowling"
    wait(browser, ".facts-in td")
    assert "Robert Galbraith" in texts(browser, ".names")[0]
    assert "Types: book.author, people.person" in texts(browser, ".types")
    assert "Yate" in texts(browser, ".facts-out a")
    assert "Harry Potter" in texts(browser, ".facts-in a")


def test_going_back_shows_the_question_again(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url + ASKED, ".answers a").click()
    wait(browser, "h1")

    browser.back()

    assert wait(browser, ".answers").text == "J. K. Rowling"


def test_a_name_is_looked_up_with_reasons(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url + ADDRESSES["lookup"], "table.matches")

    assert "Harry Potter m.078ffw" in texts(browser, ".matches td")
    assert "resembles the name 'Harry Potter'" in texts(browser, ".reasons")[0]


@pytest.fixture(scope="session")
def speaking(make_kb: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Run the command over names in several languages."""
    with serving(
        tmp_path_factory.mktemp("speaking") / "log", "--kb", str(make_kb("embedded", SPEAKING).path)
    ) as running:
        yield running


def test_a_language_is_chosen_wherever_names_are_shown(browser: Chrome, speaking: RunningServer) -> None:
    visit(browser, speaking.url + "#lookup?name=Gift", ".matches")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".matches tbody tr")) == 2
    Select(browser.find_element(By.NAME, "lang")).select_by_value("de")
    browser.find_element(By.CSS_SELECTOR, "button.first").click()
    wait(browser, ".matches tbody tr:only-child")
    browser.find_element(By.CSS_SELECTOR, ".matches a").click()
    until(browser, lambda driver: "#entity?id=Q2&lang=de" in driver.current_url)

    visit(browser, speaking.url + "#link?text=Das+Gift+kam+aus+K%C3%B6ln&lang=de", ".text mark")
    links = [link.get_attribute("href") for link in browser.find_elements(By.CSS_SELECTOR, ".text a")]
    assert [str(link).partition("#")[2] for link in links] == ["entity?id=Q2&lang=de", "entity?id=Q365&lang=de"]


def test_an_entity_is_shown_in_the_language_that_is_chosen(browser: Chrome, speaking: RunningServer) -> None:
    visit(browser, speaking.url + "#entity?id=Q365", ".facts a")
    assert browser.find_element(By.TAG_NAME, "h1").text == "Cologne"
    Select(browser.find_element(By.NAME, "lang")).select_by_value("de")

    until(browser, lambda driver: driver.find_elements(By.LINK_TEXT, "Deutschland"))
    assert browser.find_element(By.TAG_NAME, "h1").text == "Köln"
    assert "lang=de" in str(browser.find_element(By.LINK_TEXT, "Look up").get_attribute("href"))


def test_names_of_other_languages_are_said_to_be(browser: Chrome, speaking: RunningServer) -> None:
    note = visit(browser, speaking.url + "#lookup?name=Cologne&lang=fr", ".others")

    assert note.text == "No name in fr matches; these are names in other languages."


def test_running_text_is_linked(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url + ADDRESSES["link"], ".text mark")

    assert texts(browser, ".text mark") == ["J. K. Rowling", "France"]


def test_a_page_tells_what_the_knowledge_base_holds(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url + ADDRESSES["about"], ".counts")

    assert "entities 506" in texts(browser, ".counts")[0]
    assert "sample.facts.txt" in texts(browser, "#main")[0]
    assert texts(browser, "#service") == [server.url + "reconcile"]


def test_what_goes_wrong_is_one_sentence(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url + "#entity?id=m.0nobody", ".error")

    assert "m.0nobody" in texts(browser, ".error")[0]
    browser.get_log("browser")  # the browser itself notes the 404


def test_no_candidates_are_said(browser: Chrome, server: RunningServer) -> None:
    nothing = visit(browser, server.url + "#ask?q=zzz+qqq", ".nothing")

    assert nothing.text == "No candidates: the question contains no name of the knowledge base."


@pytest.mark.parametrize("address", list(ADDRESSES.values()), ids=list(ADDRESSES))
def test_nothing_is_wider_than_a_telephone(browser: Chrome, server: RunningServer, address: str) -> None:
    widen(browser, 380)
    visit(browser, server.url + address, "#output > *, .counts")

    widths = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")

    assert widths == [380, 380]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 380)])
@pytest.mark.parametrize("address", ["", *ADDRESSES.values()], ids=["home", *ADDRESSES])
def test_axe_finds_no_barrier(
    browser: Chrome, server: RunningServer, axe: str, address: str, scheme: str, width: int
) -> None:
    widen(browser, width)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    visit(browser, server.url + address, "#output > *, .counts")
    browser.execute_script(axe)

    run = "const done = arguments[0]; axe.run().then((found) => done(found.violations.map((one) => one.id)))"
    assert browser.execute_async_script(run) == []


@pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
def test_it_is_dark_where_that_is_wanted(browser: Chrome, server: RunningServer, scheme: str, is_dark: bool) -> None:
    wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    visit(browser, server.url, "#focus")

    colour = browser.execute_script("return getComputedStyle(document.documentElement).backgroundColor")

    assert (sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(","))) < 380) is is_dark


def test_it_asks_nothing_of_other_sites(browser: Chrome, server: RunningServer) -> None:
    visit(browser, server.url + ASKED, ".answers")

    addresses = browser.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)")

    assert addresses
    assert [address for address in addresses if not address.startswith(server.url)] == []


@pytest.fixture(scope="session")
def scripted(scripted_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Serve the knowledge base whose names are markup."""
    with serving(tmp_path_factory.mktemp("scripted") / "log", "--kb", str(scripted_path)) as running:
        yield running


MARKUP = "<script>document.title='forged'</script>"
SEEN: dict[str, tuple[str, Callable[[Chrome], str]]] = {
    "entity": ("#entity?id=m.01script", lambda chrome: wait(chrome, "h1").text),
    "lookup": ("#lookup?name=" + quote(MARKUP), lambda chrome: wait(chrome, ".matches a").text),
    "ask": ("#ask?q=" + quote("director of " + MARKUP), lambda chrome: wait(chrome, ".summary a").text),
    "link": (
        "#link?text=" + quote(MARKUP + " <img src=x onerror=alert(1)>"),
        lambda chrome: wait(chrome, ".text").text,
    ),
}


@pytest.mark.parametrize("page", list(SEEN))
def test_markup_in_names_is_shown_and_never_run(browser: Chrome, scripted: RunningServer, page: str) -> None:
    address, seen = SEEN[page]
    browser.get("about:blank")
    browser.get(scripted.url + address)

    assert MARKUP in seen(browser)
    assert "forged" not in browser.title.replace(MARKUP, "")
    assert browser.execute_script("return document.querySelectorAll('script, img, b').length") == 1


def test_names_run_in_their_own_direction(browser: Chrome, scripted: RunningServer) -> None:
    heading = visit(browser, scripted.url + "#entity?id=m.02arabic", "h1")

    assert heading.text == "يوسف شاهين"
    assert browser.execute_script("return getComputedStyle(arguments[0]).direction", heading) == "rtl"


def test_long_names_are_no_wider_than_a_telephone(browser: Chrome, scripted: RunningServer) -> None:
    widen(browser, 380)
    visit(browser, scripted.url + "#entity?id=m.03long", "h1")

    assert browser.execute_script("return document.documentElement.scrollWidth") == 380
