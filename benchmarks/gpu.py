"""How fast the networks are on a GPU, and whether it gives the scores that the CPU gives; JSON as it goes.

python benchmarks/gpu.py [--out gpu.json] [--small]

Under five minutes; without a GPU it measures the CPU at a hundredth of the size, and says so.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from kbtools.scorers.bigru import BiGRUScorer
from kbtools.scorers.embed_avg import EmbedAverageScorer
from kbtools.scorers.losses import cross_entropy
from kbtools.scorers.ltg_cnn import LetterTrigramScorer
from kbtools.scorers.network import TrainedNetwork
from kbtools.scorers.optimisers import make_optimisers
from kbtools.scorers.settings import EncoderConfig
from kbtools.scorers.transe import TransE, TranslatingTask
from kbtools.scorers.words import load_words

SCORERS: dict[str, type[TrainedNetwork]] = {
    "embed-avg": EmbedAverageScorer,
    "ltg-cnn": LetterTrigramScorer,
    "bigru": BiGRUScorer,
}
RELATIONS, WORDS, LENGTH, QUESTIONS = 7_523, 30_000, 10, 75_910
ENTITIES, DIM, TRIPLES = 4_650_000, 256, 65_536
TOLERANCE = 1e-3
SECONDS = 3.0
"""How long each speed is measured."""


class Report:
    """Figures by name, written whenever one is added."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.figures: dict[str, float | str | bool] = {}

    def add(self, name: str, value: float | str | bool) -> None:
        self.figures[name] = value
        print(f"{name:<58}{value:>16,.4g}" if isinstance(value, float) else f"{name:<58}{value!s:>16}", flush=True)
        if self.path:
            self.path.write_text(json.dumps(self.figures, indent=2) + "\n", encoding="utf-8")


def rate(device: torch.device, run: Callable[[], object], *, count: int) -> float:
    """Give how many a second: `count` in each run, runs repeated for SECONDS after two to warm up."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    run(), run()
    wait()
    begun, done = time.perf_counter(), 0
    while time.perf_counter() - begun < SECONDS:
        run()
        wait()
        done += count
    return done / (time.perf_counter() - begun)


def texts(count: int) -> list[list[str]]:
    random = np.random.default_rng(count)
    return [[f"word{word}" for word in row] for row in random.integers(0, WORDS, (count, LENGTH))]


def measure_scorer(name: str, device: torch.device, report: Report, *, relations: int, batches: list[int]) -> None:
    """Compare CPU and device, then time scoring at each batch size, and training."""
    rows = [f"domain{row % 90}.kind{row % 700}.property_{row}" for row in range(relations)]
    known = [[f"word{word}"] for word in range(WORDS)]
    config = EncoderConfig(dim=128, words_dim=100, hidden=128, known_words=0)
    made = SCORERS[name].new(config, rows=rows, texts=known, words=load_words("random"), seed=1)
    network = made.network
    with torch.inference_mode():
        expected = network.scores(texts(64))
        network.to(device).eval()
        network.known = network.collated = None
        apart = float((network.scores(texts(64)).cpu() - expected).abs().max())
        report.add(f"{name}: {device.type} agrees with the CPU", apart < TOLERANCE)
        for batch in batches:
            inputs = network.collate(texts(batch))
            report.add(
                f"{name}: questions/s at {batch:,}, network alone",
                rate(device, lambda inputs=inputs: network(*inputs), count=batch),
            )
            asked = texts(batch)
            report.add(
                f"{name}: questions/s at {batch:,}, from words",
                rate(device, lambda asked=asked: network.scores(asked), count=batch),
            )
    optimisers = make_optimisers(network.train(), name="adam", lr=0.001, momentum=0.9)
    batch = batches[-1]
    asked, gold = texts(batch), torch.arange(batch, device=device) % relations

    def step() -> None:
        for optimiser in optimisers:
            optimiser.zero_grad(set_to_none=True)
        cross_entropy(network.scores(asked), gold=gold).mean().backward()  # type: ignore[no-untyped-call]
        for optimiser in optimisers:
            optimiser.step()

    report.add(f"{name}: seconds of a training epoch of {QUESTIONS:,}", QUESTIONS / rate(device, step, count=batch))


def measure_transe(device: torch.device, report: Report, *, entities: int) -> None:
    network = TransE(entities, RELATIONS, dim=DIM).to(device)
    facts = np.random.default_rng(1).integers(0, [entities, RELATIONS, entities], (TRIPLES, 3))
    task = TranslatingTask(network, facts, margin=1.0)
    optimisers = make_optimisers(network, name="adam", lr=0.01, momentum=0.9)
    rows = np.arange(TRIPLES)

    def step() -> None:
        for optimiser in optimisers:
            optimiser.zero_grad(set_to_none=True)
        task.loss(rows).mean().backward()  # type: ignore[no-untyped-call]
        for optimiser in optimisers:
            optimiser.step()

    speed = rate(device, step, count=TRIPLES)
    report.add(f"transe: triples/s over {entities:,} entities", speed)
    # A triple touches two entities of the fact and one of the corrupted one: read, two moments, written.
    report.add("transe: GB/s of rows touched", speed * 3 * DIM * 4 * 6 / 1e9)


def measure_search(device: torch.device, report: Report, *, entities: int) -> None:
    half = torch.float16 if device.type == "cuda" else torch.float32
    table = torch.randn(entities, DIM, device=device, dtype=half)
    asked = torch.randn(1_024, DIM, device=device, dtype=half)

    def search() -> None:
        for part in asked.split(128):
            (part @ table.T).topk(20, dim=1)

    report.add(f"exact search: queries/s, 20 of {entities:,}", rate(device, search, count=len(asked)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    parser.add_argument("--small", action="store_true", help="a hundredth of the size, to see that it runs")
    asked = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    report = Report(asked.out)
    report.add("device", torch.cuda.get_device_name(device) if device.type == "cuda" else "no GPU here: CPU only")
    small = asked.small or device.type == "cpu"
    for name in SCORERS:
        sizes = [64, 256] if small else [256, 4_096]
        measure_scorer(name, device, report, relations=RELATIONS // 100 if small else RELATIONS, batches=sizes)
    measure_transe(device, report, entities=ENTITIES // 100 if small else ENTITIES)
    measure_search(device, report, entities=ENTITIES // 100 if small else ENTITIES)


if __name__ == "__main__":
    main()
