"""The cases that kbtools must answer, over the sample, in every backend and under every pruner where it can hold."""

import gzip
import json
import os
import random
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from evaluation import expected_accuracy, pruning_figures

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion, read_annotated
from kbtools.answering.results import Candidate
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.folder.kb_folder import read_manifest
from kbtools.indexers.readers.reading import ReadOptions, Source
from tests.conftest import World

every_pruner = pytest.mark.parametrize("pruning", ["n-gram", "n-gram+", "n-gram-idf"])
cutting_pruners = pytest.mark.parametrize("pruning", ["n-gram+", "n-gram-idf"])


def pool(answerer: Answerer, text: str, pruning: str) -> tuple[Candidate, ...]:
    """Give every candidate, best first."""
    return answerer.query(text, pruning=pruning, top=None).candidates


def subjects(candidates: Iterable[Candidate]) -> list[str]:
    """List subjects in the order of their best candidate."""
    return list(dict.fromkeys(candidate.subject for candidate in candidates))


def rung_of(candidates: Iterable[Candidate], subject: str) -> str:
    (rung,) = {candidate.rung for candidate in candidates if candidate.subject == subject}
    return rung


# Harder.....Faster


@every_pruner
def test_dots_inside_a_name_are_part_of_its_span(sample: Answerer, pruning: str) -> None:
    text = "Which genre of album is harder.....faster?"
    linked = [found for found in pool(sample, text, pruning) if found.subject == "m.01jp8ww"]
    assert {found.relation for found in linked} == {"music.album.genre", "music.album.artist"}
    for found in linked:
        assert (found.matched_name, found.rung) == ("Harder.....Faster", "case")
        assert (found.mention.text, found.mention.start, found.mention.end) == ("harder.....faster", 24, 41)


@cutting_pruners
def test_dots_inside_a_name_do_not_keep_it_from_the_first_place(sample: Answerer, pruning: str) -> None:
    first = pool(sample, "Which genre of album is harder.....faster?", pruning)[0]
    assert (first.subject, first.relation) == ("m.01jp8ww", "music.album.genre")


# Titles of stop words


@every_pruner
@pytest.mark.parametrize(
    ("text", "bearers"),
    [
        ("It", {"m.0kba086", "m.0kba107", "m.032xky"}),
        ("Them", {"m.0kba112"}),
        ("them", {"m.0kba092"}),
        ("The Who", {"m.01v0sxx"}),
        ("Who", {"m.0kba115"}),
    ],
)
def test_a_title_of_stop_words_is_found_by_its_exact_name(
    sample: Answerer, pruning: str, text: str, bearers: set[str]
) -> None:
    found = pool(sample, text, pruning)
    assert {one.subject for one in found if one.rung == "exact" and one.mention.text == text} == bearers
    assert found[0].subject in bearers


@every_pruner
@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("who wrote it", "m.0kba086"),
        ("who is the author of them", "m.0kba092"),
        ("what genre is the who", "m.01v0sxx"),
        ("who is the artist of who", "m.0kba115"),
    ],
)
def test_a_title_of_stop_words_is_found_inside_a_question(
    sample: Answerer, pruning: str, text: str, subject: str
) -> None:
    assert pool(sample, text, pruning)[0].subject == subject


def test_who_does_not_flood_the_pool_of_a_question_about_it(sample: Answerer) -> None:
    assert {one.mention.text for one in pool(sample, "who wrote it", "n-gram+")} == {"it"}
    assert {one.mention.text for one in pool(sample, "who wrote it", "n-gram")} == {"it", "who"}


# Numbers


@every_pruner
@pytest.mark.parametrize(("year", "bearers"), [("1984", {"m.0lz9s", "m.06t1xh", "m.0kba106"}), ("1985", {"m.0kba089"})])
def test_a_year_links_to_the_titles_of_that_year_alone(
    sample: Answerer, pruning: str, year: str, bearers: set[str]
) -> None:
    found = pool(sample, f"book called {year}", pruning)
    assert {one.subject for one in found} == bearers
    assert {one.rung for one in found} == {"exact"}


