"""docker-compose.yml says the same as the rest of the project; its form is checked by `make check`."""

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
    assert environment["ELASTIC_PASSWORD"].startswith("${ELASTIC_PASSWORD:?")
    assert re.fullmatch(r"-Xms(\$\{.*\}) -Xmx\1", environment["ES_JAVA_OPTS"])
    assert "_cluster/health" in service["healthcheck"]["test"][1]
    assert service["volumes"][0].partition(":")[0] in COMPOSE["volumes"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_three_nodes_know_each_other() -> None:
    three = [SERVICES[node]["environment"] for node in NODES[1:]]

    assert {node["discovery.seed_hosts"] for node in three} == {"node1,node2,node3"}
    assert {node["node.name"] for node in three} == {"node1", "node2", "node3"}
    assert all(node["xpack.security.transport.ssl.enabled"] == "true" for node in three)


def test_no_port_is_taken_twice() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]

    assert len({re.search(r":-(\d+)\}", port)[1] for port in ports}) == len(ports)


def test_the_tool_is_built_here_and_runs_as_nobody_special() -> None:
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")

    assert SERVICES["kbtools"]["build"] == "."
    assert image.index("\nUSER kbtools") < image.index("\nENTRYPOINT")
    assert SERVICES["kbtools"]["environment"]["KBTOOLS_ELASTICSEARCH_USER"] == "elastic"


def test_the_image_gets_every_room() -> None:
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()

    assert {f"!{room}" for room in ("kbtools", "indexers", "scorers", "cli", "setup.cfg", "pyproject.toml")} <= set(
        kept
    )


def test_the_generated_password_is_long_and_private(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())

    subprocess.run(["make", "env"], cwd=tmp_path, check=True, capture_output=True)

    file = tmp_path / ".env"
    assert re.fullmatch(r"ELASTIC_PASSWORD=\S{24,}\n", file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
