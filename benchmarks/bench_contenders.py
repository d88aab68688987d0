"""Alternatives for finding entities by name: kbtools and the libraries it is compared with.

Each builds a folder from pairs of id and name, is opened in another process, and returns the names near a text, or the
entities that the words of a question may mean.
"""

import pickle
import re
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from bench_inputs import Inputs
from rapidfuzz import fuzz, process

NEAREST = 20
"""The most names near a text that are kept."""

RECALLED = 100
"""Names that are rescored by rapidfuzz, as many as kbtools recalls by trigrams."""

LONGEST = 10
"""Words of the longest n-gram: those of a name in FBSQ."""


class Contender:
    """One way to find entities by name; `sample` is how many queries it is asked at most."""

    needs: ClassVar[tuple[str, ...]] = ()
    sample: ClassVar[int | None] = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def build(self, inputs: Inputs) -> None:
        """Write the files that `open` reads."""

    def open(self, inputs: Inputs) -> None:
        """Open the built files, or read the names again if the contender stores nothing."""

    def near(self, text: str) -> list[str]:
        """Return the names nearest to a text, the nearest first."""
        raise NotImplementedError

    def linked(self, question: str) -> set[Any]:
        """Return all entities that some words of a question name, as `entity` spells them."""
        raise NotImplementedError

    def entity(self, entity_id: str) -> Any:
        """Return an entity in the form that `linked` returns."""
        return entity_id


def rescored(text: str, names: Sequence[str]) -> list[str]:
    """Return the names nearest to a text by rapidfuzz, for contenders that only recall."""
    return [name for name, _, _ in process.extract(text.casefold(), names, scorer=fuzz.ratio, limit=NEAREST)]


def ngrams(question: str) -> Iterator[str]:
    """Yield the n-grams of a question as the earlier public code for this task makes them: lower case, at spaces."""
    words = question.lower().rstrip("?").split()
    for first in range(len(words)):
        for last in range(first + 1, min(len(words), first + LONGEST) + 1):
            yield " ".join(words[first:last])


class KBTools(Contender):
    """kbtools, its facts and types included."""

    def build(self, inputs: Inputs) -> None:
        sources = ("--facts", inputs.facts, "--names", inputs.names, "--types", inputs.types)
        program = Path(sys.executable).with_name("kbtools")
        command = [program] if program.exists() else [sys.executable, "-c", "from kbtools.cli.main import main; main()"]
        subprocess.run([*command, "index", *sources, "--out", self.folder / "x.kb", "--quiet"], check=True)

    def open(self, inputs: Inputs) -> None:
        import kbtools
        from kbtools.text.ngrams import ngrams as kbtools_ngrams
        from kbtools.text.question import Question

        self.kb = kbtools.open(self.folder / "x.kb").kb
        self.ngrams, self.read = kbtools_ngrams, Question.read

    def near(self, text: str) -> list[str]:
        return [similar.form for similar in self.kb.similar([text], limit=NEAREST)[0]]

    def entity(self, entity_id: str) -> int | None:
        return self.kb.rows([entity_id])[0]

    def linked(self, question: str) -> set[int]:
        forms = [ngram.form for ngram in self.ngrams(self.read(question), lengths=range(1, LONGEST + 1))]
        return {
            row for matches in self.kb.lookup(forms).values() for match in matches for row in match.entities.tolist()
        }


