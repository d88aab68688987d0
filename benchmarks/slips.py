"""Misspelt names on FBSQ's validation questions: one slip in each mention, compared with clean questions.

python benchmarks/slips.py [--kb build/fbsq.kb] [--questions 800] [--seed 1]      (about a minute on one core)
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from fbsq import parse, questions, sources
from figures import show_table

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion, read_annotated
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.kb.contract import KnowledgeBase, find_rows
from kbtools.pruning.pruners import label_mentions
from kbtools.text.question import Question
from kbtools.text.variants import name_forms

SHORTEST = 4
"""Letters of a word that takes a slip: of three letters every slip makes another word."""

COLUMNS = ("pruner", "the subject is in the pool", "a candidate by its name is first", "in the pool without the slip",
           "first without the slip")  # fmt: skip

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def slip(name: str, dice: random.Random) -> str | None:
    """Swap, drop, double, exchange or insert a letter of a name; return None if no word is long enough."""
    letters = [
        start + at
        for start, word in word_starts(name)
        if len(word) >= SHORTEST and word.isalpha() and word.isascii()
        for at in range(len(word) - 1)
    ]
    for _ in range(20 if letters else 0):
        at = dice.choice(letters)
        before, letter, following, after = name[:at], name[at], name[at + 1], name[at + 2 :]
        other = dice.choice(ALPHABET)
        spelt = dice.choice(
            [
                before + following + letter + after,
                before + following + after,
                before + letter + letter + following + after,
                before + other + following + after,
                before + letter + other + following + after,
            ]
        )
        if spelt.casefold() != name.casefold():
            return spelt
    return None


def word_starts(name: str) -> Iterator[tuple[int, str]]:
    """Yield the words of a name and where each begins."""
    at = 0
    for word in name.split(" "):
        yield at, word
        at += len(word) + 1


def misspell(
    kb: KnowledgeBase, gold: Sequence[AnnotatedQuestion], dice: random.Random
) -> Iterator[tuple[AnnotatedQuestion, str]]:
    """Yield the questions that name their gold subject, each with a slip that makes no other name."""
    subjects = find_rows(kb, [question.subject for question in gold])
    mentions = label_mentions(kb, [Question.read(question.text) for question in gold], subjects=subjects)
    for question, mention in zip(gold, mentions, strict=True):
        if mention is None:
            continue
        spelt = slip(question.text[mention.start : mention.end], dice)
        if spelt and not kb.lookup(list(name_forms(spelt))):
            yield question, question.text[: mention.start] + spelt + question.text[mention.end :]


def shares(answerer: Answerer, texts: Sequence[str], gold: Sequence[AnnotatedQuestion], pruning: str) -> list[str]:
    """Format the shares whose subject is in the pool, and whose first candidate was linked by a name of the subject."""
    pooled = named = 0
    for text, question in zip(texts, gold, strict=True):
        result = answerer.query(text, pruning=pruning, scorer="lexical", top=None)
        pooled += any(candidate.subject == question.subject for candidate in result.candidates)
        subjects = find_rows(answerer.kb, [question.subject]).astype(np.uint32)
        names = {name.text for name in answerer.kb.names_of(subjects)[0]}
        named += bool(result.candidates) and result.candidates[0].matched_name in names
    return [f"{pooled / len(gold):.1%}", f"{named / len(gold):.1%}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--questions", type=int, default=800)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pruning", default="n-gram,n-gram+,n-gram-idf", help="pruners, with commas between")
    arguments = parse(parser, questions=10)
    build(sources(), arguments.kb, options=ReadOptions(), watch=BuildProgress())
    answerer = kbtools.open(arguments.kb)
    dice = random.Random(arguments.seed)
    gold = list(read_annotated(questions("valid")))
    dice.shuffle(gold)
    pairs = list(islice(misspell(answerer.kb, gold, dice), arguments.questions))
    wanted = [question for question, _ in pairs]
    print(f"{len(pairs)} validation questions, one slip in the name of each, seed {arguments.seed}")
    rows = []
    for pruning in arguments.pruning.split(","):
        plain = shares(answerer, [question.text for question in wanted], wanted, pruning)
        rows.append([f"`{pruning}`", *shares(answerer, [text for _, text in pairs], wanted, pruning), *plain])
    show_table("slips", COLUMNS, rows)


if __name__ == "__main__":
    main()
