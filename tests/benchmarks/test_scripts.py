"""Every script of the benchmarks can be imported, and the ones with options describe them."""

import importlib
import sys
from pathlib import Path

import pytest
import serving

SCRIPTS = sorted(path.stem for path in Path(serving.__file__).parent.glob("*.py"))


@pytest.fixture(params=SCRIPTS)
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a script whose libraries are installed."""
    name: str = request.param
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] in {"kbtools", *SCRIPTS}:
            raise
        pytest.skip(f"needs {error.name}: pip install -e '.[dev,train,bench]'")
    return name


def test_a_script_describes_its_options(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(script)
    if "ArgumentParser" not in Path(str(module.__file__)).read_text(encoding="utf-8"):
        return  # a module that scripts share, or a script without options

    with pytest.raises(SystemExit) as ended:
        module.main()

    assert ended.value.code == 0
    assert f"usage: {script}.py" in capsys.readouterr().out


def test_a_benchmark_starts_the_server_inside_the_clone(
    sample_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("uvicorn", reason="a server needs the extra: pip install 'kbtools[serve]'")
    clone = tmp_path / "clone"
    (clone / "kbtools").mkdir(parents=True)
    (clone / "kbtools" / "__init__.py").touch()
    monkeypatch.chdir(clone)

    with serving.served(sample_path, workers=1) as (port, pid):
        assert port > 0
        assert serving.cpu_seconds(pid) >= 0


SMALL = {
    "phases": "--facts {sample}.facts.txt --names {sample}.names.txt --types {sample}.types.txt --out {out}/phases.kb",
    "scale": "--facts {sample}.facts.txt --names {sample}.names.txt --types {sample}.types.txt --out {out}/scale.kb "
    "--questions {sample}.valid.txt --limit 3",
    "question_stages": "--kb {kb} --questions {sample}.valid.txt --limit 30",
    "languages": "--scorer lexical",
    "wikidata_dump": "--entities 20 --shape short --out {out}/dump.json.gz",
}
"""The options of a script for a run of seconds over the sample."""


@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_runs_to_its_end_over_the_sample(
    name: str,
    examples: Path,
    sample_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = SMALL[name].format(sample=examples / "sample", kb=sample_path, out=tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *options.split()])
    monkeypatch.chdir(tmp_path)

    importlib.import_module(name).main()

    assert capsys.readouterr().out or (tmp_path / "dump.json.gz").stat().st_size