@every_pruner
def test_a_year_that_no_title_has_links_to_no_other_year(sample: Answerer, pruning: str) -> None:
    assert pool(sample, "1986", pruning) == ()


# Beginnings of longer names


@every_pruner
@pytest.mark.parametrize("text", ["user100", "what topics does user100 follow"])
def test_user100_is_found_before_the_users_it_begins(sample: Answerer, pruning: str, text: str) -> None:
    first = pool(sample, text, pruning)[0]
    assert (first.subject, first.rung) == ("m.0kba142", "exact")


@every_pruner
def test_lille_is_strictly_before_the_towns_it_begins(sample: Answerer, pruning: str) -> None:
    found = pool(sample, "lille", pruning)
    longer = [one.score for one in found if one.subject in ("m.0kba004", "m.0kba005")]
    assert found[0].subject == "m.0d8r8"
    assert all(found[0].score > score for score in longer)


# Names that differ by case


@every_pruner
@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("Machine Learning", ["m.0kba095", "m.0kba145"]),
        ("machine learning", ["m.0kba145", "m.0kba095"]),
        ("MAP", ["m.0kba146", "m.0kba147"]),
        ("map", ["m.0kba147", "m.0kba146"]),
    ],
)
def test_names_that_differ_by_case_are_all_found_and_case_decides_their_order(
    sample: Answerer, pruning: str, text: str, order: list[str]
) -> None:
    found = [one for one in pool(sample, text, pruning) if one.mention.text == text]
    assert subjects(found) == order
    assert [rung_of(found, subject) for subject in order] == ["exact", "case"]


# Marks


@every_pruner
@pytest.mark.parametrize(
    ("name", "without", "subject"),
    [("Nízke Tatry", "Nizke Tatry", "m.0kba020"), ("Sasha Vujačić", "Sasha Vujacic", "m.07f3jg")],
)
def test_marks_may_be_left_out_or_decomposed(
    sample: Answerer, pruning: str, name: str, without: str, subject: str
) -> None:
    decomposed = unicodedata.normalize("NFD", name)
    assert decomposed != name
    pools = [pool(sample, f"where is {text} from", pruning) for text in (name, without, decomposed)]
    pairs = [[(one.subject, one.relation) for one in found] for found in pools]
    assert pairs[0] == pairs[1] == pairs[2]
    assert pools[0][0].subject == subject
    assert [found[0].mention.text for found in pools] == [name, without, decomposed]
    assert pools[0][0].rung == pools[2][0].rung == "exact"


@every_pruner
def test_the_rung_says_that_marks_are_missing(sample: Answerer, pruning: str) -> None:
    assert pool(sample, "where is nizke tatry", pruning)[0].rung == "accents"


# Apostrophes


@every_pruner
@pytest.mark.parametrize(
    ("text", "subject", "relation", "mention"),
    [
        (
            "what is peters point plantation's style",
            "m.06l_40z",
            "architecture.structure.architectural_style",
            "peters point plantation",
        ),
        (
            "who commanded in red clouds war",
            "m.02fjhv",
            "military.military_conflict.commanders..military.military_command.military_commander",
            "red clouds war",
        ),
    ],
)
def test_an_apostrophe_may_be_left_out(
    sample: Answerer, pruning: str, text: str, subject: str, relation: str, mention: str
) -> None:
    (gold,) = [one for one in pool(sample, text, pruning) if (one.subject, one.relation) == (subject, relation)]
    assert (gold.rung, gold.mention.text) == ("apostrophe", mention)


# Signs


@every_pruner
@pytest.mark.parametrize(
    ("name", "subject"),
    [("C++", "m.0jgqg"), ("C#", "m.07657k"), ("m/s", "m.0kba166"), ("!!!", "m.0kba111"), ("?", "m.0kba121")],
)
@pytest.mark.parametrize("text", ["{}", "what about {} then", "({})"])
def test_signs_are_never_dropped(sample: Answerer, pruning: str, name: str, subject: str, text: str) -> None:
    found = [one for one in pool(sample, text.format(name), pruning) if one.mention.text == name]
    assert subject in subjects(found)
    assert rung_of(found, subject) == "exact"


