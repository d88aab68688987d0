"""Views in a notebook: short lines, and tables in which nothing of a knowledge base is markup."""

import ast
import inspect
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbtools.answering.answerer import Answerer
from kbtools.answering.limits import TOP
from kbtools.answering.results import Named
from kbtools.indexers.folder.memory import MemoryKB

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "notebook.ipynb"


def test_every_cell_of_the_example_runs_and_shows_a_table_or_text() -> None:
    pytest.importorskip("pandas", reason="pip install pandas")
    cells = [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}

    shown = [run_cell("".join(cell["source"]), names) for cell in cells]

    assert [type(value).__name__ for value in shown[:6]] == [
        "Answerer", "Result", "Result", "LookupResult", "Facts", "LinkedText",
    ]  # fmt: skip
    assert [hasattr(value, "_repr_html_") for value in shown[:-1]] == [True] * 7
    assert list(shown[6]["answer_names"])[:2] == [["Stephen King"], ["Paris"]]


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does; return the value of its last line."""
    *body, last = ast.parse(source).body
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_a_record_is_one_short_line(sample_memory: Answerer) -> None:
    records = [
        sample_memory.query("who wrote it", scorer="lexical"),
        sample_memory.query("where is springfield", scorer="lexical"),
        sample_memory.query("zebra crossing"),
        sample_memory.lookup("harry poter"),
        sample_memory.link("J. K. Rowling lives in Edinburgh"),
        sample_memory.entity("m.078ffw"),
        sample_memory.facts("m.078ffw"),
    ]

    assert [repr(record) for record in records] == [
        "<Result 'who wrote it': Stephen King (confidence 0.57)>",
        "<Result 'where is springfield': not sure, 2 readings are equally likely>",
        "<Result 'zebra crossing': no candidates>",
        "<LookupResult 'harry poter': Harry Potter (m.078ffw), Harry Potter (m.0kba084)>",
        "<LinkedText of 32 characters, 2 mentions>",
        "<Entity Harry Potter (m.078ffw), 2 facts>",
        "<Facts of m.078ffw: 2 of 2>",
    ]
    assert repr(sample_memory).startswith("<Answerer: 534 facts")


def test_a_short_line_counts_what_it_leaves_out_and_tells_doubt() -> None:
    facts = [("a", "part", f'"p{number}"') for number in range(5)]
    kb = Answerer(MemoryKB(facts, [("a", "Elm"), *((f"b{number}", "Oak") for number in range(5))]))
    answered = kb.query("part of elm", scorer="lexical")

    shown = {
        "sure": repr(replace(answered, confidence=0.9)),
        "doubtful": repr(replace(answered, confidence=0.9, doubtful=True)),
        "withheld": repr(replace(answered, confidence=0.4, answered=False)),
    }
    assert repr(kb.lookup("oak")) == "<LookupResult 'oak': Oak (b0), Oak (b1), Oak (b2) and 2 more>"
    assert shown == {
        "sure": "<Result 'part of elm': p0, p1, p2 and 2 more (confidence 0.90)>",
        "doubtful": "<Result 'part of elm': p0, p1, p2 and 2 more (doubtful, confidence 0.90)>",
        "withheld": "<Result 'part of elm': no answer, confidence 0.40>",
    }


def test_a_relation_that_is_read_backwards_is_marked(sample_memory: Answerer) -> None:
    view = sample_memory.query("what films did steven spielberg direct", inverse=True, scorer="lexical")._repr_html_()

    assert "<td>^film.film.directed_by</td>" in view


def test_linked_names_are_highlighted_with_their_ids(sample_memory: Answerer) -> None:
    view = sample_memory.link("J. K. Rowling lives in <b>Edinburgh</b>")._repr_html_()

    assert ">J. K. Rowling <small>m.042xh</small></mark> lives in &lt;b&gt;" in view
    assert "<b>" not in view


def test_bearers_of_a_name_are_a_table_below_the_name(sample_memory: Answerer) -> None:
    result = sample_memory.lookup("<b>hamlet")
    view = result._repr_html_()

    assert view.startswith("<p>&lt;b&gt;hamlet</p>")
    assert view.count("<tr>") == 1 + len(result.matches) > 1
    assert all(f"<td>{match.id}</td>" in view for match in result.matches)


def test_readings_that_are_equally_likely_are_listed(sample_memory: Answerer) -> None:
    view = sample_memory.query("where is springfield", scorer="lexical")._repr_html_()

    assert "not sure, 2 readings are equally likely" in view
    assert view.count("<li>") == 2


def test_a_value_is_shown_by_its_text() -> None:
    assert str(Named('"1087353"', None)) == "1087353"


def test_the_tab_key_lists_the_api_alone(sample_memory: Answerer) -> None:
    assert {"query", "lookup", "link", "facts", "teach"} < set(dir(sample_memory))
    assert [name for name in dir(sample_memory) if name.startswith("_") or not hasattr(sample_memory, name)] == []
    assert "opened_systems" not in dir(sample_memory)


def test_signatures_show_the_options() -> None:
    parameters = inspect.signature(Answerer.query).parameters

    assert list(parameters)[:3] == ["self", "text", "pruning"]
    assert "system" in parameters
    assert parameters["top"].default == TOP
    assert inspect.signature(Answerer.lookup).parameters["lang"].default is None
