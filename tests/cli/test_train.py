"""The command trains, says how it went, and turns mistakes into one sentence."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from kbtools.cli.main import main
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions, Source

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

from kbtools.ranking.models import TAGGER
from kbtools.scorers.fitting.profiles import PLANS

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


@pytest.mark.parametrize("profile", ["best", "fast", "paper"])
def test_a_profile_is_trained_in_one_go(
    sample_path: Path,
    examples: Path,
    small_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    profile: str,
) -> None:
    monkeypatch.setenv("KBTOOLS_ENCODER", str(small_encoder))
    config = tmp_path / "config.toml"
    config.write_text('words = "random"\ndim = 8\nwords_dim = 8\nhidden = 8\nepochs = 1\nnegatives = 8\n')
    files = ("--train", str(examples / "sample.train.txt"), "--valid", str(examples / "sample.valid.txt"))
    where = ("--kb", str(sample_path), "--out", str(tmp_path / "models"))
    run = ["train", *where, *files, "--profile", profile, "--config", str(config)]

    trained = CliRunner().invoke(main, run)
    again = CliRunner().invoke(main, run)
    summed = CliRunner().invoke(main, [*run, "--ranker", "weighted-sum"])
    asked = trained.stdout.splitlines()[-1].removeprefix("next: kbtools ").removesuffix(" QUESTION").split(" ")
    plan = PLANS[profile]
    # By name: after one epoch the untrained system may be the better one.
    parts = (
        "--pruning",
        plan.pruning,
        "--scorer",
        ",".join(plan.scorers()),
        "--subject",
        plan.ranked_by or "popularity",
    )
    answered = CliRunner().invoke(main, [*asked, *parts, "--json", "who wrote dune"])

    assert trained.exit_code == 0, trained.output
    assert trained.stdout.count(": trained, ") == len(plan.models())
    assert again.stdout.count(": already trained, ") == trained.stdout.count(": trained, ")
    assert summed.exit_code == 0, summed.output
    assert ("untrained" in trained.stdout) == (profile != "paper")
    assert answered.exit_code in (0, 3), answered.output  # 3 is doubt
    record = json.loads(answered.stdout)
    assert [record[name] for name in ("pruning", "tagger", "scorer", "subject_scorer")] == [
        plan.pruning, dict(plan.models()).get(TAGGER), ",".join(plan.scorers()), plan.ranked_by,
    ]  # fmt: skip


def test_without_files_or_a_part_there_is_nothing_to_train() -> None:
    failed = CliRunner().invoke(main, ["train", "--profile", "best"])

    assert failed.exit_code == 2
    assert "Missing option '--train'" in failed.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(["--config", "none.toml"], "none.toml: cannot be read as TOML", id="config"),
        pytest.param(["--epochs", "0"], "epochs and batch must be at least 1", id="range"),
        pytest.param(["--device", "cuda:99", *SMALL], "device 'cuda:99' is not available", id="device"),
        pytest.param(["--scorer", "bert", *SMALL], "no relation scorer 'bert'", id="scorer"),
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


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("train relation --kb KB --train QUESTIONS --valid QUESTIONS --out OUT", id="relation"),
        pytest.param("train --kb KB --train QUESTIONS --valid QUESTIONS --out OUT", id="profile"),
        pytest.param("train transe --kb KB --out OUT", id="transe"),
        pytest.param("similar --kb KB --models OUT france", id="similar"),
        pytest.param("index vectors --kb KB --models OUT", id="vectors"),
        pytest.param("query --kb KB --models OUT --scorer bigru --device cuda dune", id="query"),
        pytest.param("plugins check bigru", id="check"),
    ],
)
def test_without_torch_a_command_says_how_to_get_it(
    sample_path: Path, examples: Path, tmp_path: Path, words: str
) -> None:
    (tmp_path / "models").mkdir()
    places = {"KB": str(sample_path), "QUESTIONS": str(examples / "sample.valid.txt"), "OUT": str(tmp_path / "models")}
    arguments = [places.get(word, word) for word in words.split()]
    hide = "import sys; sys.modules['torch'] = None; from kbtools.cli.main import main; main()"

    failed = subprocess.run([sys.executable, "-c", hide, *arguments], capture_output=True, text=True)

    assert failed.returncode == 1
    assert re.fullmatch(r"Error: .*needs torch; install it with pip install .*\[train\]'\n", failed.stderr), (
        failed.stderr
    )


def test_a_knowledge_base_without_types_has_no_subject_scorer_to_train(
    sample_path: Path, examples: Path, tmp_path: Path
) -> None:
    sources = [Source(examples / f"sample.{kind}.txt", kind) for kind in ("facts", "names")]
    build(sources, tmp_path / "untyped.kb", options=ReadOptions(), watch=BuildProgress())
    config = tmp_path / "config.toml"
    config.write_text('words = "random"\ndim = 8\nwords_dim = 8\nhidden = 8\nepochs = 1\nnegatives = 8\n')
    files = ["--train", str(examples / "sample.train.txt"), "--valid", str(examples / "sample.valid.txt")]
    where = ["--kb", str(tmp_path / "untyped.kb"), "--out", str(tmp_path / "models"), "--config", str(config)]

    part = CliRunner().invoke(main, ["train", "subject", *where, *files])
    profile = CliRunner().invoke(main, ["train", *where, *files, "--profile", "paper"])

    assert part.exit_code == 1
    assert "the knowledge base has no types" in part.stderr
    assert profile.exit_code == 0, profile.output
    assert "type-vector: left out, because the knowledge base has no types" in profile.stderr
    assert "--subject" not in profile.stdout.splitlines()[-1]


def test_each_part_is_trained_alone_and_weights_are_chosen(sample_path: Path, examples: Path, tmp_path: Path) -> None:
    models, kb = ("--out", str(tmp_path / "models")), ("--kb", str(sample_path))
    files = ("--train", str(examples / "sample.train.txt"), "--valid", str(examples / "sample.valid.txt"))
    tiny = ("--words", "random", "--dim", "8", "--words-dim", "8", "--hidden", "8", "--epochs", "1", "--batch", "16")
    weighed = ("--scorer", "lexical", "--subject", "transe", "--limit", "20")
    runs = [
        ["train", "tagger", "--tagger", "bigru-crf,crf", *kb, *files, *models, *tiny],
        ["train", "transe", *kb, *models, "--dim", "4", "--epochs", "1"],
        ["train", "subject", "--subject", "type-vector,transe", *kb, *files, *models, *tiny, "--negatives", "8"],
        ["train", "ranking", *kb, "--models", str(tmp_path / "models"), *files[2:], *weighed],
    ]

    done = [CliRunner().invoke(main, run) for run in runs]

    assert [one.exit_code for one in done] == [0, 0, 0, 0], [one.output for one in done]
    assert [one.stdout.count(": trained, ") for one in done[:3]] == [2, 1, 2]
    assert done[1].stderr.startswith("transe:\n")
    assert "of 20 questions right; relation " in done[3].stdout


@pytest.mark.usefixtures("trusted_plugins")
def test_scorers_are_put_off_until_a_ranker_is_in_doubt(sample_path: Path, examples: Path, tmp_path: Path) -> None:
    ranker, reading = "tests.kbtools.ranking.test_learned:ByWords", "tests.kbtools.ranking.test_cascade:Reading"
    kb, names = ("--kb", str(sample_path)), ("--pruning", "n-gram", "--scorer", f"lexical,{reading}")
    where = ("--models", str(tmp_path))
    ranking = ["train", "ranking", *kb, *where, "--valid", str(examples / "sample.valid.txt"), *names]

    trained = CliRunner().invoke(main, [*ranking, "--ranker", ranker, "--in-doubt", reading])
    asked = CliRunner().invoke(main, ["query", *kb, *where, *names, "--json", "who wrote dune"])
    summed = CliRunner().invoke(main, [*ranking, "--ranker", "weighted-sum", "--in-doubt", reading])
    unknown = CliRunner().invoke(main, [*ranking, "--ranker", ranker, "--in-doubt", "encoder"])

    assert trained.exit_code == 0, trained.output
    assert re.search(r"\d% of them are in doubt: the first by lexical is less sure than ", trained.stdout)
    assert json.loads(asked.stdout)["scored_by"] in ("lexical", f"lexical,{reading}")
    assert (summed.exit_code, unknown.exit_code) == (2, 1)
    assert "--in-doubt needs a learned ranker" in summed.stderr
    assert unknown.stderr.startswith("Error: 'encoder' is not one of the scorers")


def test_vectors_trained_elsewhere_are_taken_over_and_searched(sample_path: Path, tmp_path: Path) -> None:
    ids = ["m.078ffw", "m.0g_tb", "no.such.entity"]
    np.save(tmp_path / "vectors.npy", np.array([[3.0, 4.0], [3.0, 3.9], [0.0, 1.0]], dtype=np.float32))
    (tmp_path / "ids.txt").write_text("\n".join(ids) + "\n")
    where = ["--kb", str(sample_path)]
    files = ["--vectors", str(tmp_path / "vectors.npy"), "--ids", str(tmp_path / "ids.txt")]

    taken = CliRunner().invoke(main, ["train", "transe", *where, "--out", str(tmp_path / "models"), *files])
    near = CliRunner().invoke(main, ["similar", *where, "--models", str(tmp_path / "models"), "--top", "1", ids[0]])

    assert taken.exit_code == 0, taken.output
    assert "2 of 3 vectors belong to entities" in taken.stdout
    assert near.stdout.split()[:2] == ["0.9999", "m.0g_tb"], near.output
