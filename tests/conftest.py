"""Knowledge bases for tests: a tiny one, the sample of examples/, and FBSQ if available.

A backend joins every contract by one entry in `BACKENDS`.
"""

import functools
import gc
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from kbtools.answering.answerer import Answerer, open_kb
from kbtools.entry_points import TRUST_VARIABLE
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.loading import LoadOptions, load
from kbtools.indexers.elastic.mapping import IndexSettings
from kbtools.indexers.elastic.versions import delete_versions, list_versions
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.indexers.readers.labels import DEFAULT_LANGUAGES
from kbtools.indexers.readers.reading import Reading, ReadOptions, Source
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking import models
from tests.encoder_folders import write_encoder

# A slow machine is no fault: no example has a deadline.
settings.register_profile("kbtools", deadline=None)
settings.load_profile("kbtools")

# The default untrained scorer is the same in every environment; tests of `encoder` name it.
os.environ[models.VARIABLE] = models.LEXICAL


gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage from here on, but not among modules and tests, which last to the end and were searched often."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _pytest_inside_tests_has_a_root_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A run of pytest makes the root of its temporary folders unreadable for other users, as whom some tests run."""
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(tmp_path_factory.getbasetemp())


ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"

LONG_ALIAS = ("never ending alias " * 527)[:9_999] + "!"
SHARED_PREFIX = "one prefix of many words " * 24
"""600 bytes: longer than a key of LMDB."""


