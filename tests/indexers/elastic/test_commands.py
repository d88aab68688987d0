"""Commands take a knowledge base from a cluster as they take it from a folder."""

import io
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kbtools
from kbtools.cli.main import main
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.mapping import MAPPING_VERSION
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.read_ahead import lines_at_hand
from kbtools.text.question import MarkedQuestion
from tests.indexers.elastic.conftest import SmallServer

SECRET = "s3cret-and-long"
pytestmark = pytest.mark.real_cluster


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Run a command; give its exit status and what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, url: str | None = None, stdin: str | None = None) -> tuple[int, str]:
        if url:
            monkeypatch.setenv("KBTOOLS_ELASTICSEARCH_URL", url)
        done = CliRunner().invoke(main, [str(one) for one in arguments], input=stdin)
        return done.exit_code, done.output

    return call


@pytest.fixture
def on_cluster(
    run: Callable[..., tuple[int, str]], url: str, kb_name: str, sample_path: Path
) -> Callable[..., tuple[int, str]]:
    """Load the sample with the command; give a way to run commands on it."""

    def call(command: str, *arguments: str | Path, stdin: str | None = None) -> tuple[int, str]:
        return run(command, "--kb", kb_name, *arguments, "--elasticsearch", url=url, stdin=stdin)

    status, output = call("load", sample_path, "--replicas", "0")
    assert status == 0, output
    return call


def test_both_homes_print_the_same_json(
    on_cluster: Callable[..., tuple[int, str]], run: Callable[..., tuple[int, str]], sample_path: Path, examples: Path
) -> None:
    questions = (examples / "questions.txt").read_text(encoding="utf-8")
    theirs = run("query", "--kb", sample_path, "--json", "--no-timing", "-", stdin=questions)
    ours = on_cluster("query", "--json", "--no-timing", "-", stdin=questions)
    assert ours == theirs
    assert len(theirs[1].splitlines()) == len(questions.splitlines())


