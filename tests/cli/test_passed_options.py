"""Every option of a command reaches the function of the library that it is for."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from kbtools.answering.answerer import Answerer
from kbtools.cli.main import main
from kbtools.comparison.grid import Grid
from kbtools.errors import KBToolsError
from kbtools.indexers.elastic.inventory import _ClusterStatus
from kbtools.indexers.folder.kb_folder import read_manifest
from kbtools.indexers.readers.reading import WIDE, WIKIDATA, Keep, ReadOptions, Wide
from kbtools.pruning import UNGUIDED
from kbtools.serve.settings import ServeSettings

Call = tuple[tuple[Any, ...], dict[str, Any]]
Caught = Callable[..., Call]


@pytest.fixture
def caught(monkeypatch: pytest.MonkeyPatch) -> Caught:
    """Return a function that runs a command up to a function of the library, and returns the arguments of its call."""

    def run(place: str, *arguments: object) -> Call:
        calls: list[Call] = []

        def catch(*args: Any, **kwargs: Any) -> None:
            calls.append((args, kwargs))
            raise KBToolsError("caught here")

        monkeypatch.setattr(place, catch)
        done = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert "caught here" in done.output, done.output
        return calls[0]

    return run


def test_a_server_gets_its_settings(caught: Caught, sample_path: Path, tmp_path: Path) -> None:
    place, other = "kbtools.serve.server.run_server", tmp_path / "other.kb"

    (usual,), where = caught(place, "serve", sample_path)
    options = ("--tagger", "crf", "--models", tmp_path, "--link", "http://a/{id}", "--root-path", "/kb")
    pages = ("--cors", "http://a", "--cors", "http://b", "--allowed-host", "x", "--allowed-host", "y", "--teach")
    place_of = ("--host", "0.0.0.0", "--port", 81, "--workers", 3)
    (own,), own_place = caught(
        place, "serve", sample_path, other, *options, *pages, *place_of, "--device", "cpu-bf16", "--trust-plugins"
    )
    (on_cluster,), _ = caught(place, "serve", "--kb", "a", "--kb", "b", "--elasticsearch", "http://h:9200")

    del where["announce"], own_place["announce"]
    assert usual == ServeSettings(kbs=(str(sample_path),), trust_plugins=False)
    assert where == {"host": "127.0.0.1", "port": 8000, "workers": 1}
    assert own == ServeSettings(
        (str(sample_path), str(other)), models=str(tmp_path), tagger="crf", device="cpu-bf16", trust_plugins=True,
        root_path="/kb", cors=("http://a", "http://b"), hosts=("x", "y"), teach=True, link="http://a/{id}",
    )  # fmt: skip
    assert own_place == {"host": "0.0.0.0", "port": 81, "workers": 3}
    assert on_cluster == ServeSettings(kbs=("a", "b"), elasticsearch="http://h:9200", trust_plugins=False)


def test_a_comparison_gets_its_request(caught: Caught, sample_path: Path, tmp_path: Path) -> None:
    place, files = "kbtools.cli.compare.compare", ("--questions", tmp_path / "q", "--out", tmp_path / "run")
    axes = ("--pruning", "n-gram,n-gram+", "--scorer", "static,a&b", "--subject", "fact-count,none", "--ranker", "x,y")
    more = ("--valid", tmp_path / "v", "--tune", "--limit", 7, "--errors", 3, "--models", tmp_path, "--tagger", "crf")

    (_, usual), _ = caught(place, "compare", sample_path, *files)
    (answerer, request), _ = caught(place, "compare", sample_path, *files, *axes, *more)

    assert usual.grid == Grid(UNGUIDED, ("lexical",), ("popularity",), None)
    assert (usual.kb_path, usual.limit, usual.errors, usual.valid, usual.tune) == (sample_path, None, 0, None, False)
    assert (request.questions, request.out) == (tmp_path / "q", tmp_path / "run")
    assert request.grid == Grid(("n-gram", "n-gram+"), ("static", "a,b"), ("fact-count", "none"), ("x", "y"))
    assert (request.limit, request.errors, request.valid, request.tune) == (7, 3, tmp_path / "v", True)
    assert (answerer.models, answerer.tagger) == (tmp_path, "crf")


def test_a_question_is_asked_of_the_named_parts(
    caught: Caught, sample_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("--pruning", "n-gram", "--scorer", "static,lexical", "--subject", "fact-count")
    place = "kbtools.answering.answerer.Answerer.query_many"

    _, asked = caught(place, "query", sample_path, *names, "--top", 3, "--answers", 4, "--type", "t", "who wrote it")

    system = asked.pop("system")
    assert (system.pruner, system.scorers, system.subject) == ("n-gram", ("static", "lexical"), "fact-count")
    assert asked == {"type": "t", "inverse": None, "top": 3, "answers": 4, "abstain": None}


def test_a_folder_is_compacted_with_memory_and_jobs(caught: Caught, sample_path: Path) -> None:
    (path,), options = caught(
        "kbtools.cli.compact.compact", "compact", sample_path, "--memory", "3GB", "--jobs", 5, "--quiet"
    )

    del options["watch"]
    assert (path, options) == (sample_path, {"memory": "3GB", "jobs": 5})


def test_vectors_are_indexed_in_the_kind_asked_for(caught: Caught, sample_path: Path, tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    np.save(tmp_path / "v.npy", np.ones((1, 3), dtype=np.float32))
    (tmp_path / "ids").write_text("m.078ffw\n")
    files = ("--vectors", tmp_path / "v.npy", "--ids", tmp_path / "ids")

    calls = [
        caught("kbtools.indexers.folder.faiss_index.write_vectors", "index", "vectors", sample_path, *files, *kind)
        for kind in ((), ("--kind", "hnsw"))
    ]

    assert [options for _, options in calls] == [{"kind": "flat"}, {"kind": "hnsw"}]
    assert [(path, vectors.dim, len(vectors.rows)) for (path, _, vectors), _ in calls] == [(sample_path, 3, 1)] * 2


BUILD = "kbtools.cli.index.build"


def test_files_of_every_kind_are_built_in_one_order(caught: Caught, tmp_path: Path) -> None:
    kinds = ("counts", "rdf", "names", "redirects", "facts", "relations", "types")
    (tmp_path / "words.csv").write_text("Boulevard,Blvd\n")
    (tmp_path / "e.csv").write_text("id,name,city\n1,A,B\n")
    files = [part for kind in kinds for part in (f"--{kind}", tmp_path / kind)]
    own = ("--variants", tmp_path / "words.csv", "--closure", "--force", "--memory", "3GB", "--jobs", 2, "--quiet")

    (sources, out), options = caught(BUILD, "index", tmp_path / "e.csv", *files, *own, "--out", tmp_path / "x.kb")

    assert [(source.path.name, source.kind, source.format) for source in sources] == [
        ("facts", "facts", None), ("names", "names", None), ("types", "types", None), ("relations", "relations", None),
        ("redirects", "redirects", None), ("counts", "counts", None), ("rdf", "any", None), ("e.csv", "any", WIDE),
    ]  # fmt: skip
    assert (out, options["force"], options["memory"]) == (tmp_path / "x.kb", True, "3GB")
    read = options["options"]
    assert (read.closure, read.jobs, [*read.variants]) == (True, 2, [("Boulevard", "Blvd")])


def test_a_build_of_defaults_reads_by_defaults(caught: Caught, tmp_path: Path) -> None:
    (_, _), options = caught(BUILD, "index", "--facts", tmp_path / "f", "--out", tmp_path / "x.kb", "--jobs", 2)

    del options["watch"]
    assert options == {"force": False, "memory": "1GB", "options": ReadOptions(jobs=2, wide=options["options"].wide)}
    assert options["options"].wide == Wide(link=())


def test_a_table_is_read_by_the_columns_that_options_name(caught: Caught, tmp_path: Path) -> None:
    (tmp_path / "words.csv").write_text("Boulevard,Blvd\n")
    columns = (
        "--id",
        "key",
        "--name",
        "n, m",
        "--alias",
        "a",
        "--description",
        "d",
        "--type",
        "t",
        "--link-column",
        "l",
    )
    more = (
        "--sheet",
        "s",
        "--encoding",
        "cp1252",
        "--query",
        "q",
        "--list-separator",
        "|",
        "--closure",
        "--max-bad",
        0.5,
    )
    also = (
        "--also",
        f"variants={tmp_path / 'words.csv'}",
        "--also",
        f"names={tmp_path / 'n'}",
        "--facts",
        tmp_path / "f",
    )

    (sources, _), options = caught(
        BUILD, "index", "table", tmp_path / "t.csv", *columns, *more, *also, "--lang", "de", "--out", tmp_path / "x.kb"
    )

    assert [(source.path.name, source.kind) for source in sources] == [("f", "facts"), ("n", "names"), ("t.csv", "any")]
    read = options["options"]
    assert read.wide == Wide("key", ("n", "m"), ("a",), ("t",), ("d",), ("l",), query="q", sheet="s")
    assert (read.encoding, read.list_separator, read.closure, read.max_bad) == ("cp1252", "|", True, 0.5)
    assert (read.language, [*read.variants]) == ("de", [("Boulevard", "Blvd")])


def test_wikidata_is_read_by_what_options_keep(caught: Caught, tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("Q1\n\n Q2 \n")
    keep = ("--min-sitelinks", 3, "--keep-type", "Q5,Q6", "--keep-type", "Q7", "--keep-property", "P19, P20")

    (sources, _), options = caught(
        BUILD, "index", "wikidata", tmp_path / "d.json", *keep, "--keep-ids", tmp_path / "ids", "--closure",
        "--out", tmp_path / "x.kb",
    )  # fmt: skip

    assert [(source.kind, source.format) for source in sources] == [("any", WIKIDATA)]
    sets = [frozenset(names) for names in (("Q5", "Q6", "Q7"), ("P19", "P20"), ("Q1", "Q2"))]
    assert (options["options"].keep, options["options"].closure) == (Keep(3, *sets), True)


def test_an_update_makes_removals_then_merges_then_additions(caught: Caught, sample_path: Path, tmp_path: Path) -> None:
    added = ("relations", "wikidata", "table", "rdf", "types", "names", "facts", "redirects", "add")
    files = [part for kind in added for part in (f"--{kind}", tmp_path / kind)]
    gone = [part for kind in ("types=", "names=", "facts=", "") for part in ("--remove", f"{kind}{tmp_path / 'gone'}")]

    (path, sources), options = caught(
        "kbtools.cli.update.update", "update", sample_path, *files, *gone, "--lang", "de", "--max-bad", 0.25
    )

    assert path == sample_path
    assert [(part.role, part.source.kind, part.source.path.name) for part in sources] == [
        ("gone", "any", "gone"), ("remove", "facts", "gone"), ("remove", "names", "gone"), ("remove", "types", "gone"),
        ("add", "redirects", "redirects"), ("changes", "any", "add"), ("add", "facts", "facts"),
        ("add", "names", "names"), ("add", "types", "types"), ("add", "any", "rdf"), ("add", "any", "table"),
        ("add", "any", "wikidata"), ("add", "relations", "relations"),
    ]  # fmt: skip
    assert [part.source.format for part in sources[9:12]] == [None, WIDE, WIKIDATA]
    assert (options["options"].language, options["options"].max_bad) == ("de", 0.25)


def test_a_table_is_reconciled_by_its_query(caught: Caught, sample_path: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("title,year,by=x\nIt,1986,a\n")
    own = (
        "--type",
        "a",
        "--type",
        "b",
        "--property",
        "year=r/s",
        "--property",
        "by=x=q",
        "--extend",
        "e",
        "--extend",
        "f",
    )

    (answerer, table, query, out), _ = caught(
        "kbtools.serve.table_reconciliation.reconcile_table", "reconcile", sample_path, tmp_path / "t.csv", "--column",
        "title", *own, "--threshold", 62.5, "--out", tmp_path / "o.csv",
    )  # fmt: skip

    assert (query.column, query.types, query.extend, query.threshold) == ("title", ("a", "b"), ("e", "f"), 62.5)
    assert query.properties == {"year": "r/s", "by=x": "q"}
    assert (out, table.header, isinstance(answerer, Answerer)) == (tmp_path / "o.csv", ["title", "year", "by=x"], True)


class TestTraining:
    """The commands of kbtools train."""

    @pytest.fixture
    def files(self, examples: Path, tmp_path: Path) -> tuple[object, ...]:
        pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")
        valid = examples / "sample.valid.txt"
        return ("--train", examples / "sample.train.txt", "--valid", valid, "--out", tmp_path / "models")

    def test_a_profile_is_trained_with_changes(
        self, caught: Caught, sample_path: Path, examples: Path, tmp_path: Path, files: tuple[object, ...]
    ) -> None:
        (tmp_path / "c.toml").write_text("epochs = 2\nbatch = 3\n")
        own = ("--profile", "fast", "--set", "epochs=5", "--config", tmp_path / "c.toml", "--ranker", "weighted-sum")

        (_, train, valid), options = caught(
            "kbtools.comparison.whole_training.train", "train", sample_path, *files, *own, "--device", "cpu-bf16"
        )

        assert (train, valid) == (examples / "sample.train.txt", examples / "sample.valid.txt")
        kept = {name: options[name] for name in ("out", "profile", "ranker", "settings", "device")}
        assert kept == {
            "out": tmp_path / "models", "profile": "fast", "ranker": "weighted-sum", "device": "cpu-bf16",
            "settings": {"epochs": 5, "batch": 3},
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("part", "option", "default"), [("relation", "scorer", "bigru"), ("tagger", "tagger", "bigru-crf+"),
                                        ("subject", "subject", "type-vector")]
    )  # fmt: skip
    def test_a_part_is_trained_by_its_profile(
        self, caught: Caught, sample_path: Path, tmp_path: Path, files: tuple[object, ...], part: str, option: str,
        default: str,
    ) -> None:  # fmt: skip
        from kbtools.scorers.fitting.profiles import profile_settings

        place, named = "kbtools.scorers.fitting.training.train", {"tagger": "crf"}.get(part, "random")
        (_, splits), usual = caught(place, "train", part, sample_path, *files)
        _, own = caught(
            place, "train", part, sample_path, *files, f"--{option}", f"{named},x", "--profile", "paper", "--epochs", 3
        )

        kept = [{name: call[name] for name in ("part", "name", "models", "device")} for call in (usual, own)]
        expected = {"part": part, "name": default, "models": tmp_path / "models", "device": "cpu"}
        assert kept == [expected, {**expected, "name": named}]
        settings = profile_settings("paper", part, named)
        assert usual["settings"] == profile_settings("best", part, default)
        assert own["settings"] == replace(settings, fit=replace(settings.fit, epochs=3))
        assert len(splits.train) > len(splits.valid)

    def test_a_ranking_is_fitted_on_the_first_questions(
        self, caught: Caught, sample_path: Path, tmp_path: Path, files: tuple[object, ...]
    ) -> None:
        models = ("--models", tmp_path, *files[2:4])
        names = ("--pruning", "n-gram", "--scorer", "static,lexical", "--subject", "fact-count", "--ranker", "lightgbm")
        more = ("--in-doubt", "lexical,static", "--limit", 5, "--set", "seed=9", "--tagger", "crf")
        place = "kbtools.comparison.system_training.train_system"

        _, usual = caught(place, "train", "ranking", sample_path, *models, "--scorer", "lexical")
        (answerer, questions, system), own = caught(place, "train", "ranking", sample_path, *models, *names, *more)

        assert usual == {"ranker": None, "in_doubt": (), "seed": 1}
        assert own == {"ranker": "lightgbm", "in_doubt": ["lexical", "static"], "seed": 9}
        assert (system.pruner, system.scorers, system.subject) == ("n-gram", ("static", "lexical"), "fact-count")
        assert (len(questions), answerer.models, answerer.tagger) == (5, tmp_path, "crf")

    def test_vectors_of_entities_are_trained_with_changes(
        self, caught: Caught, sample_path: Path, tmp_path: Path, files: tuple[object, ...]
    ) -> None:
        place = "kbtools.scorers.fitting.training.train"

        (_, splits), options = caught(place, "train", "transe", sample_path, *files[4:], "--dim", 4, "--margin", 2)

        vectors = options["settings"].vectors
        assert (splits, options["part"], options["name"], vectors.dim, vectors.margin) == (
            None, "entities", "transe", 4, 2.0,
        )  # fmt: skip


def test_a_load_gets_its_options(caught: Caught, sample_path: Path, tmp_path: Path) -> None:
    from kbtools.indexers.elastic.loading import LoadOptions
    from kbtools.indexers.elastic.mapping import IndexSettings

    settings = ("--shards", 2, "--replicas", 3, "--refresh", "5s", "--codec", "best_compression", "--patience", 9)
    more = ("--keep", 4, "--batch", 10, "--in-flight", 7, "--segments", 1, "--rejected", tmp_path, "--force")
    place = "kbtools.cli.load.load_folder"

    (_, _, _, usual, _), _ = caught(place, "load", sample_path, "--kb", "a", "--jobs", 2)
    (folder, name, where, own, _), _ = caught(
        place,
        "load",
        sample_path,
        "--kb",
        "a",
        "--jobs",
        6,
        *settings,
        *more,
        "--take-over",
        "--elasticsearch",
        "http://h:1",
    )

    assert usual == LoadOptions(jobs=2, patience=replace(usual.patience, total=300.0))
    assert (folder, name, where.url) == (sample_path, "a", "http://h:1")
    assert own == LoadOptions(
        IndexSettings(2, 3, "5s", "best_compression"), keep=4, force=True, take_over=True, in_flight=7, batch=10,
        segments=1, rejected=tmp_path, patience=replace(usual.patience, total=9.0), jobs=6,
    )  # fmt: skip


def test_an_agent_is_offered_the_knowledge_base_by_its_name(caught: Caught, sample_path: Path) -> None:
    pytest.importorskip("mcp", reason="agents need mcp: pip install 'kbtools[mcp]'")

    _, options = caught("kbtools.serve.agent_tools.make_server", "mcp", sample_path)

    assert options == {"name": sample_path.name}


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> str:
    """Connect every command to the same cluster."""
    from kbtools.cli.homes import Elasticsearch

    monkeypatch.setattr(Elasticsearch, "connect", lambda home: nullcontext(home.url))
    return "http://h:9200"


def test_commands_about_a_cluster_are_about_the_name_on_it(
    caught: Caught, connected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, where = "kbtools.indexers.elastic", ("--elasticsearch", connected)
    monkeypatch.setattr(f"{place}.inventory.choose_versions", lambda *args, **options: [args, options])

    removed = [
        caught(f"{place}.inventory.remove_versions", "remove", "a", *where, *how)
        for how in (("--yes",), ("--version", 3), ("--unfinished",))
    ]
    back, _ = caught(f"{place}.versions.roll_back", "rollback", "a", *where)
    dropped, _ = caught(f"{place}.inventory.drop_deleted", "compact", "a", *where)
    shown, _ = caught(f"{place}.inventory.cluster_status", "info", "a", *where)
    listed, _ = caught(f"{place}.inventory.cluster_status", "info", *where)
    (tmp_path / "new.jsonl").write_text("{}\n")
    updated, options = caught(
        f"{place}.cluster_updates.update_on_cluster", "update", "a", *where, "--add", tmp_path / "new.jsonl",
        "--take-over", "--lang", "de",
    )  # fmt: skip

    ways = [
        {"number": None, "unfinished": False},
        {"number": 3, "unfinished": False},
        {"number": None, "unfinished": True},
    ]
    assert removed == [((connected, "a", [(connected, "a"), way]), {}) for way in ways]
    assert back == dropped == shown == updated[:2] == (connected, "a")
    assert listed == (connected, None)
    assert (options["options"].take_over, options["options"].reading.language) == (True, "de")


def test_a_whole_knowledge_base_is_removed_from_a_cluster_after_a_question(
    connected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[str] = []
    cluster = SimpleNamespace(connection=SimpleNamespace(where=connected))
    monkeypatch.setattr("kbtools.cli.homes.Elasticsearch.connect", lambda home: nullcontext(cluster))
    monkeypatch.setattr("kbtools.indexers.elastic.inventory.choose_versions", lambda *_, **__: [1, 2])

    def remove(cluster: object, name: str, chosen: object) -> list[str]:
        removed.append(name)
        return ["kbtools-a-1"]

    monkeypatch.setattr("kbtools.indexers.elastic.inventory.remove_versions", remove)

    done = [
        CliRunner().invoke(main, ["remove", "a", "--elasticsearch", connected], input=answer)
        for answer in ("n\n", "y\n")
    ]

    assert [one.exit_code for one in done] == [1, 0]
    assert "Delete a with its 2 versions" in done[0].stdout
    assert (removed, "deleted kbtools-a-1" in done[1].stdout) == (["a"], True)


def test_compaction_on_a_cluster_shows_both_sizes(connected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = SimpleNamespace(connection=SimpleNamespace(where=connected))
    monkeypatch.setattr("kbtools.cli.homes.Elasticsearch.connect", lambda home: nullcontext(cluster))
    dropped = SimpleNamespace(count=1200, before=2500, after=1500)
    monkeypatch.setattr("kbtools.indexers.elastic.inventory.drop_deleted", lambda *_: dropped)

    done = CliRunner().invoke(main, ["compact", "a", "--elasticsearch", connected])

    sizes = "1.5 KB, 2.5 KB before, without copies of shards"
    assert done.stdout == f"a on {connected}: 1,200 deleted documents dropped; {sizes}\n"


def test_a_whole_cluster_has_no_manifest_in_json(connected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    status = _ClusterStatus("here", "9.0.0", "green", 1, versions=(), builds=(), manifest=None)
    monkeypatch.setattr("kbtools.indexers.elastic.inventory.cluster_status", lambda *_: status)

    done = CliRunner().invoke(main, ["info", "--elasticsearch", connected, "--json"])

    record = json.loads(done.stdout)
    assert (record["where"], record["versions"], record["manifest"]) == ("here", [], None)


@pytest.mark.parametrize(("counts", "told"), [((), False), (("--counts", "c.tsv"), True)])
def test_a_build_for_a_cluster_tells_that_counts_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counts: tuple[str, ...], told: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.tsv").write_text("a\tr\tb\n")
    Path("c.tsv").write_text("a\tr\t2\n")
    monkeypatch.setattr("kbtools.cli.index.check_target", lambda *_: None)
    monkeypatch.setattr("kbtools.cli.index.load_folder", lambda *_, **__: None)

    where = ("--kb", "a", "--elasticsearch", "http://h:9200")
    done = CliRunner().invoke(main, ["index", "--facts", "f.tsv", *counts, *where])

    assert ("counts are not loaded" in done.stderr) == told


def test_another_backend_gets_the_name_as_it_was_typed(caught: Caught) -> None:
    (path,), options = caught("kbtools.cli.homes.open_kb", "query", "sample", "--backend", "mine", "who wrote it")

    assert (path, options["backend"]) == (Path("sample"), "mine")


def test_the_files_of_a_folder_are_checked_before_it_is_measured(
    caught: Caught, sample_path: Path, tmp_path: Path
) -> None:
    files = ("--questions", tmp_path / "q", "--out", tmp_path / "run")

    (path, manifest), _ = caught("kbtools.cli.homes.require_intact", "compare", sample_path, *files)

    assert (path, manifest.built) == (sample_path, read_manifest(sample_path).built)
