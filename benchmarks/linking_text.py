"""Linking running text: tokens per second on one core, and recall and precision of mentions.

python benchmarks/linking_text.py --kb fbsq.kb [--text FILE] [--tokens 30000] [--split test]
    [--wordnet /usr/share/wordnet]

Without a text it generates two: the questions of SimpleQuestions' validation split in lower case, as paragraphs of ten,
where only rarity indicates a name; and facts of the knowledge base as sentences, where every second word is in a name.
"""

import argparse
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fbsq import parse, questions
from figures import show_table
from numpy.typing import NDArray
from zero_shot import POINTERS

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.context import ContextRanker
from kbtools.answering.name_candidates import NameCandidates, link_name, rank_by_name
from kbtools.answering.questions import read_annotated
from kbtools.kb.contract import KnowledgeBase
from kbtools.text.question import Question, tokenise
from kbtools.text.relation_words import relation_words

PARAGRAPH = 10

THRESHOLDS = (0.2, 0.3, 0.4)

COLUMNS = ("threshold", "lower case: precision, recall, F1", "names as written: precision, recall, F1")

BEARERS = ("right bearer of an ambiguous name first", "names", "by the prior", "by the text around (`--context`)")


def paragraphs(sentences: Iterator[str]) -> Iterator[str]:
    """Yield sentences ten at a time."""
    while some := list(islice(sentences, PARAGRAPH)):
        yield " ".join(some)


def written_facts(kb: KnowledgeBase) -> Iterator[str]:
    """Yield facts of named entities as sentences, those of entities all over the knowledge base."""
    entities = kb.manifest.counts["entities"].unique
    for first in range(0, entities, 97):
        facts = kb.facts_of(np.array([first], dtype=np.uint32))[:3]
        names = zip(kb.names(facts[:, 0].astype(np.uint32)), kb.names(facts[:, 2].astype(np.uint32)), strict=True)
        for (subject, target), relation in zip(names, facts[:, 1].tolist(), strict=True):
            if subject and target:
                yield f"The {' '.join(relation_words(kb.relations[relation])[-2:])} of {subject} is {target}."


def measure(answerer: Answerer, texts: Iterable[str], tokens: int, *, context: bool = False) -> str:
    """Link texts with a number of tokens, after a first round that reads pages from the disk; format the rate."""
    taken, count = [], 0
    for text in texts:
        if count >= tokens:
            break
        taken.append(text)
        count += len(tokenise(text))
    for text in taken[:20]:
        answerer.link(text, context=context)
    begun = time.process_time()
    mentions = sum(len(answerer.link(text, context=context).mentions) for text in taken)
    seconds = time.process_time() - begun
    return f"{count / seconds:,.0f} ({mentions:,} mentions)"


class Mentions(NamedTuple):
    """Scores of the mentions of some texts, whether each is the right entity, and how many there were to be found."""

    scores: NDArray[np.float64]
    right: NDArray[np.bool_]
    expected: int

    def at(self, threshold: float) -> tuple[float, float, float]:
        """Return precision, recall and F1 of the mentions from a threshold on."""
        kept = self.scores >= threshold
        right = int(np.count_nonzero(self.right & kept))
        precision, recall = right / max(1, int(np.count_nonzero(kept))), right / self.expected
        return precision, recall, 2 * precision * recall / max(precision + recall, 1e-9)

    def calibration_error(self) -> float:
        """Return the expected calibration error over ten bins."""
        bins = np.minimum((self.scores * 10).astype(int), 9)
        gaps = [self.scores[bins == at].sum() - np.count_nonzero(self.right[bins == at]) for at in range(10)]
        return float(np.abs(gaps).sum() / len(self.scores))


def linked_questions(answerer: Answerer, split: str, count: int, *, written: bool) -> Mentions:
    """Link questions, as they are or with the name of their subject as it is written, whose subject is to be found.

    Other mentions count as wrong, although some of them are right.
    """
    scores, right, expected = [], [], 0
    for one in islice(read_annotated(questions(split)), count):
        entity = answerer.kb.rows([one.subject])[0]
        name = entity is not None and answerer.kb.names(np.array([entity], dtype=np.uint32))[0]
        text, at = one.text, one.text.lower().find(name.lower()) if name else -1
        if not name or at < 0:
            continue
        if written:
            text = text[:at] + name + text[at + len(name) :]
            text = text[0].upper() + text[1:]
        expected += 1
        for mention in answerer.link(text, threshold=0.0, limit=1).mentions:
            overlaps = mention.start < at + len(name) and mention.end > at
            scores.append(mention.score)
            right.append(overlaps and mention.candidates[0].id == one.subject)
    return Mentions(np.array(scores), np.array(right), expected)


Namesake = tuple[str, int, int, str]
"""A text, the place of a name in it, and the id of the entity that it means."""


