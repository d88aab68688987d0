"""A served knowledge base: reopened when it is rebuilt; the previous edition is closed when idle."""

import logging
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from kbtools.answering.answerer import Answerer, models_folder, open_kb
from kbtools.entry_points import BACKENDS, load_class
from kbtools.errors import KBToolsError
from kbtools.serve.overview import make_overview
from kbtools.serve.settings import ServeSettings
from kbtools.serve.vocabulary import Vocabulary
from kbtools.storage import folder_identity

logger = logging.getLogger(__name__)

ASKED_AGAIN = 1.0
"""Seconds between two checks of a cluster's current version: an update takes longer."""


class Edition:
    """One build of a knowledge base, open as long as it is the newest or a request uses it."""

    def __init__(self, answerer: Answerer) -> None:
        self.answerer = answerer
        self.vocabulary = Vocabulary(answerer.kb)
        self.users = 0

    @cached_property
    def overview(self) -> dict[str, Any]:
        """The overview of the knowledge base, cached since it asks questions."""
        return make_overview(self.answerer, self.vocabulary)

    def in_languages(self, lang: str | None) -> "Edition":
        """Return the same build for questions in some languages, as `Answerer.in_languages` does."""
        if lang is None:
            return self
        spoken = copy(self)
        vars(spoken).pop("overview", None)
        spoken.answerer = self.answerer.in_languages(lang)
        return spoken


class LiveKB:
    """A knowledge base by its name in paths; `identity` changes when it is rebuilt."""

    def __init__(self, name: str, *, open_answerer: Callable[[], Answerer], identity: Callable[[], Hashable]) -> None:
        self.name = name
        self.open_answerer, self.identity = open_answerer, identity
        self.lock, self.opening = Lock(), Lock()
        self.opened_as = identity()
        self.edition = Edition(open_answerer())

    @contextmanager
    def newest(self) -> Iterator[Edition]:
        """Yield the newest edition; a previous one is closed when its last user is done."""
        self.reopen_if_rebuilt()
        with self.lock:
            edition = self.edition
            edition.users += 1
        with self.held(edition, users=0):
            yield edition

    @contextmanager
    def held(self, edition: Edition, *, users: int = 1) -> Iterator[None]:
        """Keep an open edition open for one more user, or for one already counted."""
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
        """Open the build that replaced the current one, in one thread while others keep using the current one.

        If it cannot be opened, all keep using the current one.
        """
        identity = self.identity()
        if identity is None or identity == self.opened_as or not self.opening.acquire(blocking=False):
            return
        try:
            if identity != self.opened_as:
                self.opened_as = identity
                self.replace(Edition(self.open_answerer()))
        except (KBToolsError, OSError) as error:
            logger.error("%s was rebuilt and cannot be opened; the old version answers: %s", self.name, ascii(error))
        finally:
            self.opening.release()

    def replace(self, newest: Edition) -> None:
        """Replace the current edition, which is closed if nobody uses it."""
        with self.lock:
            former, self.edition = self.edition, newest
            if not former.users:
                former.answerer.close()
        logger.info("%s was rebuilt and is open again", self.name)


def open_live_kb(name: str, kb: str, settings: ServeSettings) -> LiveKB:
    """Open a folder or, with a cluster in the settings, an index; raises as `open_kb` does."""
    if settings.elasticsearch is not None:
        return LiveKB(
            name, open_answerer=lambda: _open_on_cluster(kb, settings), identity=ClusterIdentity(kb, settings)
        )
    return LiveKB(
        name,
        open_answerer=lambda: open_kb(kb, backend=settings.backend, models=settings.models, **_parts_of(settings)),
        identity=lambda: folder_identity(Path(kb)),
    )


class ClusterIdentity:
    """A function for the current indexes of a knowledge base on a cluster, cached for a moment.

    None if the cluster does not answer: then the open edition stays.
    """

    def __init__(self, kb: str, settings: ServeSettings) -> None:
        from kbtools.indexers.elastic.cluster import Cluster
        from kbtools.indexers.elastic.connection import read_connection

        self.kb, self.cluster = kb, Cluster(read_connection(settings.elasticsearch))
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
            logger.warning("%s: cannot be looked up, the open version still answers: %s", self.kb, ascii(error))
            self.indexes = None
        finally:
            self.asked = time.monotonic()
            self.lock.release()
        return self.indexes


def _open_on_cluster(kb: str, settings: ServeSettings) -> Answerer:
    """Open a knowledge base on a cluster; it keeps the version that is now current."""
    knowledge_base = load_class(BACKENDS, "elasticsearch")(kb, url=settings.elasticsearch)
    return Answerer(knowledge_base, models=models_folder(settings.models), **_parts_of(settings))


def _parts_of(settings: ServeSettings) -> dict[str, Any]:
    return {"tagger": settings.tagger, "device": settings.device, "trust_plugins": settings.trust_plugins}
