"""TransE by kbtools and by PyKEEN on the same facts: CPU seconds of training, and accuracy on held-out objects.

Dimensions, epochs and batches are the same; everything else is the default of each.
"""

import random
import resource
import shutil
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from bench_inputs import SEED, Inputs
from numpy.typing import NDArray

CONTENDERS = {"kbtools": ("torch",), "PyKEEN": ("pykeen",)}
"""The contenders, and the packages that they need."""

FACTS, KEPT_BACK, DIM, EPOCHS, BATCH = 10_000, 1_000, 64, 20, 512
"""Of the first facts of FBSQ: a minute of training for both together."""

LEAST = 3
"""The fewest facts of an entity in a held-out fact."""

NEAR = 10

Facts = list[tuple[str, str, str]]
Vectors = tuple[dict[str, int], dict[str, int], NDArray[np.float32], NDArray[np.float32]]
"""The rows of entities and of relations, and the vectors of both."""


def measure(name: str, inputs: Inputs, work: Path) -> dict[str, Any]:
    """Train, then rank the objects of held-out facts by |E(s) + E(r) - E(o)|, lower is better."""
    train, test = split_facts(inputs)
    folder = work / "transe" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    begun = cpu()
    entities, relations, vectors, moves = {"kbtools": by_kbtools, "PyKEEN": by_pykeen}[name](train, folder)
    seconds = cpu() - begun
    targets = vectors[[entities[s] for s, _, _ in test]] + moves[[relations[r] for _, r, _ in test]]
    distances = np.stack([np.linalg.norm(vectors - target, axis=1) for target in targets])
    objects = distances[np.arange(len(test)), [entities[o] for _, _, o in test]]
    ranks = 1 + (distances < objects[:, None]).sum(axis=1)
    return {
        "cpu_s": round(seconds, 1),
        "facts": len(train),
        "facts_per_cpu_s": round(EPOCHS * len(train) / seconds),
        "recall": round(float(np.mean(ranks <= NEAR)), 4),
        "first": round(float(np.mean(ranks == 1)), 4),
    }


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def split_facts(inputs: Inputs) -> tuple[Facts, Facts]:
    """Hold out some facts whose subject, relation and object have others."""
    with inputs.facts.open(encoding="utf-8") as lines:
        text = "".join(islice(lines, FACTS)).replace("www.freebase.com/", "").replace("/", ".")
    rows = [line.split("\t") for line in text.splitlines()]
    facts = sorted({(s, r, o) for s, r, objects in rows for o in objects.split(" ")})
    random.Random(SEED).shuffle(facts)
    uses = Counter(part for fact in facts for part in fact)
    test: Facts = []
    for fact in facts:
        if len(test) < KEPT_BACK and min(uses[part] for part in fact) > LEAST:
            test.append(fact)
            uses.subtract(fact)
    kept = set(test)
    return [fact for fact in facts if fact not in kept], test


def by_kbtools(train: Facts, folder: Path) -> Vectors:
    """Index the facts and train as `kbtools train transe` does."""
    import kbtools
    from kbtools.cli.main import main
    from kbtools.ranking.models import ENTITIES, model_folder
    from kbtools.scorers.networks.checkpoint import read_checkpoint

    ids = sorted({part for s, _, o in train for part in (s, o)})
    kb = kbtools.index(out=folder / "x.kb", facts=train, names=[(entity, entity) for entity in ids]).kb
    sizes = ["--dim", str(DIM), "--epochs", str(EPOCHS), "--batch", str(BATCH)]
    main(["train", "transe", "--kb", str(folder / "x.kb"), "--out", str(folder), *sizes], standalone_mode=False)
    weights = read_checkpoint(model_folder(folder, ENTITIES, "transe")).weights
    vectors = weights["entities.weight"]
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = {entity: row for entity, row in zip(ids, kb.rows(ids), strict=True) if row is not None}
    relations = {relation: row for row, relation in enumerate(kb.relations)}
    return rows, relations, vectors, weights["relations.weight"]


def by_pykeen(train: Facts, folder: Path) -> Vectors:
    """Train TransE by stochastic local closed world assumption, which is PyKEEN's default."""
    from pykeen.models import TransE
    from pykeen.training import SLCWATrainingLoop
    from pykeen.triples import TriplesFactory
    from torch.optim import Adam

    factory = TriplesFactory.from_labeled_triples(np.array(train))
    model = TransE(triples_factory=factory, embedding_dim=DIM, scoring_fct_norm=2, random_seed=SEED)
    loop = SLCWATrainingLoop(model=model, triples_factory=factory, optimizer=Adam(model.parameters(), lr=0.01))
    loop.train(triples_factory=factory, num_epochs=EPOCHS, batch_size=BATCH, use_tqdm=False)
    vectors, moves = (
        part[0]().detach().numpy() for part in (model.entity_representations, model.relation_representations)
    )
    return factory.entity_to_id, factory.relation_to_id, vectors, moves
