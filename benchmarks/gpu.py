"""Speed of the networks on a GPU, and the difference of its scores from the CPU's, printed as JSON.

python benchmarks/gpu.py [--out gpu.json] [--small]

It takes under five minutes; without a GPU it measures the CPU at a hundredth of the size. The share of
memory bandwidth counts only necessary bytes: scores written, table rows read, and rows read and written by a step.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import faiss
import numpy as np
import torch
from fbsq import is_small, parse
from figures import show_table
from torch.optim import Optimizer

from kbtools.scorers.fitting.training_loop import make_optimisers
from kbtools.scorers.networks.training_settings import EncoderConfig
from kbtools.scorers.networks.word_networks import DotScorer
from kbtools.scorers.networks.words import load_words
from kbtools.scorers.relations.relation import BiGRUScorer, EmbedAverageScorer, LetterTrigramScorer, RelationNetwork
from kbtools.scorers.relations.relation_training import cross_entropy
from kbtools.scorers.subjects.transe import TransE, TranslatingTask
from kbtools.text.question import MarkedQuestion, Question

SCORERS: dict[str, type[RelationNetwork]] = {
    "embed-avg": EmbedAverageScorer,
    "ltg-cnn": LetterTrigramScorer,
    "bigru": BiGRUScorer,
}
RELATIONS, WORDS, LENGTH, QUESTIONS = 7_523, 30_000, 10, 75_910
ENTITIES, DIM, TRIPLES = 4_650_000, 256, 65_536
SEARCHES, FOUND = 1_024, 20
OPTIMISERS = (("row-adagrad", 4 * DIM * 4 * 2), ("adam", 4 * DIM * 4 * 6))
"""Optimisers of TransE, and the bytes that a triple moves: it touches three entities and a relation, each a row that is
read and written; Adam has two moments more."""

TOLERANCE = 1e-3
SECONDS = 3.0
"""The seconds that each speed is measured; a third of them on a CPU."""


class Report:
    """Figures by name, written whenever one is added; `bandwidth` is what a large copy reaches, in bytes a second."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.bandwidth = 0.0
        self.figures: dict[str, float | str | bool] = {}

    def add(self, name: str, value: float | str | bool) -> None:
        self.figures[name] = value
        print(f"{name:<78}{value:>16,.4g}" if isinstance(value, float) else f"{name:<62}{value!s:>32}", flush=True)
        if self.path:
            self.path.write_text(json.dumps(self.figures, indent=2) + "\n", encoding="utf-8")

    def add_speed(self, name: str, speed: float, *, moved: float) -> None:
        """Add how many a second, and the share of the bandwidth that the bytes moved for each come to."""
        self.add(name, speed)
        self.add(f"{name}: share of bandwidth", speed * moved / self.bandwidth)


def rate(device: torch.device, run: Callable[[], object], *, count: int) -> float:
    """Return the rate per second: `count` in each run, runs repeated for SECONDS after two to warm up."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    run(), run()
    wait()
    begun, done, elapsed = time.perf_counter(), 0, 0.0
    enough = 0.0 if is_small() else SECONDS if device.type == "cuda" else SECONDS / 3
    while not done or elapsed < enough:
        run()
        wait()
        done += count
        elapsed = time.perf_counter() - begun
    return done / elapsed


def texts(count: int) -> list[list[str]]:
    random = np.random.default_rng(count)
    return [[f"word{word}" for word in row] for row in random.integers(0, WORDS, (count, LENGTH))]


def measure_bandwidth(device: torch.device, report: Report, *, size: int) -> None:
    """Copy a large tensor on the device; each byte is read and written."""
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    report.bandwidth = rate(device, lambda: target.copy_(source), count=2 * size)
    report.add(f"memory: GB/s in a copy of {size / 1e9:.3g} GB", report.bandwidth / 1e9)


def measure_scorer(name: str, device: torch.device, report: Report, *, relations: int, batches: list[int]) -> None:
    """Compare CPU and device, then time scoring at each batch size: the network, from words, from text to scores."""
    rows = [f"domain{row % 90}.kind{row % 700}.property_{row}" for row in range(relations)]
    known = [[f"word{word}"] for word in range(WORDS)]
    config = EncoderConfig(dim=128, words_dim=100, hidden=128, known_words=0)
    made = SCORERS[name].new(config, rows=rows, texts=known, words=load_words("random"), seed=1)
    network = made.trainable
    network.eval()
    with torch.inference_mode():
        expected = network.scores(texts(64))
    network.to(device)  # outside inference_mode: training cannot use tensors that were made inside
    network.known = network.collated = None
    with torch.inference_mode():
        apart = float((network.scores(texts(64)).cpu() - expected).abs().max())
        report.add(f"{name}: {device.type} agrees with the CPU", apart < TOLERANCE)
        for batch in batches:
            inputs = network.collate(texts(batch))
            speed = rate(device, partial(score, network, inputs), count=batch)
            report.add_speed(f"{name}: questions/s at {batch:,}, network alone", speed, moved=4 * relations)
            asked = texts(batch)
            report.add(
                f"{name}: questions/s at {batch:,}, from words",
                rate(device, partial(network.scores, asked), count=batch),
            )
            written = [read(" ".join(text)) for text in asked]
            report.add(
                f"{name}: questions/s at {batch:,}, from questions",
                rate(device, partial(made.score, written), count=batch),
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


def score(network: DotScorer, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Score collated texts against all relations, as `RelationNetwork.scores` does: (texts, relations)."""
    scores: torch.Tensor = network.encoder(*inputs) @ network.vectors(None).T
    return scores