def test_dense_pruning_keeps_the_same_entities_at_both_homes(
    on_cluster: Callable[..., tuple[int, str]],
    run: Callable[..., tuple[int, str]],
    url: str,
    kb_name: str,
    sample_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KBTOOLS_TRUST_PLUGINS", "1")
    folder, models = tmp_path / "sample.kb", ("--models", tmp_path / "models")
    shutil.copytree(sample_path, folder)
    (tmp_path / "models").mkdir()
    counted = ("--subject", f"{__name__}:Counts", *models)
    asked = ("--pruning", "dense", "--json", "--no-timing", *models, "who is it")
    status, output = on_cluster("query", *asked)
    assert (status, f"{kb_name}: has no entity vectors" in output) == (1, True)
    assert run("index", "vectors", "--kb", kb_name, *counted, "--elasticsearch", url=url)[0] == 0
    assert run("index", "vectors", "--kb", folder, *counted)[0] == 0
    ours, theirs = (
        json.loads(output) for _, output in (on_cluster("query", *asked), run("query", "--kb", folder, *asked))
    )
    assert {one["subject"] for one in ours["candidates"]} == {one["subject"] for one in theirs["candidates"]}
    assert ours["candidates"][0]["rung"] == "near"


def test_a_load_says_that_counts_stay(
    run: Callable[..., tuple[int, str]], url: str, kb_name: str, tmp_path: Path
) -> None:
    facts, names = [("1", "r", "2")], [("1", "a"), ("2", "a")]
    for folder, counts in (("counted", [("a", "2", 3)]), ("plain", [])):
        kbtools.index(facts=facts, names=names, counts=counts, out=tmp_path / folder).close()

    counted = run("load", tmp_path / "counted", "--kb", kb_name, "--replicas", "0", url=url)
    plain = run("load", tmp_path / "plain", "--kb", kb_name, "--replicas", "0", "--force", url=url)

    assert [status for status, _ in (counted, plain)] == [0, 0]
    assert ["counts are not loaded" in output for _, output in (counted, plain)] == [True, False]


class Counts:
    """A subject scorer whose vectors count facts and types."""

    dim = 2

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    def score(self, questions: Sequence[MarkedQuestion], *, which: np.ndarray, subjects: EntityRows) -> np.ndarray:
        return np.zeros(len(subjects))

    def embed_questions(self, questions: Sequence[MarkedQuestion]) -> np.ndarray:
        return np.array([[1.0, 0.37]] * len(questions), dtype=np.float32)

    def embed_subjects(self, subjects: EntityRows) -> np.ndarray:
        types = np.diff(self.kb.types_of(subjects).starts)
        return np.stack([self.kb.fact_counts(subjects) + 0.01 * subjects, types], axis=1).astype(np.float32)


def test_a_table_is_the_same_too(
    on_cluster: Callable[..., tuple[int, str]], run: Callable[..., tuple[int, str]], sample_path: Path
) -> None:
    question = "who created the character harry potter"
    assert on_cluster("query", "--explain", question) == run("query", "--kb", sample_path, "--explain", question)


def test_files_are_loaded_through_a_folder_that_stays_or_goes(
    run: Callable[..., tuple[int, str]], url: str, kb_name: str, examples: Path, tmp_path: Path
) -> None:
    files = [part for kind in ("facts", "names", "types") for part in (f"--{kind}", examples / f"sample.{kind}.txt")]
    status, output = run("index", *files, "--elasticsearch", "--kb", kb_name, url=url)
    assert (status, list(tmp_path.iterdir())) == (0, [])
    assert "version 1, 1,247 documents" in output
    status, output = run("index", *files, "--elasticsearch", "--kb", kb_name, "--out", "kept.kb")
    assert status == 0
    assert "already has this content as version 1" in output
    assert (tmp_path / "kept.kb").is_dir()


def test_info_tells_counts_shards_bytes_mapping_and_state(
    on_cluster: Callable[..., tuple[int, str]], kb_name: str
) -> None:
    status, output = on_cluster("info")
    assert status == 0
    for told in (f"current, mapping version {MAPPING_VERSION}", "1 shards, 0 replicas", "509 documents", "facts"):
        assert told in output
    status, output = on_cluster("info", "--json")
    record = json.loads(output)
    assert record["versions"][0]["state"] == "current"
    assert record["manifest"]["counts"]["facts"]["unique"] == 534


def test_copies_that_are_still_to_be_made_are_told(
    run: Callable[..., tuple[int, str]], cluster: Cluster, kb_name: str, url: str, sample_path: Path
) -> None:
    nodes = cluster.ask("GET", "/_cluster/health", to="count")["number_of_data_nodes"]
    status, output = run("load", sample_path, "--kb", kb_name, "--replicas", nodes, "--quiet", url=url)
    assert (status, output.count("\n")) == (0, 1)
    assert output.endswith("; 2 copies of shards are still to be made\n")
    status, output = run("info", "--kb", kb_name, "--elasticsearch", url=url)
    assert f"yellow, 509 documents, 1 shards, {nodes} replicas (1 copies still to be made)" in output
    assert run("query", "--kb", kb_name, "who wrote it", "--elasticsearch", url=url)[0] == 0


def test_an_old_version_comes_back_and_all_of_it_goes(
    on_cluster: Callable[..., tuple[int, str]], sample_path: Path, kb_name: str
) -> None:
    on_cluster("load", sample_path, "--force", "--replicas", "0")
    assert on_cluster("rollback") == (
        0,
        f"{kb_name} is version 1 again; kbtools remove --version deletes the newer one\n",
    )
    assert on_cluster("remove", "--version", "2")[0] == 0
    status, output = on_cluster("remove", stdin="n\n")
    assert (status, "deleted" in output) == (1, False)
    assert on_cluster("remove", "--yes")[1].count("deleted") == 2
    status, output = on_cluster("query", "who wrote it")
    assert status == 1
    assert f"no knowledge base {kb_name!r}" in output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["query", "--kb", "x", "--elasticsearch", "who wrote it"],
            "--elasticsearch takes a URL, found 'who wrote it'",
        ),
        (
            ["query", "--kb", "x", "q", "--elasticsearch", f"http://a:{SECRET}@h:1"],
            "passwords are not accepted on the command line",
        ),
        (["index", "--elasticsearch"], "--elasticsearch needs --kb NAME"),
        (["index", "--kb", "x"], "--kb needs --elasticsearch"),
        (["index", "--facts", "f"], "give --out FOLDER, or --elasticsearch and --kb NAME"),
        (
            ["index", "--elasticsearch", "--kb", "x"],
            "give at least one file of facts, names, RDF, a table",
        ),
        (["load", "--kb", "x"], "Missing argument 'FOLDER'"),
        (["load", "a"], "Missing option '--kb'"),
        (["remove", "--kb", "x"], "give --elasticsearch"),
        (["remove", "--kb", "x", "--version", "1", "--unfinished", "--elasticsearch"], "not both"),
        (["rollback", "--kb", "x"], "give --elasticsearch"),
        (["info"], "give the folder of a knowledge base, or --elasticsearch"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    run: Callable[..., tuple[int, str]], arguments: list[str], says: str
) -> None:
    status, output = run(*arguments)
    assert (status, says in output) == (2, True), output
    assert SECRET not in output


