"""Other users and small machines: permissions of what is written, folders that may only be read, limits of memory."""

import errno
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kbtools.answering.answerer import open_kb
from kbtools.cli.main import main
from tests.conftest import EXAMPLES

LINE = ["index", *(f"--{kind}={EXAMPLES / f'sample.{kind}.txt'}" for kind in ("facts", "names", "types")), "--quiet"]
NOBODY, FAILED = 65_534, 99
CALL = "from kbtools.cli.main import main; main()"


def run(*line: str) -> None:
    done = CliRunner().invoke(main, [*line])
    assert done.exit_code == 0, done.output


def write_changes(folder: Path) -> str:
    (folder / "changes.jsonl").write_text('{"id": "m.new", "names": ["Quite New"]}\n')
    return str(folder / "changes.jsonl")


@pytest.mark.parametrize(
    ("mask", "file", "folder"), [(0o022, 0o644, 0o755), (0o077, 0o600, 0o700), (0o002, 0o664, 0o775)]
)
def test_what_is_written_is_as_open_as_the_umask_says(tmp_path: Path, mask: int, file: int, folder: int) -> None:
    kb, before = str(tmp_path / "x.kb"), os.umask(mask)
    try:
        run(*LINE, "--out", kb)
        run("update", "--kb", kb, "--add", write_changes(tmp_path))
    finally:
        os.umask(before)

    modes = {path: path.stat().st_mode & 0o777 for path in [Path(kb), *Path(kb).rglob("*")]}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {folder}
    assert {path: mode for path, mode in modes.items() if path.is_file() and mode != file} == {}


def as_nobody(*line: str, errors: Path) -> int:
    """Run a command in a fork of this process, whose modules are loaded, as a user who owns nothing."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = FAILED
    try:  # whatever happens, the fork must not go on as a second process of the tests
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        done = CliRunner().invoke(main, [*line])
        errors.write_text(done.stderr + repr(done.exception))
        code = done.exit_code
    finally:
        os._exit(code)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to run a command as another user")
def test_another_user_reads_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kb, home = tmp_path / "x.kb", tmp_path / "home"
    home.mkdir()
    home.chmod(0o777)
    for place in (tmp_path, *tmp_path.parents):
        place.chmod(place.stat().st_mode | 0o055)
    monkeypatch.setattr("tempfile.tempdir", str(home))
    monkeypatch.setenv("KBTOOLS_CACHE", "/nonexistent/cache")
    run(*LINE, "--out", str(kb))
    errors = home / "errors"
    update = ["update", "--kb", str(kb), "--add", write_changes(tmp_path)]
    query = ["query", str(kb), "--scorer", "lexical", "who created the character harry potter"]
    run(*query)

    assert as_nobody(*query, errors=errors) == 0, errors.read_text()
    for line in (update, [*LINE, "--out", str(kb), "--force"], ["compact", "--kb", str(kb / "none")]):
        assert as_nobody(*line, errors=errors) == 1
        assert errors.read_text().startswith("Error: ")
    assert os.listdir(home) == ["errors"]
    run("check", str(kb))


@pytest.mark.parametrize("megabytes", [300, 600, 1_000, 1_900])
@pytest.mark.parametrize("command", ["index", "update", "compact", "query"])
def test_a_limit_of_memory_ends_a_command_in_a_sentence(
    sample_path: Path, tmp_path: Path, megabytes: int, command: str
) -> None:
    lines = {
        "index": [*LINE, "--out", str(tmp_path / "x.kb")],
        "update": ["update", "--kb", str(sample_path), "--add", str(tmp_path / "none.jsonl")],
        "compact": ["compact", "--kb", str(sample_path)],
        "query": ["query", str(sample_path), "--scorer", "lexical", "who created harry potter"],
    }

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    done = subprocess.run(
        [sys.executable, "-c", CALL, *lines[command]], preexec_fn=limit, capture_output=True, text=True, check=False
    )

    assert done.returncode in (0, 1), done.stderr
    assert done.returncode == 0 or "Error: " in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_an_update_beside_compact_is_done_or_told(tmp_path: Path) -> None:
    kb = tmp_path / "x.kb"
    run(*LINE, "--out", str(kb))
    updates = []
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_text(f'{{"id": "m.new{number}", "names": ["Quite New {number}"]}}\n')
        updates.append(["update", "--kb", str(kb), "--add", str(tmp_path / f"{number}.jsonl")])
    run(*updates[0])

    running = [
        subprocess.Popen([sys.executable, "-c", CALL, *line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in (["compact", "--kb", str(kb)], *updates[1:])
    ]
    errors = [process.communicate()[1] for process in running]

    codes = [process.returncode for process in running]
    told = ["another process is building or updating it" in text for text in errors]
    assert told == [code == 1 for code in codes]
    assert 0 in codes
    run("check", str(kb))
    with open_kb(kb) as answerer:
        present = [bool(answerer.lookup(f"quite new {number}").matches) for number in range(3)]
    assert present == [True, *(code == 0 for code in codes[1:])]


@pytest.mark.parametrize("reason", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_read_and_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    kb, models, run_folder = (str(tmp_path / name) for name in ("x.kb", "models", "run"))
    gold = str(EXAMPLES / "sample.valid.txt")
    run(*LINE, "--out", kb)
    before = contents(Path(kb))

    def flock(*_: object) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr("fcntl.flock", flock)
    run("query", kb, "--scorer", "lexical", "who created harry potter")
    run("check", kb)
    for line in (
        [*LINE, "--out", kb, "--force"],
        ["update", "--kb", kb, "--add", write_changes(tmp_path)],
        ["train", "tagger", "--tagger", "crf", "--kb", kb, "--train", gold, "--valid", gold, "--out", models],
        ["compare", "--kb", kb, "--questions", gold, "--scorer", "lexical", "--out", run_folder, "--quiet"],
    ):
        done = CliRunner().invoke(main, line)
        assert done.exit_code == 1
        assert re.search(r"^Error: .* its file system does not lock files", done.stderr, flags=re.MULTILINE)
    assert contents(Path(kb)) == before


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
