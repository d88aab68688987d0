"""One knowledge base, many readers: threads, processes, other users, and a folder that is replaced under them."""

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kbtools.answering.answerer import Answerer, open_kb
from kbtools.answering.results import Candidate
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.folder.column_files import read_column
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.readers.reading import ReadOptions, Source

QUESTIONS = (
    "who created hary poter",
    "pirates of the carribean director",
    "who wrote it",
    "where was sasha vujačić born",
    "?",
)

IN_PROCESSES = """
import multiprocessing, sys
import kbtools

def ask(path):
    kb = kbtools.open(path)
    return [kb.query(question).candidates for question in sys.argv[3:]]

def main():
    kept = kbtools.open(sys.argv[2])
    here = ask(sys.argv[2])
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(all(there == here for there in pool.map(ask, [sys.argv[2]] * 4)))
    print([kept.query(question).candidates for question in sys.argv[3:]] == here)

if __name__ == "__main__":
    main()
"""

AS_NOBODY = """
import os, sys
import kbtools

kbtools.open(sys.argv[1]).query("who created hary poter")
os.setgroups([])
os.setegid(65534)
os.seteuid(65534)
print(kbtools.open(sys.argv[2]).query("who created hary poter").candidates[0].subject)
"""


@pytest.fixture
def sample_sources(examples: Path) -> list[Source]:
    return [Source(examples / f"sample.{kind}.txt", kind) for kind in ("facts", "names", "types")]


@pytest.fixture
def other_sources(tmp_path: Path) -> list[Source]:
    """Write a knowledge base that shares nothing with the sample."""
    (tmp_path / "f.tsv").write_text("subject\trelation\tobject\na\tr\tb\n")
    (tmp_path / "n.tsv").write_text("id\tname\na\tHarry Patter\n")
    return [Source(tmp_path / "f.tsv", "facts"), Source(tmp_path / "n.tsv", "names")]


def put(sources: list[Source], out: Path) -> None:
    build(sources, out, options=ReadOptions(), watch=BuildProgress())


def answers(kb: Answerer) -> list[tuple[Candidate, ...]]:
    return [kb.query(question).candidates for question in QUESTIONS]


def test_who_has_it_open_is_answered_as_before_when_it_is_replaced(
    sample_path: Path, sample_sources: list[Source], other_sources: list[Source], tmp_path: Path
) -> None:
    put(sample_sources, tmp_path / "x.kb")
    old = open_kb(tmp_path / "x.kb")
    put(other_sources, tmp_path / "x.kb")

    new = open_kb(tmp_path / "x.kb")

    assert answers(old) == answers(open_kb(sample_path))
    assert new.query("hary patter").candidates[0].subject == "a"


def test_it_can_be_opened_at_any_moment_of_being_replaced(
    sample_sources: list[Source], other_sources: list[Source], tmp_path: Path
) -> None:
    put(sample_sources, tmp_path / "x.kb")
    stop = threading.Event()
    found = set()

    def open_again_and_again() -> None:
        while not stop.is_set():
            kb = open_kb(tmp_path / "x.kb")
            found.add((kb.query("who created hary poter").candidates[0].subject, len(kb.kb.relations)))

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(open_again_and_again) for _ in range(2)]
        put(other_sources, tmp_path / "x.kb")
        put(sample_sources, tmp_path / "x.kb")
        stop.set()
    assert [reader.result() for reader in readers] == [None, None]
    assert found <= {("m.078ffw", 45), ("a", 1)}


def test_opened_twice_it_answers_twice(sample_path: Path) -> None:
    one, two = open_kb(sample_path), open_kb(str(sample_path))
    assert answers(one) == answers(two)

    del one
    assert answers(two) == answers(open_kb(sample_path))