@pytest.mark.parametrize("name", ["My KB", "_kb", "-kb", "+kb", "..", "k" * 256, "kb*", "Films"])
def test_a_name_that_no_cluster_takes_is_refused_before_the_build(
    run: Callable[..., tuple[int, str]], examples: Path, tmp_path: Path, name: str
) -> None:
    facts, nowhere = examples / "sample.facts.txt", "--elasticsearch=http://127.0.0.1:1"
    status, output = run("index", "--facts", facts, "--out", "built.kb", f"--kb={name}", nowhere)
    assert (status, output.count("\n")) == (1, 1)
    assert output.startswith(f"Error: {name!r}: not a valid name for a knowledge base on Elasticsearch")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_something_else_has_is_refused_before_the_build(
    run: Callable[..., tuple[int, str]], cluster: Cluster, kb_name: str, url: str, examples: Path, tmp_path: Path
) -> None:
    cluster.ask("PUT", f"/{kb_name}", to="make an index")
    facts = examples / "sample.facts.txt"
    status, output = run("index", "--facts", facts, "--out", "built.kb", "--kb", kb_name, "--elasticsearch", url=url)
    cluster.ask("DELETE", f"/{kb_name}", to="remove it")
    assert (status, "which kbtools did not make" in output) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_what_a_load_sets_is_set_on_the_cluster(
    run: Callable[..., tuple[int, str]], cluster: Cluster, kb_name: str, url: str, sample_path: Path
) -> None:
    chosen = ("--shards", "2", "--replicas", "0", "--refresh", "-1", "--patience", "20")
    status, output = run("load", sample_path, "--kb", kb_name, *chosen, url=url)
    assert status == 0, output
    told = cluster.ask("GET", f"/{kb_name}/_settings", to="look", params={"flat_settings": "true"})
    names = ("number_of_shards", "number_of_replicas", "refresh_interval", "codec")
    settings = {tuple(index["settings"][f"index.{name}"] for name in names) for index in told.values()}
    assert settings == {("2", "0", "-1", "default")}


def test_a_compressed_load_answers_as_its_folder_does(
    run: Callable[..., tuple[int, str]], cluster: Cluster, kb_name: str, url: str, sample_path: Path
) -> None:
    status, output = run("load", sample_path, "--kb", kb_name, "--codec", "legacy_best_compression", url=url)
    assert status == 0, output
    asked = ("query", "--json", "who wrote it", "--kb")
    loaded, folder = (json.loads(run(*asked, *home)[1]) for home in ([kb_name, "--elasticsearch"], [sample_path]))
    assert loaded | {"milliseconds": 0} == folder | {"milliseconds": 0}
    told = cluster.ask("GET", f"/{kb_name}/_settings", to="look", params={"flat_settings": "true"})
    assert [index["settings"]["index.codec"] for index in told.values()] == ["legacy_best_compression"] * 2


def test_the_segments_of_a_load_are_merged(
    run: Callable[..., tuple[int, str]], proxy: Callable[..., SmallServer], kb_name: str, sample_path: Path
) -> None:
    merges: list[str] = []

    def watch(number: int, method: str, path: str) -> None:
        merges.append(path) if "_forcemerge" in path else None

    server = proxy(watch)
    status, output = run("load", sample_path, "--kb", kb_name, "--replicas", "0", "--segments", "3", url=server.url)
    assert status == 0, output
    assert len(merges) == 1
    assert "max_num_segments=3" in merges[0]


def test_a_cluster_that_is_not_there_is_one_line(run: Callable[..., tuple[int, str]]) -> None:
    status, output = run("info", "--elasticsearch", "http://127.0.0.1:1")
    assert status == 1
    assert output.startswith("Error: http://127.0.0.1:1: not reachable")
    assert output.count("\n") == 1


def test_lines_that_wait_are_taken_together_and_a_dialogue_goes_line_by_line() -> None:
    asked = threading.Semaphore(0)

    def dialogue() -> Iterator[str]:
        for line in "abc":
            asked.acquire(timeout=10)
            yield line

    replies = lines_at_hand(dialogue())
    seen = []
    for _ in range(3):
        asked.release()
        seen.append(next(replies))
    assert seen == [["a"], ["b"], ["c"]]
    assert [line for some in lines_at_hand(iter("abcde" * 40)) for line in some] == list("abcde" * 40)
    assert max(map(len, lines_at_hand(iter("abcde" * 40)))) <= 64


def test_an_error_of_the_stream_comes_through() -> None:
    stream = io.StringIO("a\n")
    stream.close()
    with pytest.raises(ValueError, match="closed"):
        list(lines_at_hand(stream))