@dataclass(frozen=True)
class World:
    """A knowledge base as plain data: (subject, relation, object), (entity, name, alias, type or description).

    Names and aliases with a language have it after the text; `language` is the order of languages.
    """

    facts: tuple[tuple[str, str, str], ...]
    names: tuple[tuple[str, str], ...]
    types: tuple[tuple[str, str], ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    descriptions: tuple[tuple[str, str], ...] = ()
    spoken: tuple[tuple[str, str, str], ...] = ()
    spoken_aliases: tuple[tuple[str, str, str], ...] = ()
    language: str = DEFAULT_LANGUAGES


KITES = World(
    facts=(
        ("m.1", "book.author", "m.8"),
        ("m.1", "book.author", "m.9"),
        ("m.1", "book.pages", '"312"'),
        ("m.2", "book.author", "m.9"),
    ),
    names=(("m.1", "Kite"), ("m.2", "Kite"), ("m.8", "Ada Venn"), ("m.9", "Orla Quinn")),
    types=(("m.1", "book.book"), ("m.2", "book.series")),
    aliases=(("m.1", "The Iron Kite"),),
    descriptions=(("m.1", "a novel"),),
)

TINY = World(
    facts=(
        ("m.02texas", "location.contains", "m.02paris"),
        ("m.02paris", "location.containedby", "m.02texas"),
        ("m.01paris", "location.time_zone", "m.09unnamed"),
        ("m.01paris", "location.containedby", "m.03france"),
        ("m.01paris", "location.containedby", "m.03france"),
        ("m.04lodz", "location.containedby", "m.05poland"),
        ("m.06heroes", "music.album.artist", "m.07bowie"),
        ("m.08acdc", "music.artist.genre", "m.0grock"),
        ("m.08acdc", "music.artist.genre", "m.0ghard"),
        ("m.08acdc", "music.artist.genre", "m.0gblues"),
        ("m.10nameless", "location.containedby", "m.05poland"),
        ("m.11titin", "biology.gene.chromosome", '"2"@en'),
        ("m.12who", "music.artist.genre", "m.0grock"),
        ("m.13who", "music.album.artist", "m.12who"),
        ("m.14bang", "music.artist.genre", "m.0gpunk"),
        ("m.15year", "book.author", "m.16orwell"),
        ("m.17year", "book.author", "m.18burgess"),
        ("an id, with a space", "music.album.artist", "m.07bowie"),
    ),
    names=(
        ("m.02paris", "Paris"),
        ("m.01paris", "Paris"),
        ("m.01paris", "Paris"),
        ("m.02texas", "Texas"),
        ("m.03france", "France"),
        ("m.04lodz", "Łódź"),
        ("m.05poland", "Poland"),
        ("m.06heroes", '"Heroes"'),
        ("m.07bowie", "David Bowie"),
        ("m.08acdc", "AC/DC"),
        ("m.0grock", "Rock"),
        ("m.0ghard", "Hard rock"),
        ("m.11titin", "Titin"),
        ("m.12who", "The Who"),
        ("m.13who", "Who"),
        ("m.14bang", "!!!"),
        ("m.15year", "1984"),
        ("m.17year", "1985"),
        ("m.18burgess", "Anthony Burgess"),
        ("m.19atlantis", "Atlantis"),
        ("an id, with a space", SHARED_PREFIX + "first"),
        ("m.06heroes", SHARED_PREFIX + "second"),
    ),
    types=(
        ("m.01paris", "location.citytown"),
        ("m.01paris", "common.topic"),
        ("m.01paris", "location.citytown"),
        ("m.02paris", "location.citytown"),
        ("m.19atlantis", "common.topic"),
        ("m.99stranger", "music.artist"),
    ),
    aliases=(
        ("m.02paris", "Paris, Texas"),
        ("m.01paris", "Paris"),
        ("m.01paris", "City of Light"),
        ("m.04lodz", "Lodz"),
        ("m.08acdc", "AC\\DC"),
        ("m.11titin", LONG_ALIAS),
        ("m.16orwell", "George Orwell"),
    ),
)


def make_memory(world: World, folder: Path) -> MemoryKB:
    return MemoryKB(
        world.facts,
        [*world.names, *world.spoken],
        world.types,
        aliases=[*world.aliases, *world.spoken_aliases],
        descriptions=world.descriptions,
        language=world.language,
    )


def make_embedded(world: World, folder: Path) -> EmbeddedKB:
    options = ReadOptions(language=world.language)
    build(write_world(world, folder), folder / "world.kb", options=options, watch=BuildProgress())
    return EmbeddedKB(folder / "world.kb")


def make_elasticsearch(world: World, folder: Path) -> ElasticKB:
    kb = make_embedded(world, folder)
    cluster = Cluster(read_connection(elasticsearch_url()))
    name = f"test-{folder.name.lower()}-{os.getpid()}"
    load(kb, cluster, name, options=LoadOptions(settings=IndexSettings(replicas=0)), watch=BuildProgress())
    LOADED.append((cluster, name))
    return ElasticKB(name, cluster)


BACKENDS: dict[str, Callable[[World, Path], KnowledgeBase]] = {
    "memory": make_memory,
    "embedded": make_embedded,
    "elasticsearch": make_elasticsearch,
}

LOADED: list[tuple[Cluster, str]] = []
"""The knowledge bases that tests loaded into the cluster, to be removed at the end."""


def elasticsearch_url() -> str:
    """Return the cluster that tests may write to, or skip."""
    url = os.environ.get("KBTOOLS_TEST_ELASTICSEARCH_URL")
    if not url:
        skip_cluster("needs a cluster: KBTOOLS_TEST_ELASTICSEARCH_URL=http://localhost:9200 pytest")
    return url or ""


def skip_cluster(reason: str) -> None:
    """Skip a test that needs a cluster; fail it if clusters are required."""
    (pytest.fail if os.environ.get("KBTOOLS_TEST_ELASTICSEARCH_REQUIRED") else pytest.skip)(reason)


@pytest.fixture(scope="session", autouse=True)
def heard_signals() -> None:
    """Restore the signals that the caller of the tests may ignore (`&`, nohup), since commands inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def trusted_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow records of models to name classes of the tests as `module:Class`."""
    monkeypatch.setenv(TRUST_VARIABLE, "1")


@pytest.fixture(scope="session")
def cluster_url() -> str:
    """Return the cluster that tests may write to, or skip."""
    return elasticsearch_url()


@pytest.fixture(scope="session")
def cluster_program() -> Path:
    """Return the program that starts and stops clusters on this machine, or skip."""
    program = os.environ.get("KBTOOLS_TEST_ELASTICSEARCH_CLUSTER")
    if not program:
        skip_cluster("needs a program that starts clusters: KBTOOLS_TEST_ELASTICSEARCH_CLUSTER=PROGRAM pytest")
    return Path(program or "")


@pytest.fixture(scope="session", autouse=True)
def removed_afterwards() -> Iterator[None]:
    """Remove what the tests loaded into the cluster."""
    yield
    for cluster, name in LOADED:
        delete_versions(cluster, list_versions(cluster, name))
        cluster.close()


def write_world(world: World, folder: Path) -> list[Source]:
    """Write a world as JSON Lines, which can hold any id and any name."""
    sources = [Source(folder / f"{kind}.jsonl", kind) for kind in ("facts", "names", "types")]
    named = [dict(zip(("id", "name", "language"), row, strict=False)) for row in (*world.names, *world.spoken)]
    write_lines(sources[0].path, (dict(zip(("subject", "relation", "object"), f, strict=True)) for f in world.facts))
    named += [
        dict(zip(("id", "alias", "language"), row, strict=False)) for row in (*world.aliases, *world.spoken_aliases)
    ]
    write_lines(sources[1].path, named + [{"id": entity, "description": text} for entity, text in world.descriptions])
    write_lines(sources[2].path, ({"id": entity, "type": kind} for entity, kind in world.types))
    return sources if world.types else sources[:2]


def write_lines(path: Path, records: Iterable[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")


def read_world(sources: Iterable[Source]) -> World:
    """Read sources into plain data with the readers of the build."""
    rows: dict[str, list[Any]] = {"facts": [], "names": [], "types": []}
    for source in sources:
        for batch in Reading(source, ReadOptions()).batches():
            rows[batch.kind].extend(tuple(row.values()) for row in batch.table.to_pylist())
    return World(
        facts=tuple(rows["facts"]),
        names=tuple((entity, text) for entity, alias, text, _ in rows["names"] if not alias),
        types=tuple(rows["types"]),
        aliases=tuple((entity, text) for entity, alias, text, _ in rows["names"] if alias),
    )


def sample_sources() -> list[Source]:
    return [Source(EXAMPLES / f"sample.{kind}.txt", kind) for kind in ("facts", "names", "types")]


@pytest.fixture(scope="session", autouse=True)
def caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep caches in a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBTOOLS_CACHE", str(tmp_path_factory.mktemp("caches")))
        yield


@pytest.fixture(scope="session")
def small_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a small pretrained encoder, or skip."""
    for module in ("torch", "tokenizers"):
        pytest.importorskip(module, reason=f"pretrained encoders need {module}: pip install 'kbtools[minilm]'")
    return write_encoder(tmp_path_factory.mktemp("encoder") / "model")


@pytest.fixture(scope="session")
def examples() -> Path:
    """Return the folder of the sample's files."""
    return EXAMPLES


@pytest.fixture(scope="session", params=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> str:
    """Return the name of each backend in turn."""
    return str(request.param)


@pytest.fixture(scope="session")
def make_kb(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, World], Any]:
    """Return a function that makes a knowledge base of a world in a backend."""
    return lambda backend, world: BACKENDS[backend](world, tmp_path_factory.mktemp(backend))


@pytest.fixture(scope="session")
def copy_kb(tmp_path_factory: pytest.TempPathFactory) -> Callable[[World, Path], Path]:
    """Return a function that copies the knowledge base of a world to a path; it is built once, which takes longest."""

    @functools.cache
    def built(world: World) -> Path:
        folder = tmp_path_factory.mktemp("built")
        build(write_world(world, folder), folder / "world.kb", options=ReadOptions(), watch=BuildProgress())
        return folder / "world.kb"

    return lambda world, path: shutil.copytree(built(world), path)


@pytest.fixture(scope="session")
def new_world() -> type[World]:
    """Return the class of worlds, for tests that need other worlds."""
    return World


@pytest.fixture(scope="session")
def kites(make_kb: Callable[[str, World], Any]) -> Callable[..., Path]:
    """Return a function that makes a folder of a few entities with all that one may have, and of further rows."""

    def make(*, language: str, **more: tuple[Any, ...]) -> Path:
        rows = {kind: getattr(KITES, kind) + further for kind, further in more.items()}
        return make_kb("embedded", replace(KITES, language=language, **rows)).path

    return make


@pytest.fixture(scope="session")
def tiny_world() -> World:
    return TINY


@pytest.fixture(scope="session")
def tiny(backend: str, make_kb: Callable[[str, World], Any]) -> KnowledgeBase:
    """Return the tiny knowledge base in each backend."""
    return make_kb(backend, TINY)


@pytest.fixture(scope="session")
def tiny_memory(make_kb: Callable[[str, World], Any]) -> KnowledgeBase:
    return make_kb("memory", TINY)


@pytest.fixture(scope="session")
def sample_world() -> World:
    """Return the sample of examples/ as plain data."""
    return read_world(sample_sources())


@pytest.fixture(scope="session")
def sample_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sample from its files as `make demo` does; return the folder."""
    folder = tmp_path_factory.mktemp("sample") / "sample.kb"
    build(sample_sources(), folder, options=ReadOptions(), watch=BuildProgress())
    return folder


@pytest.fixture(scope="session")
def sample_memory(sample_world: World, tmp_path_factory: pytest.TempPathFactory) -> Answerer:
    """Return an answerer over the sample in memory."""
    return Answerer(make_memory(sample_world, tmp_path_factory.mktemp("memory")))


@pytest.fixture(scope="session")
def sample(backend: str, request: pytest.FixtureRequest) -> Answerer:
    """Return an answerer over the sample in each backend."""
    if backend == "memory":
        return request.getfixturevalue("sample_memory")
    if backend == "embedded":
        return open_kb(request.getfixturevalue("sample_path"))
    make, world = request.getfixturevalue("make_kb"), request.getfixturevalue("sample_world")
    return Answerer(make(backend, world))


@pytest.fixture(scope="session")
def fbsq_folder() -> Path:
    """Return the folder of the SimpleQuestions files, or skip."""
    folder = Path(os.environ.get("KBTOOLS_DATA", ROOT.parent / "shared" / "data")) / "simplequestions"
    if not (folder / "freebase-FBSQ.txt.gz").is_file():
        pytest.skip(f"{folder} holds no FBSQ; set it with KBTOOLS_DATA=FOLDER pytest")
    return folder


@pytest.fixture(scope="session")
def fbsq(fbsq_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Answerer:
    """Return an answerer over FBSQ, both layers."""
    sources = []
    for facts, others in (("freebase-FBSQ", "FBSQ"), ("freebase-FBSQ.ambiguity", "FBSQ.ambiguity")):
        sources.append(Source(fbsq_folder / f"{facts}.txt.gz", "facts"))
        sources += [Source(fbsq_folder / f"{others}.{kind[:-1]}.txt.gz", kind) for kind in ("names", "types")]
    folder = tmp_path_factory.mktemp("fbsq") / "fbsq.kb"
    build(sources, folder, options=ReadOptions(), watch=BuildProgress())
    return open_kb(folder)


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Mount a disk of 600 kB, or of the requested size, or skip."""
    folder = tmp_path / "disk"
    folder.mkdir()
    size = getattr(request, "param", "600k")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root and the right to mount: sudo pytest")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
