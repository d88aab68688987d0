"""Connection to a cluster: its URLs and credentials, from a URL and the environment.

Secrets never come from the command line, and kbtools never shows them: an error names the variable of a secret, never
its value.
"""

import base64
import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from html.entities import html5
from pathlib import Path
from urllib.parse import quote, unquote

from kbtools.errors import NotAllowed, WrongFormat

PREFIX = "KBTOOLS_ELASTICSEARCH_"
_DEFAULT_URL = "http://localhost:9200"
_TIMEOUT = 30.0
"""Seconds that one request may take; a bulk request to a busy cluster needs several."""

_SHORTEST_HIDDEN = 4
"""Least length of a secret that is replaced in a server's messages: shorter ones are parts of common words."""

_URL = re.compile(
    r"(?P<scheme>https?)://(?:(?P<user>[^:@]*)(?::(?P<password>.*))?@)?"
    r"(?P<host>\[[\w:.%]+\]|[^\s:/?#@,\[\]]+)(?::(?P<port>\d{1,5}))?(?P<path>/[^?#@\s]*)?",
    re.IGNORECASE | re.DOTALL,
)
"""A node's URL; a password extends to the last `@`."""

_KEY = re.compile(r"[!-~]+")
"""An API key that fits in a header: visible ASCII."""


