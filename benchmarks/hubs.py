"""Hubs beside ordinary names: a name with 100,000 bearers, an entity with a million facts, a relation with ten million.

python benchmarks/hubs.py [--out build/hubs.kb] [--share 1.0]      (about five minutes on one core; 0.1 takes a tenth)
"""

import argparse
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from fbsq import SMALL, parse
from figures import show_table

import kbtools
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.pruning import UNGUIDED

BEARERS, FACTS, RELATION = 100_000, 1_000_000, 10_000_000
WARM = 50

QUESTIONS = {
    "an ordinary name": [f"who is the maker of orlan{number} vennick" for number in range(100)],
    "a name of many bearers": ["who is the maker of springfield"],
    "an entity of many facts": ["what is made by the great foundry", "who is the maker of the great foundry"],
    "a relation of many facts": ["what is the kind of orlan7 vennick"],
    "a misspelt name of many bearers": ["who is the maker of sprinfield"],
}


def write_hubs(folder: Path, share: float) -> list[Source]:
    """Write the facts and names of the hubs, and of the entities that a relation of many facts joins."""
    facts, names = folder / "facts.txt", folder / "names.txt"
    with facts.open("w", encoding="utf-8") as file:
        file.writelines(f"m.{s}\t{r}\tm.{o}\n" for s, r, o in hub_facts(share))
    with names.open("w", encoding="utf-8") as file:
        for number in range(int(RELATION * share / 10)):
            file.write(name_line(f"o{number}", f"Orlan{number} Vennick"))
        file.writelines(name_line(f"b{number}", "Springfield") for number in range(int(BEARERS * share)))
        file.write(name_line("hub", "The Great Foundry"))
    return [Source(facts, "facts"), Source(names, "names")]


def name_line(entity: str, name: str) -> str:
    """Write a name in the form of FB5M.name.txt."""
    return f'<fb:m.{entity}>\t<fb:type.object.name>\t"{name}"@en\t.\n'


def hub_facts(share: float) -> Iterator[tuple[str, str, str]]:
    """Yield facts: ten of every ordinary entity are of one relation."""
    for number in range(int(RELATION * share / 10)):
        yield f"o{number}", "thing.maker", f"k{number % 97}"
        for kind in range(10):
            yield f"o{number}", "thing.kind", f"k{number % 1009 + kind}"
    for number in range(int(BEARERS * share)):
        yield f"b{number}", "thing.maker", f"k{number % 97}"
    for number in range(int(FACTS * share)):
        yield "hub", "thing.made", f"o{number % int(RELATION * share / 10)}" if number % 2 else f"p{number}"
    yield "hub", "thing.maker", "k1"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/hubs.kb"))
    parser.add_argument("--share", type=float, default=1.0, help="of the sizes of the hubs")
    parser.add_argument("--rounds", type=int, default=300, help="questions of each kind")
    arguments = parse(parser, share=0.0002, rounds=3, out=SMALL / "hubs.kb")
    if not arguments.out.exists():
        with TemporaryDirectory() as folder:
            build(
                write_hubs(Path(folder), arguments.share), arguments.out, options=ReadOptions(), watch=BuildProgress()
            )
    rows, warm = {kind: [kind] for kind in QUESTIONS}, min(WARM, arguments.rounds)
    with kbtools.open(arguments.out) as answerer:
        for pruning in UNGUIDED:
            for kind, texts in QUESTIONS.items():
                seconds = []
                for round_ in range(warm + arguments.rounds):
                    begun = time.process_time()
                    answerer.query(texts[round_ % len(texts)], pruning=pruning, scorer="lexical")
                    seconds.append(time.process_time() - begun)
                rows[kind].append(f"{1000 * np.median(seconds[warm:]):.2f}")
    show_table("hubs", ("asked of, CPU ms, p50", *(f"`{pruning}`" for pruning in UNGUIDED)), rows.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:,.0f} MB, that of the build where it was built just now")


if __name__ == "__main__":
    main()
