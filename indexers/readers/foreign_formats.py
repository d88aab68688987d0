"""Formats that no reader takes, refused by name with what to do: web pages, XML, ontologies, references, contacts."""

import re
from pathlib import Path

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import BOM
from kbtools.text.encodings import wide_encoding

PAGE = 4096
"""Bytes searched for a web page; the root of an OWL file follows a licence and entity declarations."""

_HTML = (b"<!", b"<html", b"<head")
_XML = (b"<?xml", b"<rss")
_ELEMENT = re.compile(rb"\A<[A-Za-z][\w.-]*[\s>](?s:.*)<([A-Za-z][\w.-]*)(?:\s[^<>]*)?>[^<]*</\1>(?=[\s<])")
"""XML without a declaration: an element that begins the file, and one that ends."""

_RDF_XML = re.compile(rb"<rdf:RDF|<!DOCTYPE rdf:RDF")
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
    "YAML": (re.compile(rb"(?:---\s*\n)?- \w+: [^\n]*\n  \w+:"), "convert it to JSON: yq -o json FILE"),
}
"""Formats of records other than tables: how each begins, and how to make a table of it."""


def refuse_foreign(path: Path, start: bytes) -> None:
    """Raise WrongFormat for text in a wide encoding, a web page (usually a dead link), or another format."""
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
            raise WrongFormat.at(path, f"found {name}, which is no table; {cure}", line=1)
    if page.lower().startswith(_HTML):
        cure = "the download link is probably dead"
        if b"<table" in page.lower():
            cure = "open it in a spreadsheet program and save its table as .csv"
        raise WrongFormat.at(path, f"found a web page ({start[:40].decode(errors='replace')!r}), {cure}", line=1)
    if page.lower().startswith(_XML) or _ELEMENT.search(page):
        cure = "export a table or RDF instead; if it is the message of a server, download it again"
        raise WrongFormat.at(path, f"found XML ({start[:40].decode(errors='replace')!r}), {cure}", line=1)
