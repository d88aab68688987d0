"""The requests of OpenRefine, as 3.6 to 3.9 send them, and a whole reconciliation by the program where it is installed.

Its bodies are forms; `type_strict` comes with every type, `limit` and `properties` where they were chosen;
values of a property are texts, numbers or, from a reconciled column, an id with a name.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlencode

import pytest
from starlette.testclient import TestClient

from tests.serve.conftest import RunningServer

AUTHOR = "book.written_work.author"
FORM = {"content-type": "application/x-www-form-urlencoded; charset=UTF-8"}


def post(client: TestClient, field: str, record: object) -> Any:
    """Post a record as OpenRefine does: without blanks, in a form."""
    body = f"{field}={quote_plus(json.dumps(record, ensure_ascii=False, separators=(',', ':')))}"
    answer = client.post("/reconcile", content=body, headers=FORM)
    assert answer.status_code == 200, answer.text
    return answer.json()


def first_ids(answer: dict[str, Any]) -> dict[str, str | None]:
    return {key: next((one["id"] for one in value["result"]), None) for key, value in answer.items()}


def test_types_are_guessed_from_ten_cells(client: TestClient) -> None:
    names = ["It", "The Shining", "Harry Potter", "Frankenstien", "", "Hary Poter"]

    answer = post(client, "queries", {f"q{place}": {"query": name, "limit": 3} for place, name in enumerate(names)})

    # OpenRefine counts the types of all candidates, of each the first most, and proposes them most frequent first.
    counts: dict[str, int] = {}
    for value in answer.values():
        for candidate in value["result"]:
            for kind in candidate["type"]:
                counts[kind["id"]] = counts.get(kind["id"], 0) + 1
    assert max(counts, key=lambda kind: counts[kind]) == "book.written_work"
    assert answer["q4"] == {"result": []}


def test_a_column_with_a_type_and_two_others(client: TestClient) -> None:
    rowling = {"id": "m.042xh", "name": "J. K. Rowling"}
    answer = post(
        client,
        "queries",
        {
            "q0": {
                "query": "Harry Potter",
                "type": "book.written_work",
                "properties": [{"pid": AUTHOR, "v": rowling}, {"pid": "book.written_work.date", "v": 1997}],
                "limit": 2,
                "type_strict": "should",
            },
            "q1": {"query": "It", "type": "book.written_work", "type_strict": "should"},
            "q2": {
                "query": "It",
                "properties": [{"pid": AUTHOR, "v": "Stephen King"}, {"pid": "book.read", "v": True}],
            },
            "q3": {"query": "\t", "properties": [{"pid": AUTHOR, "v": "1986-09-15T00:00:00Z"}]},
        },
    )

    assert first_ids(answer) == {"q0": "m.0kba084", "q1": "m.0kba086", "q2": "m.0kba086", "q3": None}
    assert len(answer["q0"]["result"]) == 2


def test_a_cell_of_some_pages_takes_nothing_from_the_others(client: TestClient) -> None:
    answer = post(client, "queries", {"q0": {"query": "中" * 100_000}, "q1": {"query": "Stephen King"}})

    assert first_ids(answer) == {"q0": None, "q1": "m.0jt90f5"}


def test_a_batch_may_fill_a_few_megabytes(client: TestClient) -> None:
    answer = post(client, "queries", {f"q{place}": {"query": "中" * 4_000} for place in range(100)})

    assert set(first_ids(answer).values()) == {None}


def test_a_setting_of_a_property_that_was_emptied_is_none(client: TestClient) -> None:
    settings = {"limit": "", "content": "entity"}

    answer = post(client, "extend", {"ids": ["m.0kba086"], "properties": [{"id": AUTHOR, "settings": settings}]})

    assert answer["rows"]["m.0kba086"][AUTHOR] == [{"id": "m.0jt90f5", "name": "Stephen King"}]
    assert answer["meta"] == [{"id": AUTHOR, "name": AUTHOR}]


def test_a_script_of_a_page_reads_the_manifest_and_suggestions(client: TestClient) -> None:
    jquery = "jQuery36006048886897382963_1795881343080"
    more = {"spell": "always", "exact": "false", "scoring": "schema", "prefixed": "true", "type": "book.written_work"}

    manifest = client.get("/reconcile", params={"callback": jquery, "_": "1795881343081"})
    suggested = client.get("/reconcile/suggest/property", params={"callback": jquery, "prefix": "auth", **more})
    proposed = client.get("/reconcile/properties", params={"type": "", "callback": jquery})

    assert '"versions": ["0.2"]' in manifest.text
    assert suggested.text == f'/**/{jquery}({{"result": [{{"id": "{AUTHOR}", "name": "{AUTHOR}"}}]}});'
    assert f'"id": "{AUTHOR}"' in proposed.text


def test_the_types_of_a_suggestion_are_ids(client: TestClient) -> None:
    first, *_ = client.get("/reconcile/suggest/entity", params={"prefix": "Stephen Ki"}).json()["result"]

    assert ",".join(first["notable"]) == "book.author,people.person"


@dataclass(frozen=True)
class OpenRefine:
    """A running OpenRefine, spoken to as its page does."""

    url: str

    def get(self, command: str, **parameters: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/command/core/{command}?{urlencode(parameters)}", timeout=60) as answer:
            return json.load(answer)

    def post(self, command: str, project: str, **fields: str) -> Any:
        address = {"project": project, "csrf_token": self.get("get-csrf-token")["token"]}
        url = f"{self.url}/command/core/{command}?{urlencode(address | fields)}"
        with urllib.request.urlopen(url, urlencode(fields).encode(), timeout=60) as answer:
            return json.load(answer)

    def create(self, table: str) -> str:
        """Make a project of a table; give its number."""
        options = json.dumps({"separator": "\t", "headerLines": 1, "guessCellValueTypes": True})
        fields = {"project-name": "books", "format": "text/line-based/*sv", "options": options, "project-file": table}
        body = "".join(
            f'--line\r\nContent-Disposition: form-data; name="{name}"{"; filename=a.tsv" * (name == "project-file")}'
            f"\r\n\r\n{value}\r\n"
            for name, value in fields.items()
        )
        token = self.get("get-csrf-token")["token"]
        request = urllib.request.Request(
            f"{self.url}/command/core/create-project-from-upload?csrf_token={token}",
            f"{body}--line--\r\n".encode(),
            {"content-type": "multipart/form-data; boundary=line"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.url).split("project=")[1]

    def rows(self, project: str) -> Any:
        """Wait until nothing is being computed, and give the rows."""
        for _ in range(300):
            if not self.get("get-processes", project=project)["processes"]:
                break
            time.sleep(0.2)
        return self.post("get-rows", project, start="0", limit="50", engine='{"facets":[],"mode":"row-based"}')


@pytest.fixture(scope="session")
def openrefine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenRefine]:
    """Run OpenRefine without a window, or skip."""
    if not shutil.which("openrefine"):
        pytest.skip("needs OpenRefine: apt-get install openrefine")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = str(free.getsockname()[1])
    folder = tmp_path_factory.mktemp("openrefine")
    command = f"openrefine -x refine.headless=true -i 127.0.0.1 -p {port} -d {folder} -m 512M"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command.split(), stdout=log, stderr=log, start_new_session=True)
    with process:
        try:
            yield wait_until_up(OpenRefine(f"http://127.0.0.1:{port}"))
        finally:
            os.killpg(process.pid, signal.SIGTERM)  # the command is a script that starts the program


def wait_until_up(refine: OpenRefine) -> OpenRefine:
    """Wait at most two minutes until OpenRefine answers."""
    for _ in range(240):
        try:
            refine.get("get-version")
            return refine
        except OSError:
            time.sleep(0.5)
    raise AssertionError("OpenRefine does not start")


def test_openrefine_itself_reconciles_and_extends_a_column(openrefine: OpenRefine, server: RunningServer) -> None:
    service, engine = f"{server.url}reconcile", '{"facets":[],"mode":"row-based"}'
    with urllib.request.urlopen(service, timeout=60) as answer:
        manifest = json.load(answer)
    spaces = {name: manifest[name] for name in ("identifierSpace", "schemaSpace")}
    project = openrefine.create("book\tauthor\nIt\tStephen King\nThe Shining\t\n \t\nHary Poter\tJ. K. Rowling\n")
    config = {
        "mode": "standard-service",
        "service": service,
        **spaces,
        "type": {"id": "book.written_work", "name": "Written work"},
        "autoMatch": True,
        "batchSize": manifest["batchSize"],
        "columnDetails": [{"column": "author", "propertyID": AUTHOR, "propertyName": "author"}],
        "limit": 0,
    }

    guessed = openrefine.post("guess-types-of-column", project, columnName="book", service=service)
    openrefine.post("reconcile", project, columnName="book", config=json.dumps(config), engine=engine)
    table = openrefine.rows(project)
    openrefine.post(
        "extend-data",
        project,
        baseColumnName="book",
        columnInsertIndex="1",
        endpoint=service,
        extension=json.dumps({"properties": [{"id": AUTHOR, "name": "author", "settings": {}}]}),
        engine=engine,
        **spaces,
    )
    extended = openrefine.rows(project)

    cells = [row["cells"][0] for row in table["rows"]]
    recons = [table["pool"]["recons"].get(str(cell.get("r"))) if cell else None for cell in cells]
    assert {"book.written_work", "film.film"} <= {kind["id"] for kind in guessed["types"]}
    assert [recon["m"]["id"] if recon and "m" in recon else None for recon in recons] == [
        "m.0kba086",
        "m.0kba087",
        None,
        None,
    ]
    new = [row["cells"][2]["v"] if row["cells"][2:] and row["cells"][2] else None for row in extended["rows"]]
    assert new == ["Stephen King", "Stephen King", None, None]