def read(text: str) -> MarkedQuestion:
    """Split a question into words; its first two stand for the mention."""
    question = Question.read(text)
    return MarkedQuestion(question, 0, question.tokens[1].end)


def measure_transe(device: torch.device, report: Report, *, entities: int) -> None:
    network = TransE(entities, RELATIONS, dim=DIM).to(device)
    count = 8 if is_small() else TRIPLES
    facts = np.random.default_rng(1).integers(0, [entities, RELATIONS, entities], (count, 3))
    task = TranslatingTask(network, facts, margin=1.0)
    rows = np.arange(count)
    for name, moved in OPTIMISERS:
        optimisers = make_optimisers(network, name=name, lr=0.01, momentum=0.9)

        def step(optimisers: list[Optimizer] = optimisers) -> None:
            for optimiser in optimisers:
                optimiser.zero_grad(set_to_none=True)
            task.loss(rows).mean().backward()  # type: ignore[no-untyped-call]
            for optimiser in optimisers:
                optimiser.step()

        speed = rate(device, step, count=count)
        report.add_speed(f"transe: triples/s with {name} over {entities:,} entities", speed, moved=moved)


def measure_search(device: torch.device, report: Report, *, entities: int) -> None:
    """Time the exact search by torch, the exact and the IVF search by FAISS, and count what IVF finds.

    The vectors are random, the worst case for lists of neighbours. FAISS without a GPU has a tenth of them.
    """
    half = torch.float16 if device.type == "cuda" else torch.float32
    table = torch.nn.functional.normalize(torch.randn(entities, DIM, device=device, dtype=half), dim=1)
    asked = torch.nn.functional.normalize(torch.randn(SEARCHES, DIM, device=device, dtype=half), dim=1)

    def search() -> None:
        for part in torch.split(asked, 128):
            (part @ table.T).topk(FOUND, dim=1)

    name = f"search, torch, exact: queries/s, {FOUND} of {entities:,}"
    report.add_speed(name, rate(device, search, count=SEARCHES), moved=table.nbytes / 128)
    on_gpu = device.type == "cuda" and hasattr(faiss, "GpuIndexFlatIP")
    few = entities if on_gpu else entities // 10
    vectors, queries = table[:few].float().cpu().numpy(), asked[:128].float().cpu().numpy()
    where = "FAISS on a GPU" if on_gpu else "FAISS on CPUs"
    flat, ivf = faiss_indexes(few, on_gpu=on_gpu)
    flat.add(vectors)
    name = f"search, {where}, flat: queries/s, {FOUND} of {few:,}"
    report.add(name, rate(device, lambda: flat.search(queries, FOUND), count=len(queries)))
    ivf.train(vectors[:: max(1, few // 50_000)])
    ivf.add(vectors)
    name = f"search, {where}, IVF: queries/s, {FOUND} of {few:,}"
    report.add(name, rate(device, lambda: ivf.search(queries, FOUND), count=len(queries)))
    exact, found = (index.search(queries, FOUND)[1] for index in (flat, ivf))
    shared = [len(np.intersect1d(one, other)) for one, other in zip(exact, found, strict=True)]
    report.add(f"{name}: share of the exact ones found", float(np.mean(shared)) / FOUND)


def faiss_indexes(count: int, *, on_gpu: bool) -> tuple[faiss.Index, faiss.Index]:
    """Make a flat index and an inverted one, which looks into a tenth of its lists."""
    lists = max(10, int(count**0.5) // 2)
    if on_gpu:
        resources = faiss.StandardGpuResources()
        flat: faiss.Index = faiss.GpuIndexFlatIP(resources, DIM)
        ivf = faiss.GpuIndexIVFFlat(  # type: ignore[attr-defined]
            resources, DIM, lists, faiss.METRIC_INNER_PRODUCT
        )
    else:
        flat = faiss.IndexFlatIP(DIM)
        ivf = faiss.IndexIVFFlat(faiss.IndexFlatIP(DIM), DIM, lists, faiss.METRIC_INNER_PRODUCT)
    ivf.nprobe = min(lists // 10, 2_048)  # the most on a GPU
    return flat, ivf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    arguments = parse(parser)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    report = Report(arguments.out)
    report.add("device", torch.cuda.get_device_name(device) if device.type == "cuda" else "no GPU here: CPU only")
    small = arguments.small or device.type == "cpu"
    scale = 2_000 if arguments.small else 100 if small else 1
    report.add("size", f"1/{scale} of FB5M" if small else "FB5M")
    begun = time.perf_counter()
    measure_bandwidth(device, report, size=2**25 if small else 2**32)
    for name in SCORERS:
        sizes = [4] if arguments.small else [64, 256] if small else [256, 4_096]
        measure_scorer(name, device, report, relations=max(RELATIONS // scale, 20), batches=sizes)
    measure_transe(device, report, entities=ENTITIES // scale)
    measure_search(device, report, entities=ENTITIES // scale)
    report.add("seconds in all", time.perf_counter() - begun)
    rows = [(name, f"{value:,.4g}" if isinstance(value, float) else value) for name, value in report.figures.items()]
    show_table("speeds", ("what", "figure"), rows)


if __name__ == "__main__":
    main()
