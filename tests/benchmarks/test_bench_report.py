"""The report of the suite of benchmarks: who is better at both, and what is left out."""

from bench_report import better_peers, markdown


def figures(contender: str, *, milliseconds: float, recall: float) -> dict[str, object]:
    return {"task": "fuzzy", "contender": contender, "wall_ms_50": milliseconds, "recall": recall}


OURS = figures("kbtools", milliseconds=1.0, recall=0.9)


def test_a_peer_that_is_better_at_one_is_not_better_at_both() -> None:
    faster, righter = figures("a", milliseconds=0.5, recall=0.8), figures("b", milliseconds=2.0, recall=0.95)

    assert better_peers([OURS, faster, righter]) == []


def test_a_peer_that_is_as_right_and_faster_is_named() -> None:
    assert better_peers([figures("a", milliseconds=0.5, recall=0.9), OURS]) == ["fuzzy: a"]


def test_a_peer_that_is_the_same_at_both_is_not_better() -> None:
    assert better_peers([OURS, figures("a", milliseconds=1.0, recall=0.9)]) == []


def test_what_was_left_out_is_named_with_the_reason() -> None:
    described = {
        "cpu": "c",
        "cores": 2,
        "load": 0.1,
        "memory_gb": 8,
        "python": "3.11",
        "versions": {"kbtools": "0.1.0"},
    }
    results = [OURS, {"task": "fuzzy", "contender": "b", "skipped": "not installed: b"}]

    text = markdown({"machine": described, "titles": 10, "minutes": 1.0, "better": [], "results": results})

    assert "Left out: b, not installed: b." in text
    assert "| kbtools | 1.0 | 0.9 | 1.00 |" in text
    assert text.endswith("at once: none.\n")
