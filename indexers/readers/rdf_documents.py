"""RDF that is no triple a line: Turtle, TriG, RDF/XML, JSON-LD, and N-Quads, through Oxigraph's parser."""

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import SHOWN, Block, RecordBatch, Rows, Skips
from kbtools.indexers.readers.ntriples import PLACE, NTriplesReader
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.readers.sources import file_digest

_TRIPLES = 50_000
"""Triples in a batch of rows: some 10 MB."""

_ENCODED = re.compile(rb"""(<\?xml\b[^>]*?)\s+encoding=["']([A-Za-z0-9._-]+)["']""")
"""The head of XML as far as it names the encoding."""

_PIECE = 4096
"""Bytes of XML that are looked at together."""

_DEEPEST = 1_000
"""Depth of nested elements; the parser's time grows with its cube: 0.1 s for 4,000."""

_REMOTE = "No LoadDocumentCallback"
"""How the parser says that a context of JSON-LD lies on the web."""

_BRACED = re.compile(r"(?:\{|GRAPH) is not a valid (?:predicate|subject)")
"""How the parser of Turtle says that it came to a graph of TriG."""


class NQuadsReader(NTriplesReader):
    """Read N-Quads, a statement a line; the graph that one belongs to is not kept."""

    suffixes: ClassVar[tuple[str, ...]] = (".nq", ".nquads")
    syntax: ClassVar[str] = "N_QUADS"
    called: ClassVar[str] = "N-Quads"
    sample: ClassVar[bytes] = (
        b"<http://a/s> <http://a/p> <http://a/o> <http://a/g> .\nbroken\n<http://a/s> <http://a/p> <http://a/q> .\n"
    )


class _DocumentReader(NTriplesReader):
    """Read a document as a whole, streamed: after its first error nothing of it can be told."""

    whole: ClassVar[bool] = True

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        super().__init__(source, options, skips)
        self.path = str(source.path)
        self.numbers: dict[str, int] = {}

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        """Read triples as they come; raise WrongFormat at the first place that is no such document."""
        self.blanks = file_digest(Path(self.path))[:12]
        stream, rows = self.open_stream(iter(blocks)), Rows()
        try:
            for number, triple in enumerate(self.parse_document(stream)):
                self.keep(max(self.skips.lines, 1), triple, rows)
                if number % _TRIPLES == _TRIPLES - 1:
                    yield from rows.batches()
                    rows = Rows()
        except SyntaxError as error:
            if not stream.refused:
                raise self.unfit(error) from error
        if stream.refused:
            raise WrongFormat.at(self.path, stream.refused, line=max(self.skips.lines, 1))
        yield from rows.batches()
        yield from self.list_facts()

    def open_stream(self, blocks: Iterator[Block]) -> "_BlockStream":
        return _BlockStream(blocks, self.skips)

    def parse_document(self, stream: "_BlockStream") -> Iterator[Any]:
        syntax = getattr(self.oxigraph.RdfFormat, self.syntax)
        return self.oxigraph.parse(stream, format=syntax, base_iri="file:///", lenient=True)  # type: ignore[no-any-return]

    def spell(self, term: Any) -> str:
        """Number blank nodes as they come, since the parser names those without a label at random."""
        if isinstance(term, self.oxigraph.BlankNode):
            return f"_:{self.blanks}.{self.numbers.setdefault(term.value, len(self.numbers))}"
        return super().spell(term)

    def unfit(self, error: SyntaxError) -> WrongFormat:
        """Return an error that says where a document cannot be read on, and why."""
        line = error.lineno or max(self.skips.lines, 1)
        advice = "fix it, or name its syntax with --format"
        if _REMOTE in str(error):
            advice = "contexts on the web are not loaded; include the context in the file"
        elif self.syntax == "TURTLE" and _BRACED.search(str(error)):
            advice = "if it is TriG, with graphs in braces, use --format trig"
        reason = PLACE.sub("", str(error))
        reason = reason if len(reason) <= SHOWN else f"{reason[:SHOWN]}…"
        return WrongFormat.at(self.path, f"no {self.called} from here on ({reason}); {advice}", line=line)


