"""A knowledge base that is served: opened again when it is rebuilt, its former edition closed when idle."""

import logging
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from kbtools.answering.answerer import Answerer, models_folder, open_kb
from kbtools.entry_points import BACKENDS, load_class
from kbtools.errors import KBToolsError
from kbtools.serve.overview import make_overview
from kbtools.serve.settings import ServeSettings
from kbtools.serve.vocabulary import Vocabulary
from kbtools.storage import folder_identity

if TYPE_CHECKING:
    from kbtools.indexers.elastic.cluster import Cluster

logger = logging.getLogger(__name__)

ASKED_AGAIN = 1.0
"""Seconds after which a cluster is asked again which version is current: an update takes longer."""


class Edition:
    """One build of a knowledge base, open for as long as a request uses it or it is the newest."""

    def __init__(self, answerer: Answerer) -> None:
        self.answerer = answerer
        self.vocabulary = Vocabulary(answerer.kb)
        self.users = 0

    @cached_property
    def overview(self) -> dict[str, Any]:
        """Describe what the knowledge base holds; made once, since it asks questions."""
        return make_overview(self.answerer, self.vocabulary)

    def in_languages(self, lang: str | None) -> "Edition":
        """Return the same build asked in some languages; raise UnknownLanguage if no name is in one."""
        if lang is None:
            return self
        spoken = copy(self)
        spoken.answerer = self.answerer.in_languages(lang)
        return spoken


class LiveKB:
    """A knowledge base by its name in paths; `identity` tells one build from the one that takes its place."""

    def __init__(self, name: str, *, open_answerer: Callable[[], Answerer], identity: Callable[[], Hashable]) -> None:
        self.name = name
        self.open_answerer, self.identity = open_answerer, identity
        self.lock, self.opening = Lock(), Lock()
        self.opened_as = identity()
        self.edition = Edition(open_answerer())

    @contextmanager
    def newest(self) -> Iterator[Edition]:
        """Lend the newest edition; a former one is closed when its last user is done."""
        self.reopen_if_rebuilt()
        with self.lock:
            edition = self.edition
            edition.users += 1
        with self.held(edition, users=0):
            yield edition

    @contextmanager
    def held(self, edition: Edition, *, users: int = 1) -> Iterator[None]:
        """Keep an edition open that is open, by one user more unless that one is counted already."""
        with self.lock:
            edition.users += users
        try:
            yield
        finally:
            with self.lock:
                edition.users -= 1
                if edition is not self.edition and not edition.users:
                    edition.answerer.close()

    def reopen_if_rebuilt(self) -> None:
        """Open the build that took the place of this one, in one thread: the others go on with the former.

        Where it cannot be opened, all go on with the former.
        """
        identity = self.identity()
        if identity is None or identity == self.opened_as or not self.opening.acquire(blocking=False):
            return
        try:
            if identity != self.opened_as:
                self.opened_as = identity
                self.replace(Edition(self.open_answerer()))
        except (KBToolsError, OSError) as error:
            logger.error("%s was rebuilt and cannot be opened, the former edition answers: %s", self.name, ascii(error))
        finally:
            self.opening.release()

    def replace(self, newest: Edition) -> None:
        """Put an edition in the place of the former, which is closed if nobody uses it."""
        with self.lock:
            former, self.edition = self.edition, newest
            if not former.users:
                former.answerer.close()
        logger.info("%s was rebuilt and is open again", self.name)


def open_live_kb(name: str, kb: str, settings: ServeSettings) -> LiveKB:
    """Open a folder or, where the settings name a cluster, an index there; raise as `open_kb` does."""
    if settings.elasticsearch is not None:
        return LiveKB(
            name, open_answerer=lambda: _open_on_cluster(kb, settings), identity=ClusterIdentity(kb, settings)
        )
    return LiveKB(
        name,
        open_answerer=lambda: open_kb(
            kb,
            backend=settings.backend,
            models=settings.models,
            tagger=settings.tagger,
            device=settings.device,
            trust_plugins=settings.trust_plugins,
        ),
        identity=lambda: folder_identity(Path(kb)),
    )


class ClusterIdentity:
    """The indexes behind the name of a knowledge base on a cluster, asked for again after a moment.

    Nothing where the cluster does not tell: then the edition that is open goes on.
    """

    def __init__(self, kb: str, settings: ServeSettings) -> None:
        self.kb, self.cluster = kb, _connect(settings)
        self.once = replace(self.cluster.patience, total=0.0)
        self.lock = Lock()
        self.asked = -ASKED_AGAIN
        self.indexes: tuple[str, ...] | None = None

    def __call__(self) -> Hashable:
        if time.monotonic() - self.asked < ASKED_AGAIN or not self.lock.acquire(blocking=False):
            return self.indexes
        try:
            behind = self.cluster.ask(
                "GET", f"/_alias/{self.kb}", to=f"look up {self.kb}", missing_ok=True, patience=self.once
            )
            self.indexes = tuple(sorted(behind)) if behind else None
        except KBToolsError as error:
            logger.warning("%s: cannot be looked up, the edition that is open answers: %s", self.kb, ascii(error))
            self.indexes = None
        finally:
            self.asked = time.monotonic()
            self.lock.release()
        return self.indexes


def _connect(settings: ServeSettings) -> "Cluster":
    """Connect to the cluster that the settings name."""
    from kbtools.indexers.elastic.cluster import Cluster
    from kbtools.indexers.elastic.connection import read_connection

    return Cluster(read_connection(settings.elasticsearch))


def _open_on_cluster(kb: str, settings: ServeSettings) -> Answerer:
    """Open a knowledge base on a cluster; it stays with the version that is current now."""
    cluster = _connect(settings)
    cluster.greet()
    knowledge_base = load_class(BACKENDS, "elasticsearch")(kb, cluster)
    folder = models_folder(settings.models)
    return Answerer(
        knowledge_base,
        models=folder,
        tagger=settings.tagger,
        device=settings.device,
        trust_plugins=settings.trust_plugins,
    )