@every_pruner
def test_a_sign_decides_between_names_that_share_their_letters(sample: Answerer, pruning: str) -> None:
    firsts = [pool(sample, f"who designed {name}", pruning)[0].subject for name in ("C", "C++", "C#")]
    assert firsts == ["m.01t6b", "m.0jgqg", "m.07657k"]


# Typos


def test_a_misspelt_title_stands_above_the_namesake_of_one_of_its_words(sample: Answerer) -> None:
    found = pool(sample, "Who directed Pirates of the Carribean", "n-gram-idf")
    assert subjects(found)[0] == "m.01vksx"
    assert subjects(found).index("m.01vksx") < subjects(found).index("m.061xq")
    assert rung_of(found, "m.01vksx") == "fuzzy"


@every_pruner
def test_a_misspelt_title_is_found_where_nothing_else_links(sample: Answerer, pruning: str) -> None:
    found = pool(sample, "frankenstien", pruning)
    assert subjects(found) == ["m.0kba093"]
    assert rung_of(found, "m.0kba093") == "fuzzy"


# Awkward rows


def test_a_duplicate_fact_is_counted_and_shown_once(sample: Answerer) -> None:
    counts = sample.kb.manifest.counts["facts"]
    assert counts.unique == 534
    objects = [answer.id for answer in sample.query("what genre is the who").answers]
    assert objects == sorted(set(objects))
    assert len(objects) > 1


@every_pruner
def test_an_object_without_a_name_is_shown_by_its_id(sample: Answerer, pruning: str) -> None:
    result = sample.query("where was red cloud born", pruning=pruning)
    assert [(answer.id, answer.name) for answer in result.answers] == [("m.0kba179", None)]


@every_pruner
@pytest.mark.parametrize("text", ["Atlantis", "where is atlantis", "Kryptonian"])
def test_a_subject_with_no_facts_opens_no_candidate(sample: Answerer, pruning: str, text: str) -> None:
    forwards = sample.query(text, pruning=pruning, inverse=False, top=None).candidates
    assert not {"m.0kba172", "m.0kba082"} & {one.subject for one in forwards}


@every_pruner
@pytest.mark.parametrize(
    ("text", "subject", "name", "rung"),
    [
        ('"Heroes"', "m.0kba119", '"Heroes"', "exact"),
        ("AC\\DC", "m.0134s5", "AC\\DC", "exact"),
        ("AC/DC", "m.0134s5", "AC/DC", "exact"),
        ('Symphony No. 9 "From the New World"', "m.0kba131", 'Symphony No. 9 "From the New World"', "exact"),
    ],
)
def test_quotes_and_backslashes_are_part_of_a_name(
    sample: Answerer, pruning: str, text: str, subject: str, name: str, rung: str
) -> None:
    first = pool(sample, text, pruning)[0]
    assert (first.subject, first.matched_name, first.rung) == (subject, name, rung)


@every_pruner
def test_an_alias_of_ten_thousand_characters_is_a_mention_like_any_other(
    sample: Answerer, sample_world: World, pruning: str
) -> None:
    (alias,) = [text for _, text in sample_world.aliases if len(text) == 10_000]
    first = pool(sample, f"what is {alias}", pruning)[0]
    assert (first.subject, first.mention.text, first.mention.start) == ("m.0kba170", alias, 8)


@every_pruner
@pytest.mark.parametrize("text", ["", " ", "\t", "\u200b", "zzzz qqqq", "...", "\ud800", "\0", "x" * 9_000])
def test_a_question_that_names_nothing_has_no_candidates(sample: Answerer, pruning: str, text: str) -> None:
    result = sample.query(text, pruning=pruning)
    assert (result.question, result.candidates, result.tied, result.answers) == (text, (), 0, ())


