"""docker-compose.yml agrees with the rest of the project; `make check` checks its syntax."""

import re
import stat
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[1]
COMPOSE = YAML(typ="safe").load(ROOT / "docker-compose.yml")
SERVICES = COMPOSE["services"]
NODES = ["elasticsearch", "node1", "node2", "node3"]


def test_the_server_has_the_major_version_of_the_client() -> None:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    (client,) = [line for line in setup["options"]["install_requires"].split("\n") if line.startswith("elasticsearch")]
    versions = {re.search(r":-(\d+)\.\d+\.\d+\}$", SERVICES[name]["image"])[1] for name in [*NODES, "certificates"]}

    assert versions == {"9"}
    assert client == "elasticsearch>=9,<10"


@pytest.mark.parametrize("node", NODES)
def test_every_node_has_security_heap_health_and_a_volume(node: str) -> None:
    service = SERVICES[node]
    environment = service["environment"]

    assert environment["xpack.security.enabled"] == "true"
    assert environment["ELASTIC_PASSWORD_FILE"] == "/run/secrets/elastic"
    assert service["secrets"] == ["elastic"]
    assert re.fullmatch(r"-Xms(\$\{.*\}) -Xmx\1", environment["ES_JAVA_OPTS"])
    assert "_cluster/health" in service["healthcheck"]["test"][1]
    assert service["volumes"][0].partition(":")[0] in COMPOSE["volumes"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_three_nodes_know_each_other() -> None:
    three = [SERVICES[node]["environment"] for node in NODES[1:]]

    assert {node["discovery.seed_hosts"] for node in three} == {"node1,node2,node3"}
    assert {node["node.name"] for node in three} == {"node1", "node2", "node3"}
    for seam in ("transport", "http"):
        assert {node[f"xpack.security.{seam}.ssl.enabled"] for node in three} == {"true"}
        assert {node[f"xpack.security.{seam}.ssl.key"] for node in three} == {"certificates/node.key"}
    assert {node["SCHEME"] for node in three} == {"https"}


def test_no_port_is_taken_twice() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]

    assert len({re.search(r":-(\d+)\}", port)[1] for port in ports}) == len(ports)


def test_the_tool_and_its_server_are_built_here_and_run_without_privileges() -> None:
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")

    assert {SERVICES[name]["build"] for name in ("kbtools", "serve")} == {"."}
    assert image.index("\nUSER 1000") < image.index("\nENTRYPOINT")
    assert "[serve]" in image
    assert SERVICES["kbtools"]["environment"]["KBTOOLS_ELASTICSEARCH_PASSWORD_FILE"] == "/run/secrets/elastic"


def test_the_server_listens_where_its_port_and_health_check_say() -> None:
    service = SERVICES["serve"]
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")

    assert service["command"][-2:] == ["--port", "8000"]
    assert service["ports"][0].endswith(":8000")
    assert "localhost:8000/health" in service["healthcheck"]["test"][-1]
    assert "\nEXPOSE 8000\n" in image
    assert "\nHEALTHCHECK " in image


def test_the_image_gets_all_that_is_installed() -> None:
    kept = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").split()}
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    folders = [line.partition(" = ")[2] for line in setup["options"]["package_dir"].split("\n") if line]
    licences = setup["metadata"]["license_files"].split()

    assert {*folders, *licences, "setup.cfg", "pyproject.toml", "README.md", "MANIFEST.in"} <= kept


def test_the_generated_password_is_long_and_private(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())

    subprocess.run(["make", "env"], cwd=tmp_path, check=True, capture_output=True)

    file = tmp_path / ".secrets" / "elastic"
    assert re.fullmatch(r"\S{24,}", file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
