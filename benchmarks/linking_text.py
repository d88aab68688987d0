"""Linking running text: tokens a second of one core, and how many mentions are found.

python benchmarks/linking_text.py --kb fbsq.kb [--text FILE] [--tokens 30000]

Without a text two are made: the questions of SimpleQuestions' validation split as paragraphs of ten, in lower case,
where nothing but rarity tells a name; and facts of the knowledge base written out, where every second word is in one.
"""

import argparse
import time
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np
from fbsq import questions

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import read_annotated
from kbtools.kb.contract import KnowledgeBase
from kbtools.text.question import tokenise
from kbtools.text.relation_words import relation_words

PARAGRAPH = 10


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


def measure(name: str, answerer: Answerer, texts: Iterable[str], tokens: int) -> None:
    """Link texts of so many tokens, after a first round that reads pages from the disk."""
    taken, count = [], 0
    for text in texts:
        if count >= tokens:
            break
        taken.append(text)
        count += len(tokenise(text))
    for text in taken[:20]:
        answerer.link(text)
    begun = time.process_time()
    mentions = sum(len(answerer.link(text).mentions) for text in taken)
    seconds = time.process_time() - begun
    print(f"{name}: {count / seconds:,.0f} tokens/s; {mentions:,} mentions in {count:,} tokens")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, required=True)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--tokens", type=int, default=30_000)
    arguments = parser.parse_args()
    answerer = kbtools.open(arguments.kb)
    if arguments.text:
        text = arguments.text.read_text(encoding="utf-8")
        measure(arguments.text.name, answerer, chain([text]), arguments.tokens)
        return
    asked = (question.text for question in read_annotated(questions("valid")))
    measure("questions", answerer, paragraphs(asked), arguments.tokens)
    measure("facts", answerer, paragraphs(written_facts(answerer.kb)), arguments.tokens)


if __name__ == "__main__":
    main()