@every_pruner
def test_a_question_of_five_thousand_tokens_is_answered(sample: Answerer, pruning: str) -> None:
    text = "and then " * 2_500 + "who wrote frankenstein"
    found = pool(sample, text, pruning)
    assert "m.0kba093" in subjects(found)
    assert {text[one.mention.start : one.mention.end] for one in found if one.subject == "m.0kba093"} == {
        "frankenstein"
    }


# Order


@every_pruner
def test_an_exact_tie_says_how_many_share_it_and_goes_by_id(sample: Answerer, pruning: str) -> None:
    result = sample.query("where is springfield", pruning=pruning, top=None)
    first = result.candidates[: result.tied]
    assert result.tied == 2
    assert [one.subject for one in first] == ["m.0ftxc", "m.0mzvm"]
    assert len({one.score for one in first}) == 1
    assert all(one.score < first[0].score for one in result.candidates[2:])


@every_pruner
@pytest.mark.parametrize("top", [1, 2, 3])
def test_a_shorter_list_is_the_beginning_of_the_whole_and_knows_the_whole_tie(
    sample: Answerer, pruning: str, top: int
) -> None:
    whole = sample.query("where is springfield", pruning=pruning, top=None)
    cut = sample.query("where is springfield", pruning=pruning, top=top)
    assert cut.candidates == whole.candidates[:top]
    assert (cut.tied, cut.answers) == (whole.tied, whole.answers)


