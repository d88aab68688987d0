"""Plugins: the one door, and what stands in front of it when it does not open."""

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import Distribution, EntryPoint, EntryPoints, PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from kbtools import entry_points
from kbtools.entry_points import (
    BACKENDS,
    SCORERS,
    TRUST_VARIABLE,
    construct,
    import_optional,
    is_installed,
    list_plugins,
    load_plugin,
    trusts_plugins,
)
from kbtools.errors import BrokenPlugin, MissingDependency, UnknownPlugin
from kbtools.scorers.relations.lexical import LexicalScorer


class Home(Distribution):
    """A distribution that is nothing but its name."""

    def __init__(self, name: str) -> None:
        self.named = name

    @property
    def metadata(self) -> Any:
        return {"Name": self.named}

    def read_text(self, filename: str) -> None:
        return None

    def locate_file(self, path: object) -> None:
        raise NotImplementedError


def offer(name: str, value: str, home: str | None = None) -> EntryPoint:
    point = EntryPoint(name, value, SCORERS)
    if home:
        vars(point).update(dist=Home(home))
    return point


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the installed entry points be those given."""
    return lambda *points: monkeypatch.setattr(entry_points, "installed_points", lambda group: EntryPoints(points))


def test_what_is_built_in_comes_through_the_door() -> None:
    assert load_plugin(SCORERS, "lexical") is LexicalScorer
    assert "embedded" in list_plugins(BACKENDS)


def test_the_environment_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[None] = []

    def search() -> EntryPoints:
        searches.append(None)
        return EntryPoints()

    monkeypatch.setattr(entry_points, "entry_points", search)
    entry_points.every_point.cache_clear()
    try:
        assert [list_plugins(group) for group in (SCORERS, BACKENDS)] == [{}, {}]
    finally:
        entry_points.every_point.cache_clear()

    assert len(searches) == 1


def test_an_unknown_name_is_answered_with_the_known_ones(offered: Callable[..., None]) -> None:
    offered(offer("two", "m:B"), offer("one", "m:A"))
    with pytest.raises(UnknownPlugin, match="no relation scorer 'three'; known: one, two"):
        load_plugin(SCORERS, "three")


def test_an_unknown_name_says_so_where_nothing_is_installed(offered: Callable[..., None]) -> None:
    offered()
    with pytest.raises(UnknownPlugin, match="none installed"):
        load_plugin(SCORERS, "lexical")


def test_two_distributions_that_offer_one_name_are_an_error_that_names_both(offered: Callable[..., None]) -> None:
    offered(
        offer("lexical", "theirs:Scorer", "their-package"),
        offer("lexical", "kbtools.scorers.relations.lexical:LexicalScorer", "kbtools"),
    )
    with pytest.raises(BrokenPlugin, match="offered by kbtools and their-package; uninstall one"):
        load_plugin(SCORERS, "lexical")
    assert len(list_plugins(SCORERS)["lexical"]) == 2


def test_two_offers_without_a_distribution_are_named_by_their_targets(offered: Callable[..., None]) -> None:
    offered(offer("one", "m:B"), offer("one", "m:A"))
    with pytest.raises(BrokenPlugin, match="offered by m:A and m:B; uninstall one"):
        load_plugin(SCORERS, "one")


def test_one_distribution_found_twice_on_the_path_is_no_clash(offered: Callable[..., None]) -> None:
    point = ("lexical", "kbtools.scorers.relations.lexical:LexicalScorer")
    offered(offer(*point, "kbtools"), offer(*point, "kbtools"))
    assert load_plugin(SCORERS, "lexical") is LexicalScorer


def test_a_class_may_be_given_by_its_module() -> None:
    assert load_plugin(SCORERS, "kbtools.scorers.relations.lexical:LexicalScorer") is LexicalScorer


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("no_such_module:Scorer", "ModuleNotFoundError"),
        ("kbtools.scorers.relations.lexical:NoSuchClass", "AttributeError"),
        ("kbtools.scorers.relations.lexical:", "AttributeError"),
        (":Scorer", "ValueError"),
    ],
)
def test_what_cannot_be_loaded_is_broken_and_says_why(offered: Callable[..., None], path: str, reason: str) -> None:
    offered(offer("mine", path))
    for name in (path, "mine"):
        with pytest.raises(BrokenPlugin, match=f"{path!r} cannot be loaded: {reason}") as caught:
            load_plugin(SCORERS, name)
        assert caught.value.__cause__ is not None


def test_a_module_that_fails_on_import_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failing_plugin.py").write_text("raise RuntimeError('no licence')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BrokenPlugin, match=r"RuntimeError.*no licence"):
        load_plugin(SCORERS, "failing_plugin:Scorer")


def test_listing_imports_no_plugin() -> None:
    script = (
        "import sys; from kbtools.entry_points import *; list_plugins(SCORERS), list_plugins(BACKENDS);"
        "print([name for name in sys.modules if name.startswith(('kbtools.scorers', 'kbtools.indexers'))])"
    )
    listed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert listed.stdout == "[]\n"


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        pytest.param(None, "pip install 'kbtools[train]'", id="registry"),
        pytest.param(
            '{"url": "file:///home/a%20b/kbtools", "dir_info": {"editable": true}}',
            "pip install -e '/home/a b/kbtools[train]'",
            id="checkout",
        ),
        pytest.param('{"url": "file:///tmp/k.whl"}', "pip install '/tmp/k.whl[train]'", id="wheel"),
        pytest.param('{"url": "https://host/k.whl"}', "pip install 'kbtools[train]'", id="address"),
    ],
)
def test_an_extra_is_installed_from_where_kbtools_came(
    monkeypatch: pytest.MonkeyPatch, origin: str | None, command: str
) -> None:
    class Installed(Home):
        def read_text(self, filename: str) -> str | None:  # type: ignore[override]
            return origin if filename == "direct_url.json" else None

    monkeypatch.setattr(entry_points, "distribution", Installed)

    assert entry_points.install_command("train") == command


def test_an_extra_of_what_is_not_installed_is_that_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Distribution:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(entry_points, "distribution", absent)

    assert entry_points.install_command("crf") == "pip install 'kbtools[crf]'"


def test_an_extra_is_installed_if_all_of_its_modules_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_points, "EXTRAS", {"json": "some", "no_such_module": "some", "csv": "all", "io": "all"})

    assert (is_installed("some"), is_installed("all")) == (False, True)


@pytest.mark.parametrize(
    ("module", "more", "message"),
    [
        ("pyoxigraph", "", r"reading needs pyoxigraph; install it with pip install .*\[rdf\]'"),
        (
            "matplotlib.figure",
            ", or not",
            r"reading needs matplotlib; .* pip install .*\[report\]', or not",
        ),
    ],
)
def test_a_module_that_is_not_installed_is_named_with_its_extra(
    module: str, more: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(MissingDependency, match=f"^{message}$"):
        import_optional(module, "reading", more=more)
    assert import_optional("json", "reading") is sys.modules["json"]


@pytest.mark.parametrize(
    ("variable", "argument", "trusted"),
    [
        (None, None, False),
        ("", None, False),
        ("0", None, False),
        ("no", None, False),
        ("1", None, True),
        ("True", None, True),
        ("yes", None, True),
        ("on", None, True),
        ("1", False, False),
        ("0", True, True),
    ],
)
def test_the_variable_decides_whether_plugins_are_trusted_where_no_argument_does(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, argument: bool | None, trusted: bool
) -> None:
    monkeypatch.delenv(TRUST_VARIABLE, raising=False)
    if variable is not None:
        monkeypatch.setenv(TRUST_VARIABLE, variable)

    assert trusts_plugins(argument) is trusted


@pytest.mark.parametrize("error", [PermissionError("weights"), MemoryError()])
def test_errors_of_the_system_are_no_fault_of_a_plugin(error: Exception) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        construct("mine", fail)