class SQLite(Contender):
    """SQLite: FTS5's trigrams rescored by rapidfuzz, and an index of names in lower case."""

    def build(self, inputs: Inputs) -> None:
        connection = sqlite3.connect(self.folder / "names.db")
        connection.execute("CREATE TABLE names (name TEXT, entity TEXT)")
        connection.execute("CREATE VIRTUAL TABLE grams USING fts5(name, tokenize='trigram', detail='none')")
        rows = [(name.lower(), entity) for entity, name in inputs.read_names()]
        connection.executemany("INSERT INTO names VALUES (?, ?)", rows)
        connection.execute("CREATE INDEX by_name ON names(name)")
        connection.executemany("INSERT INTO grams VALUES (?)", [(name,) for name in sorted({name for name, _ in rows})])
        connection.commit()
        connection.close()

    def open(self, inputs: Inputs) -> None:
        self.connection = sqlite3.connect(self.folder / "names.db")

    def near(self, text: str) -> list[str]:
        text = text.lower()
        grams = {text[at : at + 3].replace('"', '""') for at in range(len(text) - 2)}
        if not grams:
            return []
        wanted = " OR ".join(f'"{gram}"' for gram in sorted(grams))
        found = self.connection.execute(
            "SELECT name FROM grams WHERE grams MATCH ? ORDER BY rank LIMIT ?", (wanted, RECALLED)
        )
        return rescored(text, [name for (name,) in found])

    def linked(self, question: str) -> set[str]:
        forms = list(ngrams(question))
        marks = ",".join("?" * len(forms))
        return {row[0] for row in self.connection.execute(f"SELECT entity FROM names WHERE name IN ({marks})", forms)}


class BruteForce(Contender):
    """rapidfuzz over every name."""

    needs = ("rapidfuzz",)
    sample = 30

    def open(self, inputs: Inputs) -> None:
        self.names = sorted({name.lower() for _, name in inputs.read_names()})

    def near(self, text: str) -> list[str]:
        return rescored(text, self.names)


class SimString(Contender):
    """simstring-rust: trigrams, cosine of 0.6 or more, rescored by rapidfuzz."""

    needs = ("simstring_rust",)

    def open(self, inputs: Inputs) -> None:
        from simstring_rust.database import HashDb
        from simstring_rust.extractors import CharacterNgrams
        from simstring_rust.measures import Cosine
        from simstring_rust.searcher import Searcher

        database = HashDb(CharacterNgrams(3, "$"))
        for name in sorted({name.lower() for _, name in inputs.read_names()}):
            database.insert(name)
        self.searcher = Searcher(database, Cosine())

    def near(self, text: str) -> list[str]:
        ranked = self.searcher.ranked_search(text.lower(), 0.6)
        return rescored(text, [name for name, _ in ranked[:RECALLED]])


class CSVReconcile(Contender):
    """csv-reconcile, which compares with every name; its function without its server."""

    needs = ("csv_reconcile", "csv_reconcile_dice")
    sample = 5

    def build(self, inputs: Inputs) -> None:
        import csv_reconcile_dice  # noqa: F401 - registers the scorer
        from csv_reconcile import initdb

        with (self.folder / "names.tsv").open("w", encoding="utf-8") as file:
            file.write("item\tlabel\n")
            for row, (_, name) in enumerate(inputs.read_names()):
                if re.search(r"\w\w", name):
                    file.write(f"{row}\t{name}\n")
        connection = self.connect()
        initdb.init_db(
            connection, self.folder / "names.tsv", "item", "label", "utf-8", {}, {"delimiter": "\t", "quoting": 3}
        )
        connection.close()

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.folder / "names.db")
        connection.row_factory = sqlite3.Row
        return connection

    def open(self, inputs: Inputs) -> None:
        import csv_reconcile_dice  # noqa: F401 - registers the scorer
        from csv_reconcile.score import processQueryBatch

        self.connection, self.ask = self.connect(), processQueryBatch

    def near(self, text: str) -> list[str]:
        answers = self.ask(self.connection, {"q": {"query": text}}, limit=NEAREST, threshold=30.0)
        return [match["name"] for match in answers["q"]["result"]]


class PickledDict(Contender):
    """A pickled dictionary from names in lower case to entities: the earlier public code for this task."""

    def build(self, inputs: Inputs) -> None:
        entities = defaultdict(list)
        for entity, name in inputs.read_names():
            entities[name.lower()].append(entity)
        with (self.folder / "names.pickle").open("wb") as file:
            pickle.dump(dict(entities), file, protocol=pickle.HIGHEST_PROTOCOL)

    def open(self, inputs: Inputs) -> None:
        with (self.folder / "names.pickle").open("rb") as file:
            self.entities = pickle.load(file)

    def linked(self, question: str) -> set[str]:
        get = self.entities.get
        return {entity for gram in ngrams(question) for entity in get(gram, ())}


