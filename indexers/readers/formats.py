"""Detection of a file's format by its suffix, else by its opening lines; unsupported formats are refused by name."""

import logging
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from kbtools.entry_points import READERS, home_of, list_plugins, load_plugin
from kbtools.errors import BrokenPlugin, MissingDependency, WrongFormat
from kbtools.indexers.readers.batches import BOM, Block, SourceKind, lines_of, shorten
from kbtools.indexers.readers.json_documents import may_be_document
from kbtools.text.encodings import wide_encoding

logger = logging.getLogger(__name__)

_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
DATABASES = (".sqlite", ".sqlite3", ".db", ".duckdb")
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
OPENING = 100
"""Lines examined to detect a format."""

_TERM = rb"(?:<[^>]*>|_:\S+)"
_PREDICATE = rb"(?:<[^>]*>|a)"
_SYNTAXES: dict[str, tuple[re.Pattern[bytes], tuple[str, ...]]] = {
    "turtle": (
        re.compile(
            rb"(?i:@?(?:prefix|base)) +[^\t]*<.*|%b\s+%b\s+(?:%b|\".*\"\S*)\s*[;,]\s*" % (_TERM, _PREDICATE, _TERM)
        ),
        ("turtle", "trig"),
    ),
    "trig": (re.compile(rb"(?:(?i:graph)\s+)?%b\s*\{.*" % _TERM), ("trig",)),
    "n-quads": (
        re.compile(rb"%b\s+<[^>]*>\s+(?:%b|\".*\"\S*)\s+%b\s*\.\s*" % (_TERM, _TERM, _TERM)),
        ("n-quads", "trig"),
    ),
}
"""RDF syntaxes recognised by their first line, and the readers that accept such a line."""

_DIVIDERS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", "  ": "several spaces"}

_RDF_XML = re.compile(rb"<rdf:RDF|<!DOCTYPE rdf:RDF")
_JSON_LD = re.compile(rb'\s*[\[{].*?"@(?:context|graph|id)"\s*:', re.DOTALL)

PAGE = 4096
"""Bytes searched for a web page; the root of an OWL file follows a licence and entity declarations."""

_HTML = (b"<!", b"<html", b"<head")
_XML = (b"<?xml", b"<rss")
_ELEMENT = re.compile(rb"\A<[A-Za-z][\w.-]*[\s>](?s:.*)<([A-Za-z][\w.-]*)(?:\s[^<>]*)?>[^<]*</\1>(?=[\s<])")
"""XML without a declaration: an element that begins the file, and one that ends."""

_OWL_XML = re.compile(rb"<Ontology\b")
_ONTOLOGIES = {
    "OWL functional syntax": re.compile(rb"(?:Prefix|Ontology)\s*\("),
    "OWL Manchester syntax": re.compile(rb"(?:Prefix|Ontology):\s"),
    "OBO": re.compile(rb"format-version:\s"),
}
"""Ontology syntaxes other than RDF, and how each begins."""

_RECORDS = {
    "BibTeX": (
        re.compile(rb"(?:%[^\n]*\n|\s)*@(?:\w+)\s*\{\s*[^\s,{}=]+\s*,"),
        "export the references as .csv, as Zotero does",
    ),
    "RIS": (re.compile(rb"TY  - \w+"), "export the references as .csv, as Zotero does"),
    "vCard": (re.compile(rb"BEGIN:VCARD\s"), "export the contacts as .csv"),
    "a PDF": (re.compile(rb"%PDF-"), "copy its table into a spreadsheet program and save it as .csv"),
    "SQL": (
        re.compile(
            rb"(?i)(?:\s|--[^\n]*\n|/\*[^*]*\*/;?|(?:SET|BEGIN|PRAGMA|USE|SELECT PG_CATALOG)\b[^\n]*;)*"
            rb"(?:CREATE (?:TABLE|DATABASE|SCHEMA)|DROP TABLE|INSERT INTO|LOCK TABLES) +\S"
        ),
        "load it into a database, sqlite3 NEW.db < FILE, and select its rows with --table NEW.db --query",
    ),
    "YAML": (re.compile(rb"(?:---\s*\n)?- \w+: [^\n]*\n  \w+:"), "convert it to JSON: yq -o json FILE"),
}
"""Formats of records other than tables: how each begins, and how to make a table of it."""


def find_format(path: Path, kind: SourceKind, first: Block) -> str:
    """Return the name of the reader of a file, from its suffix or from the first opening line that decides it."""
    content = ((number, line) for number, line in lines_of(first) if line.strip() and not line.startswith(b"#"))
    opening = list(islice(content, OPENING))
    suffix = suffix_of(path)
    sniffers, named = [], ""
    for name, reader in _readers():
        if suffix in reader.suffixes:
            named = named or name
        if hasattr(reader, "sniff"):
            sniffers.append((name, reader))
    # Before the suffix is considered: Turtle named .nt is still Turtle.
    if opening:
        if syntax := find_syntax(path, first, *opening[0], named):
            return syntax
        if named != "json-ld" and first.text.lstrip().startswith(b"[") and may_be_document(first.text):
            return "jsonl"
    if named:
        return named
    for number, line in opening:
        for name, reader in sniffers:
            if not reader.sniff(line, kind):
                continue
            # A line of names or types has four columns, and would pass for a fact with three and a dot.
            if name == "release" and kind == "facts" and line.startswith(b"<fb:"):
                problem = f"found {_shown(line)}, which names or types an entity, expected facts"
                raise WrongFormat.at(path, f"{problem}; pass the file to --names or --types", line=number)
            return name
    raise unknown_format(path, kind, *(opening[0] if opening else (1, b"")))