class TurtleReader(_DocumentReader):
    """Read Turtle."""

    suffixes: ClassVar[tuple[str, ...]] = (".ttl", ".turtle")
    syntax: ClassVar[str] = "TURTLE"
    called: ClassVar[str] = "Turtle"
    sample: ClassVar[bytes] = b'@prefix a: <http://a/> .\na:s a:p a:o, [ a:q "1" ] ;\n  a:r "x"@en .\n'


class TriGReader(_DocumentReader):
    """Read TriG; the graph that a statement belongs to is not kept."""

    suffixes: ClassVar[tuple[str, ...]] = (".trig",)
    syntax: ClassVar[str] = "TRIG"
    called: ClassVar[str] = "TriG"
    sample: ClassVar[bytes] = b"@prefix a: <http://a/> .\na:g { a:s a:p a:o . }\n"


class RDFXMLReader(_DocumentReader):
    """Read RDF/XML, in which most ontologies come."""

    suffixes: ClassVar[tuple[str, ...]] = (".rdf", ".owl", ".rdfs")
    syntax: ClassVar[str] = "RDF_XML"
    called: ClassVar[str] = "RDF/XML"
    sample: ClassVar[bytes] = (
        b'<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="http://a/">\n'
        b'<rdf:Description rdf:about="http://a/s"><a:p rdf:resource="http://a/o"/></rdf:Description>\n</rdf:RDF>\n'
    )

    def open_stream(self, blocks: Iterator[Block]) -> "_BlockStream":
        return _XMLStream(blocks, self.skips)


class JSONLDReader(_DocumentReader):
    """Read JSON-LD whose context is in the file."""

    suffixes: ClassVar[tuple[str, ...]] = (".jsonld",)
    syntax: ClassVar[str] = "JSON_LD"
    called: ClassVar[str] = "JSON-LD"
    sample: ClassVar[bytes] = b'{"@context": {"p": "http://a/p"}, "@id": "http://a/s",\n "p": {"@id": "http://a/o"}}\n'


class _BlockStream:
    """Blocks as a stream that a parser reads; the lines that have come so far are counted."""

    def __init__(self, blocks: Iterator[Block], skips: Skips) -> None:
        self.blocks = blocks
        self.skips = skips
        self.text = b""
        self.place = 0
        self.refused = ""
        """Why no more is read, where that is so."""

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` bytes, none at the end."""
        if self.place == len(self.text):
            block = next(self.blocks, None)
            if block is None:
                return b""
            self.text, self.place = block.text, 0
        piece = self.text[self.place : self.place + size] if size >= 0 else self.text[self.place :]
        self.place += len(piece)
        self.skips.lines += piece.count(b"\n")
        return piece


def _recoded(blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield blocks of XML in UTF-8, which the parser takes alone, from the encoding that the head names."""
    first = next(blocks)
    head = _ENCODED.match(first.text)
    try:
        encoding = codecs.lookup(head[2].decode()).name if head else "utf-8"
    except LookupError:
        encoding = "utf-8"
    if not head or encoding == "utf-8":
        yield from chain([first], blocks)
        return
    first = Block(head[1] + first.text[head.end() :], first.first_line)
    for block in chain([first], blocks):
        yield Block(block.text.decode(encoding, errors="replace").encode(), block.first_line)


class _XMLStream(_BlockStream):
    """Blocks of XML, which end at declared entities, as they may expand without bound, and at elements too deep."""

    def __init__(self, blocks: Iterator[Block], skips: Skips) -> None:
        super().__init__(_recoded(blocks), skips)
        self.depth = 0
        self.before = b""

    def read(self, size: int = -1) -> bytes:
        """Return some bytes, none at the end or where the rest is refused."""
        # A small piece cannot go much deeper than the depth at its end.
        piece = b"" if self.refused else super().read(_PIECE if size < 0 else min(size, _PIECE))
        opened = piece.count(b"<") - 2 * piece.count(b"</") - piece.count(b"/>")
        self.depth += opened - piece.count(b"<!") - piece.count(b"<?")
        if b"<!ENTITY" in self.before + piece:
            self.refused = "found entity declarations, which may exhaust the memory; expand them: xmllint --noent FILE"
        elif self.depth > _DEEPEST:
            self.refused = f"found elements nested deeper than {_DEEPEST:,}, expected RDF/XML; check the file"
        self.before = piece[-len(b"<!ENTITY") :]
        return b"" if self.refused else piece