def question_namesakes(answerer: Answerer, split: str, count: int) -> Iterator[Namesake]:
    """Yield questions with the name of their subject."""
    for one in islice(read_annotated(questions(split)), count):
        (row,) = answerer.kb.rows([one.subject])
        name = row is not None and answerer.kb.names(np.array([row], dtype=np.uint32))[0]
        if name and (at := one.text.lower().find(name.lower())) >= 0:
            yield one.text, at, at + len(name), one.subject


def wordnet_kb(folder: Path, out: Path) -> tuple[Answerer, list[Namesake]]:
    """Index WordNet's nouns with their definitions, and return the example sentences of each with the noun in them."""
    names, facts, described, examples = [], [], [], []
    for line in (folder / "data.noun").read_text(encoding="latin-1").split("\n"):
        if line.startswith(" ") or not line:
            continue
        fields, _, gloss = line.partition(" | ")
        parts = fields.split()
        own = [word.replace("_", " ") for word in parts[4 : 4 + 2 * int(parts[3], 16) : 2]]
        definition, *quoted = gloss.strip().split('; "')
        names += [(parts[0], name) for name in own]
        described.append((parts[0], definition))
        pointers = parts[5 + 2 * int(parts[3], 16) :]
        facts += [
            (parts[0], POINTERS[kind], target)
            for kind, target, part in zip(pointers[::4], pointers[1::4], pointers[2::4], strict=False)
            if part == "n"
        ]
        for text in (example.strip('"; ') for example in quoted):
            spans = (re.search(rf"\b{re.escape(name)}\b", text) for name in own)
            examples += [(text, *span.span(), parts[0]) for span in spans if span]
    return kbtools.index(out=out, facts=facts, names=names, descriptions=described), examples


def tell_apart(answerer: Answerer, namesakes: Iterable[Namesake]) -> list[str]:
    """Return how often the right bearer of an ambiguous name is first, by the prior and with the text around it."""
    ranker, right = ContextRanker(answerer.reader), []
    for text, start, end, entity in namesakes:
        bearers = rank_by_name(answerer.kb, link_name(answerer.kb, text[start:end]))
        links = [link._replace(start=start, end=end) for link in bearers.links]
        bearers = NameCandidates(bearers.entities, links, bearers.prior)
        ids = answerer.kb.ids(bearers.entities)
        if len(ids) > 1 and entity in ids:
            ranked = ranker.rank(Question.read(text), bearers)
            right.append([expected_first(one, answerer.kb.ids(one.entities), entity) for one in (bearers, ranked)])
    prior, context = np.mean(right, axis=0) if right else (0.0, 0.0)
    return [f"{len(right):,}", f"{prior:.1%}", f"{context:.1%}"]


def expected_first(bearers: NameCandidates, ids: Sequence[str], entity: str) -> float:
    """Return the chance that an entity is first, ties by chance."""
    first, values = bearers.links[0], bearers.prior.values
    best = [
        own
        for own, value, link in zip(ids, values.tolist(), bearers.links, strict=True)
        if link.rung == first.rung and np.isclose(value, values[0])
    ]
    return (entity in best) / len(best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--text", type=Path)
    parser.add_argument("--tokens", type=int, default=30_000)
    parser.add_argument("--split", default="test", choices=["valid", "test"])
    parser.add_argument("--wordnet", type=Path, help="the folder of WordNet's files, such as /usr/share/wordnet")
    parser.add_argument("--questions", type=int, default=3_000)
    arguments = parse(parser, tokens=100, questions=20)
    answerer = kbtools.open(arguments.kb)
    if arguments.text:
        text = arguments.text.read_text(encoding="utf-8")
        print(measure(answerer, chain([text]), arguments.tokens), "tokens a second")
        return
    rows = {threshold: [f"{threshold:.1f}"] for threshold in THRESHOLDS}
    rows[0.0] = ["expected calibration error"]
    for written in (False, True):
        mentions = linked_questions(answerer, arguments.split, arguments.questions, written=written)
        for threshold in THRESHOLDS:
            rows[threshold].append(", ".join(f"{figure:.1%}" for figure in mentions.at(threshold)))
        rows[0.0].append(f"{mentions.calibration_error():.3f}")
    show_table("thresholds", COLUMNS, rows.values())
    asked = question_namesakes(answerer, arguments.split, arguments.questions)
    bearers = [["test questions of FBSQ", *tell_apart(answerer, asked)]]
    if arguments.wordnet:
        with tempfile.TemporaryDirectory() as folder:
            own = tell_apart(*wordnet_kb(arguments.wordnet, Path(folder) / "wordnet.kb"))
            bearers.append(["example sentences of WordNet's nouns", *own])
    show_table("bearers", BEARERS, bearers)
    texts = {
        "questions, in lower case": paragraphs(question.text for question in read_annotated(questions("valid"))),
        "facts written out as sentences": islice(paragraphs(written_facts(answerer.kb)), arguments.tokens // 50),
    }
    speeds = []
    for kind, every in texts.items():
        own = list(every)
        speeds.append([kind, *(measure(answerer, own, arguments.tokens, context=context) for context in (False, True))])
    show_table("speed", ("text", "tokens a CPU second", "with `--context`"), speeds)


if __name__ == "__main__":
    main()