def test_popularity_never_outranks_a_stricter_rung(
    backend: str, make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    popular = [("popular", "book.author", f"writer {number}") for number in range(5_000)]
    world = new_world(facts=(*popular, ("rare", "book.author", "z")), names=(("popular", "jaws"), ("rare", "Jaws")))
    answerer = Answerer(make_kb(backend, world))
    assert subjects(answerer.query("who wrote Jaws").candidates) == ["rare", "popular"]
    assert subjects(answerer.query("who wrote jaws").candidates) == ["popular", "rare"]
    assert subjects(answerer.query("who wrote JAWS").candidates) == ["popular", "rare"]


@every_pruner
def test_on_every_question_namesakes_stand_by_rung_then_facts(sample: Answerer, examples: Path, pruning: str) -> None:
    questions = [one.text for split in ("train", "valid", "test") for one in gold(examples, split)]
    checked = 0
    for text in questions:
        places = {}
        for found in pool(sample, text, pruning):
            key = (found.relation, found.mention.start, found.mention.end)
            places.setdefault(key, []).append(found.parts["rung"])
        checked += sum(len(rungs) > 1 for rungs in places.values())
        assert all(rungs == sorted(rungs, reverse=True) for rungs in places.values())
    assert checked >= 20


# Repetition


def test_a_query_repeated_a_hundred_times_in_two_processes_gives_identical_bytes(sample_path: Path) -> None:
    texts = ["where is springfield", "who wrote it", "Who directed Pirates of the Carribean", "what genre is the who"]
    command = [sys.executable, "-c", "from kbtools.cli.main import main; main()"]
    command += ["query", "--kb", str(sample_path), "--no-timing", "--json", "-"]
    asked = "".join(f"{text}\n" for text in texts * 100).encode()
    lines = [
        subprocess.run(
            command, input=asked, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout.splitlines()
        for seed in ("1", "2")
    ]
    assert [len(found) for found in lines] == [400, 400]
    assert [json.loads(line)["question"] for line in lines[0][:4]] == texts
    assert set(lines[0]) == set(lines[1])
    assert len(set(lines[0])) == 4


def shuffled(lines: Sequence[str], folder: Path, name: str) -> list[Path]:
    """Write lines in a random order over three files, one of them compressed."""
    mixed = random.Random(name).sample(lines, len(lines))
    paths = [folder / f"{name}{part}.txt" for part in range(2)]
    paths[0].write_text("".join(mixed[::3]), encoding="utf-8")
    paths[1].write_text("".join(mixed[1::3]), encoding="utf-8")
    packed = folder / f"{name}2.txt.gz"
    packed.write_bytes(gzip.compress("".join(mixed[2::3]).encode()))
    return [packed, *paths]


def test_the_digest_is_that_of_the_content_whatever_the_order_files_and_packing(
    examples: Path, sample_path: Path, tmp_path: Path
) -> None:
    sources = []
    for kind in ("types", "names", "facts"):
        lines = (examples / f"sample.{kind}.txt").read_text(encoding="utf-8").splitlines(keepends=True)
        sources += [Source(path, kind) for path in shuffled(lines, tmp_path, kind)]
    mixed = build(sources, tmp_path / "mixed.kb", options=ReadOptions(), watch=BuildProgress()).manifest
    kept = read_manifest(sample_path)
    assert mixed.digest == kept.digest
    assert {kind: count.unique for kind, count in mixed.counts.items()} == {
        kind: count.unique for kind, count in kept.counts.items()
    }


@pytest.mark.parametrize("kind", ["facts", "names", "types"])
def test_the_digest_tells_any_line_that_is_missing(
    examples: Path, sample_path: Path, tmp_path: Path, kind: str
) -> None:
    sources = []
    for one in ("facts", "names", "types"):
        lines = (examples / f"sample.{one}.txt").read_text(encoding="utf-8").splitlines(keepends=True)
        path = tmp_path / f"{one}.txt"
        path.write_text("".join(lines[: -20 if one == kind else None]), encoding="utf-8")
        sources.append(Source(path, one))
    shorter = build(sources, tmp_path / "shorter.kb", options=ReadOptions(), watch=BuildProgress()).manifest
    assert shorter.digest != read_manifest(sample_path).digest


# Parts of names


def test_a_question_with_a_part_of_a_name_suggests_the_entity(sample: Answerer) -> None:
    result = sample.query("where is the harder")
    assert (result.candidates, result.answers) == ((), ())
    assert [entity.id for entity in result.suggestions or ()] == ["m.01jp8ww"]


# Renaming


def gold(examples: Path, split: str) -> list[AnnotatedQuestion]:
    return list(read_annotated(examples / f"sample.{split}.txt"))


def renamed(world: World, questions: list[AnnotatedQuestion], seed: int) -> tuple[World, list[AnnotatedQuestion]]:
    """Give every entity another's id at random, in the world and in the questions."""
    ids = sorted({s for s, _, _ in world.facts} | {o for _, _, o in world.facts} | {e for e, _ in world.names})
    new = dict(zip(ids, random.Random(seed).sample(ids, len(ids)), strict=True))
    named = type(world)(
        facts=tuple((new[s], r, new[o]) for s, r, o in world.facts),
        names=tuple((new[entity], name) for entity, name in world.names),
        types=tuple((new.get(entity, entity), kind) for entity, kind in world.types),
        aliases=tuple((new[entity], name) for entity, name in world.aliases),
    )
    asked = [type(one)(new[one.subject], one.relation, new.get(one.object, one.object), one.text) for one in questions]
    return named, asked


@every_pruner
def test_renaming_every_id_at_random_changes_no_figure(
    sample_memory: Answerer, sample_world: World, make_kb: Callable[[str, World], Any], examples: Path, pruning: str
) -> None:
    questions = gold(examples, "train") + gold(examples, "valid") + gold(examples, "test")
    world, asked = renamed(sample_world, questions, seed=1)
    other = Answerer(make_kb("memory", world))
    figures, renamed_figures = figures_of(sample_memory, questions, pruning), figures_of(other, asked, pruning)
    assert renamed_figures == figures


def figures_of(answerer: Answerer, questions: list[AnnotatedQuestion], pruning: str) -> tuple[object, ...]:
    results = [answerer.query(one.text, pruning=pruning, top=None) for one in questions]
    accuracy = expected_accuracy(results, questions)
    return pytest.approx(accuracy), pruning_figures(answerer, questions, pruning=pruning), [r.tied for r in results]
