"""Settings of a server; worker processes read them from the environment."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kbtools.errors import BadArgument

_VARIABLE = "KBTOOLS_SERVE_SETTINGS"
"""The environment variable that passes the settings to worker processes."""

_RESERVED = frozenset({"api", "health", "mcp", "metrics", "openapi.json", "ready", "reconcile"})
"""First parts of the server's own paths, which are not allowed as names of knowledge bases."""

_ROOT_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The knowledge bases, how to open them, and the server's place.

    `kbs` are folders, or names on the cluster with the URL `elasticsearch` (empty for that of the environment); `cors`
    are the origins whose pages may read answers, `*` for all; `hosts` are the accepted host names, empty for any. With
    `teach`, everyone who can reach the server may teach. The page links entities to `link`, with their ids for `{id}`.
    """

    kbs: tuple[str, ...]
    backend: str = "embedded"
    models: str | None = None
    tagger: str | None = None
    device: str = "cpu"
    trust_plugins: bool | None = None
    elasticsearch: str | None = None
    root_path: str = ""
    cors: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    teach: bool = False
    link: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "root_path", self.root_path.rstrip("/"))
        if not _ROOT_PATH.fullmatch(self.root_path):
            raise BadArgument(
                f"the root path must be like /kb or /tools/kb, found {self.root_path!r}", name="root_path"
            )

        if self.link and not (self.link.startswith(("http://", "https://")) and "{id}" in self.link):
            raise BadArgument(
                f"a link must be like https://www.wikidata.org/wiki/{{id}}, found {self.link!r}", name="link"
            )

    def to_environment(self) -> None:
        os.environ[_VARIABLE] = json.dumps(asdict(self))

    @classmethod
    def from_environment(cls) -> "ServeSettings":
        record = json.loads(os.environ[_VARIABLE])
        return cls(**record | {name: tuple(record[name]) for name in ("kbs", "cors", "hosts")})


def kb_names(kbs: Sequence[str]) -> list[str]:
    """Return the names of knowledge bases in paths, folders without `.kb`; raise BadArgument if two share a name."""
    names = [Path(os.path.realpath(kb)).name.removesuffix(".kb") for kb in kbs]
    for name, kb in zip(names, kbs, strict=True):
        if not name or name in _RESERVED:
            raise BadArgument(f"{kb}: {name!r} is a path of the server's own; rename the folder", name=name)
        if names.count(name) > 1:
            raise BadArgument(f"{kb}: two knowledge bases are named {name!r}; rename a folder", name=name)
    return names
