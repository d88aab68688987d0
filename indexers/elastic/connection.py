"""Where a cluster is and how it lets us in: from options and the environment, secrets never from the command line."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from kbtools.errors import NotAllowed, WrongFormat

PREFIX = "KBTOOLS_ELASTICSEARCH_"
DEFAULT_URL = "http://localhost:9200"
TIMEOUT = 30.0
"""Seconds that one request may take."""


@dataclass(frozen=True, slots=True)
class Connection:
    """The nodes of a cluster and the credentials for it; secrets are left out when it is printed."""

    urls: tuple[str, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None
    timeout: float = TIMEOUT

    @property
    def where(self) -> str:
        """Name the cluster in a message."""
        return ",".join(self.urls)


def read_connection(
    given: Mapping[str, str | None] | None = None, environment: Mapping[str, str] | None = None
) -> Connection:
    """Put a connection together from what was given, else from `KBTOOLS_ELASTICSEARCH_*` in the environment.

    Names are those of the environment, lower case and without the prefix: url, user, password, password_file,
    api_key, api_key_file, ca_file, client_cert, client_key, timeout.
    """
    environment = os.environ if environment is None else environment
    options = {key: value for key, value in (given or {}).items() if value}

    def option(name: str) -> str | None:
        return options.get(name) or environment.get(PREFIX + name.upper()) or None

    urls, user, password = read_urls(option("url") or DEFAULT_URL)
    for name in ("ca_file", "client_cert", "client_key"):
        path = option(name)
        if path and not Path(path).is_file():
            raise WrongFormat(f"{path}: no such file; it was given as {spelt(name)}", path=path)
    if option("client_key") and not option("client_cert"):
        raise NotAllowed(f"{spelt('client_key')} needs {spelt('client_cert')} beside it")
    return Connection(
        urls=urls,
        user=option("user") or user,
        password=secret("password", options, environment) or password,
        api_key=secret("api_key", options, environment),
        ca_file=path_of(option("ca_file")),
        client_cert=path_of(option("client_cert")),
        client_key=path_of(option("client_key")),
        timeout=read_timeout(option("timeout")),
    )


def spelt(name: str) -> str:
    """Name an option in both its spellings."""
    return f"--elasticsearch-{name.replace('_', '-')} or {PREFIX}{name.upper()}"


def path_of(text: str | None) -> Path | None:
    return Path(text) if text else None


def read_timeout(text: str | None) -> float:
    """Read seconds; raise WrongFormat for anything else."""
    try:
        seconds = float(text) if text else TIMEOUT
    except ValueError as error:
        raise WrongFormat(f"time-out {text!r}: expected seconds, such as 30") from error
    if not 0 < seconds < 86_400:
        raise WrongFormat(f"time-out {text!r}: expected seconds between 0 and 86400")
    return seconds


def read_urls(text: str) -> tuple[tuple[str, ...], str | None, str | None]:
    """Split a list of URLs, and take user and password out of them."""
    urls, user, password = [], None, None
    for url in (part.strip() for part in text.split(",")):
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise WrongFormat(f"Elasticsearch URL {hidden(url)!r}: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise WrongFormat(f"Elasticsearch URL {hidden(url)!r}: expected http://host:port or https://host:port")
        user, password = parts.username or user, parts.password or password
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        port = port or (443 if parts.scheme == "https" else 9200)
        urls.append(f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/')}")
    return tuple(dict.fromkeys(urls)), user, password


def hidden(url: str) -> str:
    """Leave credentials out of a URL."""
    scheme, separator, rest = url.rpartition("://")
    return scheme + separator + rest.rpartition("@")[2]


def secret(name: str, options: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """Read a secret from the file that an option or the environment names, else from the environment itself."""
    given = options.get(f"{name}_file")
    direct = environment.get(PREFIX + name.upper())
    file = given or (None if direct else environment.get(f"{PREFIX}{name.upper()}_FILE"))
    if not file:
        return direct or None
    try:
        found = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NotAllowed(f"{file}: the {name.replace('_', ' ')} cannot be read from it ({error})", path=file) from error
    if not found:
        raise NotAllowed(f"{file}: empty; it should hold the {name.replace('_', ' ')}", path=file)
    return found