class SpacyKB(Contender):
    """spaCy's InMemoryLookupKB, with names in lower case as its aliases."""

    needs = ("spacy",)

    def build(self, inputs: Inputs) -> None:
        from spacy.kb import InMemoryLookupKB
        from spacy.vocab import Vocab

        kb = InMemoryLookupKB(Vocab(), entity_vector_length=1)
        bearers = defaultdict(set)
        for entity, name in inputs.read_names():
            bearers[name.lower()].add(entity)
        for entity in sorted(set().union(*bearers.values())):
            kb.add_entity(entity=entity, freq=1, entity_vector=[0.0])
        for name, entities in bearers.items():
            kb.add_alias(alias=name, entities=sorted(entities), probabilities=[1 / len(entities)] * len(entities))
        kb.to_disk(self.folder / "spacy")

    def open(self, inputs: Inputs) -> None:
        from spacy.kb import InMemoryLookupKB
        from spacy.vocab import Vocab

        self.kb = InMemoryLookupKB(Vocab(), entity_vector_length=1)
        self.kb.from_disk(self.folder / "spacy")

    def linked(self, question: str) -> set[str]:
        ask = self.kb.get_alias_candidates
        return {candidate.entity_ for gram in ngrams(question) for candidate in ask(gram)}


class Elasticsearch(Contender):
    """Elasticsearch as in its guide: `match` with fuzziness AUTO, `terms` on names in lower case."""

    needs = ("elasticsearch",)
    url: ClassVar[str | None] = None
    INDEX = "kbtools-bench"

    def connect(self) -> Any:
        from elasticsearch import Elasticsearch as Client

        return Client(self.url, request_timeout=120)

    def clear(self) -> None:
        """Delete the index from the cluster."""
        self.connect().indices.delete(index=self.INDEX, ignore_unavailable=True)

    def build(self, inputs: Inputs) -> None:
        from elasticsearch.helpers import parallel_bulk

        self.clear()
        client = self.connect()
        fields = {"name": {"type": "text", "fields": {"exact": {"type": "keyword"}}}, "entity": {"type": "keyword"}}
        client.indices.create(
            index=self.INDEX,
            mappings={"properties": fields},
            settings={"number_of_replicas": 0, "refresh_interval": "-1"},
        )
        rows = ({"_index": self.INDEX, "name": name.lower(), "entity": entity} for entity, name in inputs.read_names())
        for _ in parallel_bulk(client, rows, chunk_size=2_000):
            pass
        client.indices.refresh(index=self.INDEX)

    def open(self, inputs: Inputs) -> None:
        self.client = self.connect()

    def near(self, text: str) -> list[str]:
        query = {"match": {"name": {"query": text, "fuzziness": "AUTO"}}}
        hits = self.client.search(index=self.INDEX, query=query, size=RECALLED, source=["name"])["hits"]["hits"]
        return rescored(text, sorted({hit["_source"]["name"] for hit in hits}))

    def linked(self, question: str) -> set[str]:
        query = {"terms": {"name.exact": list(ngrams(question))}}
        hits = self.client.search(index=self.INDEX, query=query, size=1_000, source=["entity"])["hits"]["hits"]
        return {hit["_source"]["entity"] for hit in hits}


FUZZY: dict[str, type[Contender]] = {
    "kbtools": KBTools,
    "SQLite FTS5 + rapidfuzz": SQLite,
    "simstring-rust + rapidfuzz": SimString,
    "rapidfuzz, every name": BruteForce,
    "csv-reconcile": CSVReconcile,
    "Elasticsearch, fuzziness AUTO": Elasticsearch,
}
"""The contenders that look up misspelt names."""

STRICT: dict[str, type[Contender]] = {
    "kbtools": KBTools,
    "pickled dict": PickledDict,
    "SQLite index": SQLite,
    "spaCy InMemoryLookupKB": SpacyKB,
    "Elasticsearch, terms": Elasticsearch,
}
"""The contenders that look up the n-grams of a question."""