@pytest.mark.parametrize("shared", [True, False], ids=["one opening", "an opening each"])
def test_threads_are_answered_as_one_is(sample_path: Path, shared: bool) -> None:
    kb = open_kb(sample_path)
    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda _: answers(kb if shared else open_kb(sample_path)), range(40)))

    assert given == [answers(kb)] * 40


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_are_answered_as_one_is(sample_path: Path, tmp_path: Path, method: str) -> None:
    (tmp_path / "ask.py").write_text(IN_PROCESSES)
    command: list[str | Path] = [sys.executable, tmp_path / "ask.py", method, sample_path, *QUESTIONS]

    result = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (result.stdout, result.stderr) == ("True\nTrue\n", "")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Make a folder that every user can reach."""
    if os.geteuid():
        pytest.skip("becoming another user needs root: sudo pytest")
    with tempfile.TemporaryDirectory(prefix="kbtools-test-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def as_nobody(sample_path: Path, path: Path) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, "-c", AS_NOBODY, sample_path, path]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_another_user_may_ask_without_the_right_to_write(
    open_folder: Path, sample_path: Path, sample_sources: list[Source]
) -> None:
    put(sample_sources, open_folder / "x.kb")
    result = as_nobody(sample_path, open_folder / "x.kb")

    assert (result.stdout, result.stderr) == ("m.078ffw\n", "")


def test_who_may_not_read_it_is_told_so(open_folder: Path, sample_path: Path, sample_sources: list[Source]) -> None:
    put(sample_sources, open_folder / "x.kb")
    os.chmod(open_folder / "x.kb", 0o700)

    result = as_nobody(sample_path, open_folder / "x.kb")

    assert result.stderr.splitlines()[-1].endswith("x.kb: cannot be opened (Permission denied); check its permissions")


def test_sixty_open_knowledge_bases_fit_into_the_usual_limit_of_descriptors(sample_path: Path, tmp_path: Path) -> None:
    folders = [shutil.copytree(sample_path, tmp_path / f"{number}.kb") for number in range(3)]
    before = len(os.listdir("/proc/self/fd"))

    opened = [EmbeddedKB(folder) for folder in folders]

    assert len(opened) == 3
    assert (len(os.listdir("/proc/self/fd")) - before) / 3 * 60 < 1_024 - 200


def test_large_files_take_a_descriptor_each(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    (tmp_path / "small").write_bytes(bytes(1_000))
    (tmp_path / "large").write_bytes(bytes(1_000_000))

    columns = [read_column(tmp_path / name, "u1") for name in ("small", "large")]

    assert [len(column) for column in columns] == [1_000, 1_000_000]
    assert len(os.listdir("/proc/self/fd")) - before == 1


def test_an_answerer_is_pickled_by_path(sample_path: Path) -> None:
    answerer = open_kb(sample_path)
    expected = answers(answerer)

    again = pickle.loads(pickle.dumps(answerer))

    assert answers(again) == expected
    assert len(pickle.dumps(answerer.kb)) < 1_000


REFUSED = """
import resource, sys
import numpy, tempfile
from kbtools.cli.main import main
resource.setrlimit({limit})
main(["query", "--kb", sys.argv[1], "who created hary poter"])
"""


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        ("resource.RLIMIT_NOFILE, (3, 3)", "Too many open files"),
        ("resource.RLIMIT_NOFILE, (5, 5)", "Too many open files"),
    ],
)
def test_what_the_system_refuses_is_not_called_damage(sample_path: Path, limit: str, sentence: str) -> None:
    command = [sys.executable, "-c", REFUSED.format(limit=limit), str(sample_path)]

    result = subprocess.run(command, capture_output=True, text=True, check=False)

    assert "damaged" not in result.stderr
    assert "index again" not in result.stderr
    assert sentence in result.stderr


def test_a_folder_for_temporary_files_without_room_is_named(sample_path: Path, tmp_path: Path) -> None:
    code = "import sys, tempfile; tempfile.tempdir = sys.argv[2]; import kbtools; kbtools.open(sys.argv[1])"
    (tmp_path / "file").touch()

    result = subprocess.run(
        [sys.executable, "-c", code, sample_path, tmp_path / "file"], capture_output=True, text=True, check=False
    )

    assert "set TMPDIR to a folder with more space" in result.stderr
    assert "index again" not in result.stderr


def test_a_build_without_address_space_is_refused_before_a_library_ends_it(examples: Path, tmp_path: Path) -> None:
    limit = "resource.setrlimit(resource.RLIMIT_AS, (1_900_000_000, 1_900_000_000))"
    code = f"import resource; {limit}; from kbtools.cli.main import main; main()"
    sources = ["--facts", examples / "sample.facts.txt", "--names", examples / "sample.names.txt"]
    command = [sys.executable, "-c", code, "index", *map(str, sources), f"--out={tmp_path / 'x.kb'}"]

    result = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: a build needs 2,000,000,000 bytes of address space")
    assert not list(tmp_path.iterdir())
