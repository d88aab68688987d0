"""RDF other than N-Triples: Turtle, TriG, RDF/XML, JSON-LD and N-Quads, read with Oxigraph's parser."""

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
"""The XML declaration, up to the name of the encoding."""

_PIECE = 4096
"""Bytes of XML examined at a time."""

_DEEPEST = 1_000
"""Most nested elements; the parser's time grows with the cube of the depth: 0.1 s for 4,000."""

_REMOTE = "No LoadDocumentCallback"
"""The parser's error for a JSON-LD context on the web."""

_BRACED = re.compile(r"(?:\{|GRAPH) is not a valid (?:predicate|subject)")
"""The Turtle parser's error at a graph of TriG."""


class NQuadsReader(NTriplesReader):
    """The reader of N-Quads, one statement per line; its graph is ignored."""

    suffixes: ClassVar[tuple[str, ...]] = (".nq", ".nquads")
    syntax: ClassVar[str] = "N_QUADS"
    called: ClassVar[str] = "N-Quads"
    sample: ClassVar[bytes] = (
        b"<http://a/s> <http://a/p> <http://a/o> <http://a/g> .\nbroken\n<http://a/s> <http://a/p> <http://a/q> .\n"
    )


class _DocumentReader(NTriplesReader):
    """A reader that streams a whole document; nothing after the first error can be used."""

    whole: ClassVar[bool] = True

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        super().__init__(source, options, skips)
        self.path = str(source.path)
        self.numbers: dict[str, int] = {}

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        """Read triples as they come; raise WrongFormat at the first syntax error."""
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
        """Number blank nodes in order, since the parser gives those without a label random names."""
        if isinstance(term, self.oxigraph.BlankNode):
            return f"_:{self.blanks}.{self.numbers.setdefault(term.value, len(self.numbers))}"
        return super().spell(term)

    def unfit(self, error: SyntaxError) -> WrongFormat:
        """Return an error that states where and why a document cannot be parsed."""
        line = error.lineno or max(self.skips.lines, 1)
        advice = "fix it, or name its syntax with --format"
        if _REMOTE in str(error):
            advice = "contexts on the web are not loaded; include the context in the file"
        elif self.syntax == "TURTLE" and _BRACED.search(str(error)):
            advice = "if it is TriG, with graphs in braces, use --format trig"
        reason = PLACE.sub("", str(error))
        reason = reason if len(reason) <= SHOWN else f"{reason[:SHOWN]}…"
        return WrongFormat.at(self.path, f"invalid {self.called} from here on ({reason}); {advice}", line=line)


class TurtleReader(_DocumentReader):
    """The reader of Turtle."""

    suffixes: ClassVar[tuple[str, ...]] = (".ttl", ".turtle")
    syntax: ClassVar[str] = "TURTLE"
    called: ClassVar[str] = "Turtle"
    sample: ClassVar[bytes] = b'@prefix a: <http://a/> .\na:s a:p a:o, [ a:q "1" ] ;\n  a:r "x"@en .\n'


class TriGReader(_DocumentReader):
    """The reader of TriG; the graphs of statements are ignored."""

    suffixes: ClassVar[tuple[str, ...]] = (".trig",)
    syntax: ClassVar[str] = "TRIG"
    called: ClassVar[str] = "TriG"
    sample: ClassVar[bytes] = b"@prefix a: <http://a/> .\na:g { a:s a:p a:o . }\n"


class RDFXMLReader(_DocumentReader):
    """The reader of RDF/XML, the usual syntax of ontologies."""

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
    """The reader of JSON-LD whose context is in the file."""

    suffixes: ClassVar[tuple[str, ...]] = (".jsonld",)
    syntax: ClassVar[str] = "JSON_LD"
    called: ClassVar[str] = "JSON-LD"
    sample: ClassVar[bytes] = b'{"@context": {"p": "http://a/p"}, "@id": "http://a/s",\n "p": {"@id": "http://a/o"}}\n'


class _BlockStream:
    """Blocks as a stream for a parser; counts the lines read."""

    def __init__(self, blocks: Iterator[Block], skips: Skips) -> None:
        self.blocks = blocks
        self.skips = skips
        self.text = b""
        self.place = 0
        self.refused = ""
        """Why reading stopped; empty if it did not."""

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
    """Yield blocks of XML in UTF-8, the parser's only encoding, decoded from the declared one."""
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
    """Blocks of XML, cut short at entity declarations, which may expand without bound, and at too deep elements."""

    def __init__(self, blocks: Iterator[Block], skips: Skips) -> None:
        super().__init__(_recoded(blocks), skips)
        self.depth = 0
        self.before = b""

    def read(self, size: int = -1) -> bytes:
        """Return some bytes, none at the end or once the rest is refused."""
        # Within a small piece the depth cannot grow much beyond that at its end.
        piece = b"" if self.refused else super().read(_PIECE if size < 0 else min(size, _PIECE))
        opened = piece.count(b"<") - 2 * piece.count(b"</") - piece.count(b"/>")
        self.depth += opened - piece.count(b"<!") - piece.count(b"<?")
        if b"<!ENTITY" in self.before + piece:
            self.refused = "found entity declarations, which may exhaust the memory; expand them: xmllint --noent FILE"
        elif self.depth > _DEEPEST:
            self.refused = f"found elements nested deeper than {_DEEPEST:,}, expected RDF/XML; check the file"
        self.before = piece[-len(b"<!ENTITY") :]
        return b"" if self.refused else piece