def suffix_of(path: Path) -> str:
    """Return the suffix of a file in lower case, without that of its compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _COMPRESSIONS]
    return suffixes[-1] if suffixes else ""


def _readers() -> Iterator[tuple[str, Any]]:
    """Yield the readers, built-in ones first, so that a broken plugin cannot block them.

    The release comes before N-Triples, which could also parse its lines.
    """
    offers = [(home_of(points[0]) != "kbtools", name) for name, points in list_plugins(READERS).items()]
    for strange, name in sorted(offers, key=lambda offer: (offer[0], offer[1] != "release", offer[1])):
        try:
            yield name, load_plugin(READERS, name)
        except (BrokenPlugin, MissingDependency) as error:
            if not strange:
                raise
            logger.warning("left out a reader: %s", error)


def find_syntax(path: Path, first: Block, number: int, line: bytes, named: str) -> str:
    """Return the reader of an RDF document, else an empty text; raise WrongFormat for the suffix of another syntax."""
    syntaxes = [(name, takers) for name, (pattern, takers) in _SYNTAXES.items() if pattern.fullmatch(line)]
    if _RDF_XML.search(first.text[:PAGE]) and line.lstrip().startswith(b"<"):
        syntaxes = [("rdf-xml", ("rdf-xml",))]
    if _JSON_LD.match(first.text[:PAGE]):
        # A JSON Lines object may have such a field without being a document.
        syntaxes = [("json-ld", ("json-ld", "jsonl") if line.startswith(b"{") else ("json-ld",))]
    if not syntaxes:
        return ""
    name, takers = syntaxes[0]
    if named in takers:
        return named
    if not named:
        return name
    reader: Any = load_plugin(READERS, name)
    problem = f"found {reader.called} ({_shown(line)}), which does not match its suffix"
    raise WrongFormat.at(path, f"{problem}; use --format {name}, or name it {reader.suffixes[0]}", line=number)


def unknown_format(path: Path, kind: SourceKind, number: int, line: bytes) -> WrongFormat:
    """Return an error that states what was found and expected, and suggests what the line may be."""
    sample = _shown(line) if line else "only blank lines"
    tables = "a table named .tsv, .csv, .jsonl, .parquet, .arrow or .feather"
    expected = {
        "facts": f"subject TAB relation TAB objects, N-Triples, or {tables}",
        "any": "RDF (N-Triples, N-Quads, Turtle, TriG, RDF/XML, JSON-LD)",
        "relations": tables,
        "redirects": f"N-Triples or {tables}",
    }.get(kind, f"<fb:m.id> TAB <fb:predicate> TAB value TAB ., N-Triples, or {tables}")
    advice = "check which file the option names"
    if kind != "any":
        if line.startswith(b"{"):
            advice += "; name JSON Lines .jsonl, or use --format jsonl"
        elif separator := next((mark for mark in _DIVIDERS if line.count(mark.encode()) > 1), None):
            advice += f"; if it is a table with a header and columns separated by {_DIVIDERS[separator]}, "
            advice += "use tabs between them" if separator == "  " else "use --format csv"
        else:
            advice += "; for a list of names, use the suffix .csv and the header name"
    return WrongFormat.at(path, f"found {sample}, expected {expected}; {advice}", line=number)


def _shown(line: bytes) -> str:
    return shorten(line.decode(errors="replace"))


def refuse_foreign(path: Path, start: bytes) -> None:
    """Raise WrongFormat for text in a wide encoding, a web page (usually a dead link), or another format."""
    if start[257:262] == b"ustar":
        raise WrongFormat.at(path, "found a tar archive, expected text; unpack it")
    if encoding := wide_encoding(start):
        cure = f"convert it with: iconv -f {encoding} -t UTF-8"
        raise WrongFormat.at(path, f"found {encoding}, expected UTF-8; {cure}", line=1)
    page = start.removeprefix(BOM).lstrip()
    if page.startswith(b"<") and _RDF_XML.search(page):
        return
    ontology = "OWL/XML" if page.startswith(b"<") and _OWL_XML.search(page) else None
    ontology = ontology or next((name for name, opening in _ONTOLOGIES.items() if opening.match(page)), None)
    if ontology:
        cure = "convert it with: robot convert --input FILE --output FILE.ttl"
        raise WrongFormat.at(path, f"found {ontology}, expected RDF; {cure}", line=1)
    for name, (opening, cure) in _RECORDS.items():
        if opening.match(page):
            raise WrongFormat.at(path, f"found {name}, which is not a table; {cure}", line=1)
    if page.lower().startswith(_HTML):
        cure = "the download link is probably dead"
        if b"<table" in page.lower():
            cure = "open it in a spreadsheet program and save its table as .csv"
        raise WrongFormat.at(path, f"found a web page ({start[:40].decode(errors='replace')!r}), {cure}", line=1)
    if page.lower().startswith(_XML) or _ELEMENT.search(page):
        cure = "export a table or RDF instead; if it is the message of a server, download it again"
        raise WrongFormat.at(path, f"found XML ({start[:40].decode(errors='replace')!r}), {cure}", line=1)
