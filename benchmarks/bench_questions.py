"""Whole questions, alone and in batches, without training and with models."""

import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from fbsq import questions

import kbtools
from kbtools.answering.query_options import QueryOptions
from kbtools.answering.questions import read_annotated

ALONE, TOGETHER, BATCH = 500, 4_096, 256
"""Questions that are asked one by one, and in batches."""


def measure(name: str, *, kb: Path, models: Path | None) -> dict[str, Any]:
    """Ask questions one by one and in batches, and return milliseconds and questions per second."""
    begun = time.perf_counter()
    answerer = kbtools.open(kb, models=models if name == "trained" else None)
    texts = [gold.text for gold in islice(read_annotated(questions("test")), TOGETHER)]
    options: QueryOptions = {} if name == "trained" else {"scorer": "lexical"}
    answerer.query(texts[0], **options)
    opened = time.perf_counter() - begun
    alone: list[float] = []
    for _ in range(2):  # the first round reads pages from the disk
        alone = []
        for text in texts[:ALONE]:
            at = time.process_time()
            answerer.query(text, **options)
            alone.append(1000 * (time.process_time() - at))
    at = time.process_time()
    batches = [texts[first : first + BATCH] for first in range(0, len(texts), BATCH)]
    count = sum(len(list(answerer.query_many(batch, **options))) for batch in batches)
    seconds = time.process_time() - at
    p50, p95 = np.percentile(alone, [50, 95])
    return {
        "open_ms": round(1000 * opened, 1),
        "cpu_ms_50": round(float(p50), 3),
        "cpu_ms_95": round(float(p95), 3),
        "questions_per_cpu_s": round(count / seconds),
    }