@dataclass(frozen=True, slots=True)
class Connection:
    """The nodes of a cluster and its credentials; secrets are omitted from its repr."""

    urls: tuple[str, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None
    timeout: float = _TIMEOUT

    @property
    def where(self) -> str:
        """The addresses of the cluster, for messages."""
        return ",".join(self.urls)

    def hide(self, text: str) -> str:
        """Replace secrets in a server's message, in every form in which a request or a message may contain them."""
        known = (self.password, self.api_key, *_decoded_key(self.api_key or ""))
        secrets = tuple(secret for secret in known if secret and len(secret) >= _SHORTEST_HIDDEN)
        return _secret_pattern(secrets).sub("***", text) if secrets else text


def _decoded_key(key: str) -> tuple[str, ...]:
    """Return the id and the key encoded in an API key, and the key alone; empty if it is not one."""
    try:
        pair = base64.b64decode(key, validate=True).decode()
    except ValueError:
        return ()
    return pair, pair.partition(":")[2]


_BROKEN = r"(?:[\r\n]\s*)?"
"""A regular expression for an optional line break within a secret."""


@lru_cache
def _secret_pattern(secrets: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a pattern of secrets: literal, with any characters escaped, as bytes, and inside base64."""
    forms: set[str] = set()
    for secret in secrets:
        composed, data = unicodedata.normalize("NFC", secret), secret.encode()
        misread = {data.decode("latin-1"), data.decode("cp1252", "replace")}
        forms |= {_BROKEN.join(map(_escapes_of, text)) for text in {secret, composed} | misread}
        texts = {secret, composed, unicodedata.normalize("NFD", secret)}
        for data in {data for text in texts for data in _encodings_of(text)}:
            forms |= {r"(?:[\s:,-]|0x)*".join(f"{byte:02x}" for byte in data), r"[\s,]+".join(map(str, data))}
            forms |= set(map(_base64_form, _base64_cores(data)))
        twice = {core for once in _base64_cores(secret.encode()) for core in _base64_cores(once.encode())}
        forms |= set(map(_base64_form, twice))
    # The longest first, so that matching one does not leave the rest of another.
    return re.compile("|".join(sorted(forms, key=len, reverse=True)), re.IGNORECASE)


def _encodings_of(text: str) -> set[bytes]:
    """Encode a text in UTF-8, and in Latin-1 if possible."""
    return {text.encode(), *([text.encode("latin-1")] if max(text) < "\u0100" else [])}


def _escapes_of(character: str) -> str:
    """Return a regular expression for a character and its escapes in URLs, HTML, JSON and Python."""
    number, parts = ord(character), unicodedata.normalize("NFD", character)
    slashes = r"\\{1,4}"  # A text escaped several times has several.
    forms = {
        rf"\\{{0,4}}{re.escape(character)}",
        *("".join(f"(?:%(?:25)*|=){byte:02x}" for byte in data) for data in _encodings_of(character)),
        *("".join(rf"{slashes}(?:x{byte:02x}|{byte:03o})" for byte in data) for data in _encodings_of(character)),
        "".join(rf"(?:{slashes}|%)u{unit.hex()}" for unit in _utf_16_units(character)),
        rf"{slashes}(?:U{number:08x}|u\{{0*{number:x}\}})",
        rf"\\{{0,4}}&(?:amp;)*\#(?:0*{number}|x0*{number:x});",
    }
    forms |= {
        rf"\\{{0,4}}&(?:amp;)*{name}" for name, meant in html5.items() if meant == character and name.endswith(";")
    }
    forms |= {r"\+", "\u00a0"} if character == " " else set()
    forms |= {r"[?\ufffd]+"} if number > 127 else set()  # Replacements for characters missing in a server's encoding.
    forms |= {"".join(map(_escapes_of, parts))} if parts != character else set()
    return f"(?:{'|'.join(sorted(forms, key=len, reverse=True))})"


def _utf_16_units(character: str) -> list[bytes]:
    """Split a character into the UTF-16 units of its JSON escape: one of two bytes, or two."""
    data = character.encode("utf-16-be")
    return [data[place : place + 2] for place in range(0, len(data), 2)]


def _base64_cores(data: bytes) -> set[str]:
    """Return the base64 digits of bytes at any position in a longer text, such as `user:password`."""
    cores = set()
    for before in range(3):
        digits = base64.b64encode(bytes(before) + data).decode().rstrip("=")
        # A digit has six bits: those at the edges may include bits of adjacent text.
        cores.add(digits[-(-8 * before // 6) : 8 * (before + len(data)) // 6])
    return {core for core in cores if len(core) >= _SHORTEST_HIDDEN}


def _base64_form(core: str) -> str:
    """Return a regular expression for base64 digits: standard or URL-safe, escaped, and broken into lines."""
    other = {"+": r"(?:[+-]|%2b)", "/": r"(?:[/_]|%2f)"}
    digits = _BROKEN.join(other.get(digit, digit) for digit in core)
    return rf"[\w+/-]?{digits}[\w+/-]?(?:=|%3d){{0,2}}"


def read_connection(url: str | None = None, environment: Mapping[str, str] | None = None) -> Connection:
    """Build a connection from a URL and `KBTOOLS_ELASTICSEARCH_*` in the environment, which may include a URL.

    The variables, lower case and without the prefix, are: url, user, password, password_file, api_key, api_key_file,
    ca_file, client_cert, client_key, timeout.
    """
    environment = os.environ if environment is None else environment

    def setting(name: str) -> str | None:
        return environment.get(PREFIX + name.upper()) or None

    urls, user, password = _read_urls(url or setting("url") or _DEFAULT_URL)
    files = {name: setting(name) for name in ("ca_file", "client_cert", "client_key")}
    for name, path in files.items():
        if path and not Path(path).is_file():
            source = "" if name == "client_key" else f"{path}: "
            raise WrongFormat(f"{source}no such file; it was given as {_variable(name)}")
    if files["client_key"] and not files["client_cert"]:
        raise NotAllowed(f"{_variable('client_key')} needs {_variable('client_cert')} beside it")
    user = setting("user") or user
    password = _read_secret("password", environment) or password
    _check_text(user or "", _variable("user"))
    if user and ":" in user:
        raise NotAllowed(
            f"{_variable('user')}: a user name cannot contain a colon; set the password as {_variable('password')}"
        )
    api_key = _read_secret("api_key", environment)
    if api_key and not _KEY.fullmatch(api_key := api_key.strip()):
        raise NotAllowed(
            f"{_variable('api_key')}, or its file: contains a line break, a space or a letter that is not ASCII, which "
            "no API key has; give the key as Elasticsearch encoded it, on one line"
        )
    return Connection(
        urls=urls,
        user=user,
        password=password,
        api_key=api_key,
        **{name: Path(path) if path else None for name, path in files.items()},
        timeout=_read_timeout(setting("timeout")),
    )


def _variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()


def _read_timeout(text: str | None) -> float:
    """Read seconds; raise WrongFormat for anything else."""
    try:
        seconds = float(text) if text else _TIMEOUT
    except ValueError as error:
        raise WrongFormat(f"time-out {text!r}: expected seconds, such as 30") from error
    if not 0 < seconds < 86_400:
        raise WrongFormat(f"time-out {text!r}: expected seconds between 0 and 86400")
    return seconds


def _read_urls(text: str) -> tuple[tuple[str, ...], str | None, str | None]:
    """Split a list of URLs, and extract user and password, with percent escapes decoded."""
    urls, user, password = [], None, None
    # A password may contain a comma: only one before another scheme separates URLs.
    for url in re.split(r",(?=\s*https?://)", text.strip(), flags=re.IGNORECASE):
        match = _URL.fullmatch(url.strip())
        if match is None or re.search(r"[/?#]", match["password"] or ""):
            escapes = "; in a user or password write / as %2F, ? as %3F, # as %23 and @ as %40" if "@" in url else ""
            raise WrongFormat(
                f"Elasticsearch URL {_hidden(url)!r}: expected http://host:port or https://host:port{escapes}"
            )
        scheme = match["scheme"].lower()
        port = int(match["port"] or (443 if scheme == "https" else 9200))
        try:
            host = match["host"].lower().encode("idna").decode()
            path = quote((match["path"] or "").rstrip("/"), safe="/%:+~,;=!$&'()*")
            user = unquote(match["user"] or "", errors="strict") or user
            password = unquote(match["password"] or "", errors="strict") or password
        except UnicodeError:
            raise WrongFormat(
                f"Elasticsearch URL {_hidden(url)!r}: contains escapes or characters that are not text"
            ) from None
        if not 0 < port < 65_536:
            raise WrongFormat(f"Elasticsearch URL {_hidden(url)!r}: expected a port from 1 to 65535")
        urls.append(f"{scheme}://{host}:{port}{path}")
    return tuple(dict.fromkeys(urls)), user, password


def _hidden(url: str) -> str:
    """Return the part of a URL that cannot be a secret: its scheme and the beginning of its host."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator or not re.fullmatch(r"[A-Za-z]{1,10}", scheme):
        return "..."
    host = re.match(r"[^:/?#,\s]*", rest.rpartition("@")[2])
    return f"{scheme}://{host[0] if host else ''}..."


def _read_secret(name: str, environment: Mapping[str, str]) -> str | None:
    """Read a secret from the environment, else from the file named there.

    The name of a file that does not exist is not shown: it may be the secret itself, assigned to the wrong variable.
    """
    direct, in_file = environment.get(_variable(name)), _variable(f"{name}_file")
    file = None if direct else environment.get(in_file)
    if not file:
        _check_text(direct or "", _variable(name))
        return direct or None
    kind = name.replace("_", " ")
    if not Path(file).exists():
        raise NotAllowed(f"{in_file}: no such file; it should contain the {kind}")
    try:
        secret = Path(file).read_bytes().decode("utf-8-sig").rstrip("\r\n")
    except OSError as error:
        raise NotAllowed.at(file, f"the {kind} cannot be read from it ({error.strerror})") from error
    except UnicodeDecodeError:
        raise NotAllowed.at(file, f"the {kind} in it is not UTF-8 text") from None
    if not secret.strip():
        raise NotAllowed.at(file, f"empty; it should contain the {kind}")
    return secret


def _check_text(secret: str, source: str) -> None:
    """Raise an error for bytes of the environment that are not text; the codec's own error would show them."""
    try:
        secret.encode()
    except UnicodeEncodeError:
        raise NotAllowed(f"{source}: is not UTF-8 text") from None
