"""Whether the command trains, says how it went, and turns mistakes into one sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kbtools.cli.main import main

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[cpu]'")

SMALL = ("--words", "random", "--dim", "16", "--epochs", "2", "--batch", "16")


@pytest.fixture
def train(sample_path: Path, examples: Path, tmp_path: Path) -> Callable[..., Result]:
    """Run kbtools train relation on the sample."""

    def run(*options: str) -> Result:
        files = ("--train", str(examples / "sample.train.txt"), "--valid", str(examples / "sample.valid.txt"))
        where = ("--kb", str(sample_path), "--out", str(tmp_path / "models"))
        return CliRunner().invoke(main, ["train", "relation", *where, *files, *options])

    return run


def test_scorers_are_trained_and_queried(train: Callable[..., Result], sample_path: Path, tmp_path: Path) -> None:
    trained = train("--scorer", "embed-avg,embed-avg+", *SMALL)
    options = ["--kb", str(sample_path), "--models", str(tmp_path / "models"), "--scorer", "embed-avg,embed-avg+"]
    answered = CliRunner().invoke(main, ["query", *options, "who wrote dune"])

    assert trained.exit_code == 0, trained.output
    assert trained.stdout.count(": trained, ") == 2
    assert trained.stderr.count("  epoch 2: loss ") == 2
    assert answered.exit_code == 0, answered.output


def test_a_second_run_has_nothing_to_do(train: Callable[..., Result]) -> None:
    train("--scorer", "embed-avg", *SMALL)

    again = train("--scorer", "embed-avg", *SMALL)

    assert "already trained" in again.stdout
    assert "epoch 1:" not in again.stderr


def test_settings_come_from_a_file_and_options_outrank_it(train: Callable[..., Result], tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('words = "random"\ndim = 8\nepochs = 9\n')

    trained = train("--scorer", "embed-avg", "--config", str(config), "--epochs", "1")

    assert trained.exit_code == 0, trained.output
    assert trained.stderr.count("  epoch ") == 1


@pytest.mark.parametrize("profile", ["best", "paper"])
def test_a_profile_is_trained_in_one_go(sample_path: Path, examples: Path, tmp_path: Path, profile: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text('words = "random"\ndim = 8\nwords_dim = 8\nhidden = 8\nepochs = 1\nnegatives = 8\n')
    files = ("--train", str(examples / "sample.train.txt"), "--valid", str(examples / "sample.valid.txt"))
    where = ("--kb", str(sample_path), "--out", str(tmp_path / "models"))
    run = ["train", *where, *files, "--profile", profile, "--config", str(config)]

    trained = CliRunner().invoke(main, run)
    again = CliRunner().invoke(main, run)
    asked = trained.stdout.splitlines()[-1].removeprefix("now ask: kbtools ").removesuffix(" QUESTION").split(" ")
    answered = CliRunner().invoke(main, [*asked, "who wrote dune"])

    assert trained.exit_code == 0, trained.output
    assert trained.stdout.count(": trained, ") >= 3
    assert again.stdout.count(": already trained, ") == trained.stdout.count(": trained, ")
    assert answered.exit_code == 0, answered.output


def test_without_files_or_a_part_there_is_nothing_to_train() -> None:
    failed = CliRunner().invoke(main, ["train", "--profile", "best"])

    assert failed.exit_code == 2
    assert "give --kb, --train, --valid and --out, or the name of a part" in failed.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(["--config", "none.toml"], "none.toml: cannot be read as TOML", id="config"),
        pytest.param(["--epochs", "0"], "epochs and batch must be at least 1", id="range"),
        pytest.param(["--device", "cuda:99", *SMALL], "device 'cuda:99' is not there", id="device"),
        pytest.param(["--scorer", "bert", *SMALL], "no plugin 'bert'", id="scorer"),
        pytest.param(["--words", "none.txt"], "none.txt: no such file of word vectors", id="words"),
    ],
)
def test_a_mistake_is_one_sentence(
    train: Callable[..., Result], tmp_path: Path, options: list[str], message: str
) -> None:
    failed = train(*options)

    assert failed.exit_code == 1
    assert message in failed.stderr
    assert not (tmp_path / "models" / "relation").exists()


def test_plugins_are_listed_and_checked() -> None:
    listed = CliRunner().invoke(main, ["plugins", "--json"])
    checked = CliRunner().invoke(main, ["plugins", "check", "lexical"])

    assert '"name": "bigru"' in listed.stdout
    assert checked.stdout.count("ok: ") == 7
