"""Pruning without training when other names are added to FBSQ's own: recall, pool size and accuracy.

python benchmarks/crowded.py --titles titles.txt.xz [--count 1000000] [--limit 2000]

62 % of FBSQ's name forms belong to subjects of its questions, which favours pruners that count names. The titles,
spread over the whole list, become names of new entities, each with the relation and object of one fact of FBSQ.
"""

import argparse
import gzip
import lzma
from itertools import cycle, islice
from pathlib import Path

from evaluation import expected_accuracy, looser_share, pruning_figures
from fbsq import SMALL, names_file, parse, questions, sources
from figures import show_table

import kbtools
from kbtools.answering.questions import read_annotated
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.pruning import UNGUIDED

COLUMNS = ("forms of names", "pruner", "gold pair in the pool, of all", "pairs in the pool, mean",
           "subject and relation right, of all", "first place on a looser rung than another candidate")  # fmt: skip

TITLES = 4_461_400
"""Lines of the list of DBpedia titles."""


def write_crowd(titles: Path, count: int, folder: Path) -> list[Source]:
    """Write the facts and names of new entities in the format of the release."""
    folder.mkdir(parents=True, exist_ok=True)
    facts, names = folder / "crowd.txt", folder / "crowd.name.txt"
    with (
        lzma.open(titles, "rt", encoding="utf-8") as lines,
        gzip.open(sources()[0].path, "rt", encoding="utf-8") as known,
        facts.open("w", encoding="utf-8") as fact_file,
        names.open("w", encoding="utf-8") as name_file,
    ):
        patterns = cycle([line.rstrip("\n").split("\t")[1:] for line in islice(known, 200_000)])
        spread = islice(lines, 0, None, max(1, TITLES // count))
        for number, (title, (relation, objects)) in enumerate(zip(islice(spread, count), patterns, strict=False)):
            name = title.strip().replace("_", " ").replace('"', "")
            fact_file.write(f"www.freebase.com/m/9{number}\t{relation}\t{objects.split()[0]}\n")
            name_file.write(f'<fb:m.9{number}>\t<fb:type.object.name>\t"{name}"@en\t.\n')
    return [Source(facts, "facts"), Source(names, "names")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--titles", type=Path, default=names_file("titles.txt.xz"))
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--limit", type=int, default=2_000, help="take only the first validation questions")
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--crowded", type=Path, default=Path("build/crowded.kb"))
    arguments = parse(parser, count=50, limit=20, crowded=SMALL / "crowded.kb")
    if not arguments.kb.exists():
        build(sources(), arguments.kb, options=ReadOptions(), watch=BuildProgress())
    if not arguments.crowded.exists():
        crowd = write_crowd(arguments.titles, arguments.count, arguments.crowded.with_suffix(".files"))
        build([*sources(), *crowd], arguments.crowded, options=ReadOptions(), watch=BuildProgress())
    gold = list(islice(read_annotated(questions("valid")), arguments.limit))
    rows, texts = [], [one.text for one in gold]
    for path in (arguments.kb, arguments.crowded):
        with kbtools.open(path) as answerer:
            forms = answerer.kb.manifest.statistics["forms"]
            for name in UNGUIDED:
                figures = pruning_figures(answerer, gold, pruning=name)
                results = list(answerer.query_many(texts, pruning=name, scorer="lexical", inverse=False, top=None))
                accuracy, looser = expected_accuracy(results, gold), looser_share(results)
                recall = f"{figures.recalled / figures.questions:.1%}"
                rows.append(
                    (f"{forms:,}", f"`{name}`", recall, f"{figures.mean_pool:.1f}", f"{accuracy:.1%}", f"{looser:.1%}")
                )
    show_table("pruners", COLUMNS, rows)


if __name__ == "__main__":
    main()
