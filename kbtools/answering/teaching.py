"""Teaching: lessons become taught questions, and their effect is measured."""

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import GoldScores, find_gold
from kbtools.answering.name_candidates import link_name
from kbtools.answering.questions import AnnotatedQuestion, find_relations, spell_entities
from kbtools.answering.resampling import mean_interval
from kbtools.answering.results import Record, Result
from kbtools.errors import BadArgument, BadQuestions, SourceMissing, WrongFormat
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import canonical_id, is_literal, literal_text
from kbtools.kb.rows import EntityRows
from kbtools.kb.views import MARK, has_incoming
from kbtools.ranking.contracts import Teachable
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.opened_system import OpenedSystem
from kbtools.ranking.system import System
from kbtools.ranking.taught import Taught, TaughtFile, TaughtQuestion, same_text
from kbtools.text.encodings import find_encoding
from kbtools.text.normaliser import normal_form
from kbtools.text.printable import plural
from kbtools.text.question import MarkedQuestion, Question

_LISTED = 10
"""Relations that an error lists."""

_COLUMNS = ("question", "subject", "relation", "answer")

_ONE_BY_ONE, _FOLDS = 60, 10
"""The largest number of taught questions that are held out one by one, and the folds of a larger number."""

MOST_LETTERS = 2_000
"""The most characters of a taught question."""

_SHOWN, _VALUES = 20, 1_000
"""Relations that a message lists, and objects whose texts are compared with an answer."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question and its meaning as a person writes it: subject and relation by id or name, or only the answer."""

    question: str
    subject: str = ""
    relation: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class _TaughtRelation:
    """A relation, the number of its taught questions, and the share right before teaching and when held out."""

    relation: str
    questions: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class TeachingReport(Record):
    """The effect of teaching: the share of taught questions that is right before, and after, each held out in turn.

    `low` and `high` are the 95 % interval of the gain. `untaught` counts the relations without a question, and
    `first_untaught` lists some. `wrong` lists the questions still answered wrongly; `left_out` counts those about an
    entity or relation that the knowledge base lacks.
    """

    questions: int
    before: float
    after: float
    low: float
    high: float
    relations: tuple[_TaughtRelation, ...]
    untaught: int
    first_untaught: tuple[str, ...]
    wrong: tuple[str, ...]
    left_out: int


def read_lessons(path: Path) -> list[Lesson]:
    """Read lessons from JSON Lines, or from a table with tabs, semicolons or commas between its columns.

    A table without a header has the columns question, answer, or question, subject, relation, or subject, relation,
    object, question as in SimpleQuestions. Raises InputError for any other file.
    """
    if not path.is_file():
        raise SourceMissing.at(path, "no such file of questions")
    try:
        content = path.read_bytes()
        text = content.decode(find_encoding(content) or "utf-8-sig")
        if text.lstrip().startswith("{"):
            lines = ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())
            return [_read_lesson(json.loads(line), f"{path}:{number}") for number, line in lines]
        first = text.partition("\n")[0]
        separator = max("\t,;", key=lambda mark: (mark == "\t" and mark in first, first.count(mark)))
        rows = list(csv.reader(text.splitlines(), delimiter=separator))
    except (UnicodeDecodeError, ValueError, csv.Error) as error:
        raise WrongFormat.at(path, f"expected UTF-8 text, a table or JSON Lines ({error})") from error
    head = [cell.strip().casefold() for cell in rows[0]] if rows else []
    named = "question" in head
    lessons = []
    for number, row in enumerate(rows[named:], 1 + named):
        usual = {2: ("question", "answer"), 3: _COLUMNS[:3], 4: ("subject", "relation", "object", "question")}
        columns = head if named else usual.get(len(row))
        if columns is None and any(row):
            raise WrongFormat(f"{path}:{number}: found {len(row)} columns, expected 2 to 4", path=str(path))
        if columns and any(cell.strip() for cell in row):
            lessons.append(_read_lesson(dict(zip(columns, row, strict=False)), f"{path}:{number}"))
    return lessons


def _read_lesson(record: object, where: str) -> Lesson:
    """Return the lesson of a record; raise WrongFormat if its fields do not make one."""
    cells = record if isinstance(record, dict) else {}
    lesson = Lesson(*(" ".join(str(cells.get(name) or "").split()) for name in _COLUMNS))
    if not lesson.question or not (lesson.answer or (lesson.subject and lesson.relation)):
        raise WrongFormat.at(where, "expected a question with subject and relation, or with an answer")
    return lesson


def teach(answerer: Answerer, lessons: Iterable[Lesson], *, problems: list[str] | None = None) -> list[TaughtQuestion]:
    """Save lessons in the file of taught questions, replacing those with the same question.

    Raises BadArgument if there is no such file. A lesson that cannot be resolved is described in `problems`; without
    such a list BadQuestions is raised and nothing is saved.
    """
    file, taught = require_file(answerer), []
    for lesson in lessons:
        try:
            taught.append(_resolve(answerer, lesson))
        except BadQuestions as error:
            if problems is None:
                raise
            problems.append(f"{lesson.question!r}: {error}")
    if taught:
        new = {same_text(question.question): question for question in taught}
        file.change(lambda old: [*(lesson for lesson in old if same_text(lesson.question) not in new), *new.values()])
    return taught


def teach_one(answerer: Answerer, *words: str) -> TaughtQuestion:
    """Teach one lesson, given by its fields; raise as `teach` does."""
    (taught,) = teach(answerer, [Lesson(*words)])
    return taught


def forget(answerer: Answerer, text: str) -> bool:
    """Remove a taught question; return whether it was there."""
    file = require_file(answerer)
    count = len(file.read())
    kept = file.change(lambda old: [question for question in old if same_text(question.question) != same_text(text)])
    return len(kept) < count


def require_file(answerer: Answerer) -> TaughtFile:
    """Return the file of taught questions; raise BadArgument if there is none."""
    file = answerer.teaching.file
    if file is None:
        raise BadArgument("there is no file for taught questions; name one in KBTOOLS_TAUGHT", name="taught")
    return file


def _resolve(answerer: Answerer, lesson: Lesson) -> TaughtQuestion:
    """Return the pair that a lesson means; raise BadQuestions if the knowledge base has none, or several."""
    question = " ".join(lesson.question.split())
    if not 0 < len(question) <= MOST_LETTERS or not (lesson.answer or (lesson.subject and lesson.relation)):
        raise BadQuestions(
            f"expected a question of at most {MOST_LETTERS:,} characters with subject and relation, or with an answer"
        )
    answerer = answerer.both_ways() if has_incoming(answerer.kb) else answerer
    kb = answerer.kb
    if lesson.subject:
        subjects = _find_subjects(kb, lesson.subject)
        grouped = kb.relations_of(subjects)
        pairs = list(zip(np.repeat(subjects, np.diff(grouped.starts)).tolist(), grouped.values.tolist(), strict=True))
    else:
        (pool,) = answerer.opened(answerer.system()).gather([Question.read(question)]).pools
        pairs = list(zip(pool.subject_of_pair.tolist(), pool.relation_of_pair.tolist(), strict=True))
    if lesson.relation:
        relations = find_relations(kb, lesson.relation)
        if not relations:
            listed = ", ".join(map(repr, kb.relations[:_LISTED])) + (", ..." if len(kb.relations) > _LISTED else "")
            raise BadQuestions(f"no relation has the id or the label {lesson.relation!r}; there are {listed}")
        pairs = [pair for pair in pairs if kb.relations[pair[1]] in relations]
    if lesson.answer:
        rows = _answer_rows(kb, lesson.answer)
        objects = zip(pairs, kb.objects_of(pairs), strict=True)
        pairs = [pair for pair, own_objects in objects if _leads_to(kb, own_objects, rows, lesson.answer)]
    # A pair read forwards is preferred.
    pairs = [pair for pair in pairs if not kb.relations[pair[1]].startswith(MARK)] or pairs
    ids = kb.ids(np.array([subject for subject, _ in pairs], dtype=np.uint32))
    meant = [
        TaughtQuestion(question, subject_id, kb.relations[relation])
        for subject_id, (_, relation) in zip(ids, pairs, strict=True)
    ]
    if not meant:
        problem = "no subject and relation in it have the answer" if lesson.answer else "no fact has"
        raise BadQuestions(f"{problem} {lesson.answer or f'{lesson.subject} {lesson.relation}'}")
    if len(meant) > 1:
        pairs_text = ", ".join(f"{taught.subject} {taught.relation}" for taught in meant[:_SHOWN])
        problem = "have this answer" if lesson.answer else "fit"
        cure = "subject and relation" if lesson.answer else "the ids of its subject and relation"
        raise BadQuestions(f"{len(meant)} pairs {problem}, choose one with {cure}: {pairs_text}")
    return meant[0]


def _find_subjects(kb: KnowledgeBase, spelling: str) -> EntityRows:
    """Return the row of an id, or else of the strictest bearers of a name."""
    entity_id = canonical_id(spelling)
    (row,) = kb.rows([spell_entities(kb, [entity_id]).get(entity_id, entity_id)])
    if row is not None:
        return np.array([row], dtype=np.uint32)
    links = link_name(kb, spelling)
    rung = min((link.rung for link in links), default=None)
    bearers = [link.entities for link in links if link.rung == rung]
    if not bearers:
        raise BadQuestions(f"no entity has the id or the name {spelling!r}")
    return np.unique(np.concatenate(bearers))


def _answer_rows(kb: KnowledgeBase, answer: str) -> set[int]:
    """Return the rows of the entities with an id or a name."""
    named = [row for link in link_name(kb, answer) for row in link.entities.tolist()]
    return {row for row in kb.rows([canonical_id(answer)]) if row is not None} | set(named)


def _leads_to(kb: KnowledgeBase, objects: EntityRows, rows: set[int], answer: str) -> bool:
    """Return whether an answer is among objects, or is the text of a literal among the first of them."""
    if not rows.isdisjoint(objects.tolist()):
        return True
    texts = (literal_text(entity_id) for entity_id in kb.ids(objects[:_VALUES]) if is_literal(entity_id))
    return normal_form(answer) in map(normal_form, texts)


def report(answerer: Answerer, *, system: System | None = None) -> TeachingReport:
    """Return the effect of the taught questions, each asked with only the other folds taught."""
    system = system or answerer.system()
    file, taught = require_file(answerer), answerer.teaching.newest()
    inverse = any(question.relation.startswith(MARK) for question in taught.questions)
    view = answerer.both_ways() if inverse and has_incoming(answerer.kb) else answerer
    opened = view.opened_taught(system)
    before, now = right(view.opened(system), taught), right(opened, taught)
    after = np.zeros(len(taught))
    folds = np.arange(len(taught)) % (len(taught) if len(taught) <= _ONE_BY_ONE else _FOLDS)
    # Shuffled because neighbouring lines of a file are often about one relation.
    np.random.default_rng(0).shuffle(folds)
    for fold in np.unique(folds):
        rest, held_out = taught.subset(folds != fold), folds == fold
        after[held_out] = right(view.open_system(system, rest), taught.subset(held_out))
    low, high = mean_interval(after - before)
    relations = np.array([question.relation for question in taught.questions])
    by_relation = [
        _TaughtRelation(name, int(members.sum()), float(before[members].mean()), float(after[members].mean()))
        for name in sorted(set(relations.tolist()))
        for members in [relations == name]
    ]
    untaught = [relation for relation in answerer.kb.relations if relation not in set(relations.tolist())]
    return TeachingReport(
        questions=len(taught),
        before=float(before.mean()) if len(taught) else 0.0,
        after=float(after.mean()) if len(taught) else 0.0,
        low=low,
        high=high,
        relations=tuple(by_relation),
        untaught=len(untaught),
        first_untaught=tuple(untaught[:_SHOWN]),
        wrong=tuple(taught.questions[at].question for at in np.flatnonzero(now < 1)),
        left_out=len(file.read()) - len(taught),
    )


def right(opened: OpenedSystem, taught: Taught) -> NDArray[np.float64]:
    """Return the probability that each taught question is answered right, with ties broken at random."""
    questions = [AnnotatedQuestion(lesson.subject, lesson.relation, "", lesson.question) for lesson in taught.questions]
    return expect(opened, questions)


def expect(opened: OpenedSystem, questions: Sequence[AnnotatedQuestion]) -> NDArray[np.float64]:
    """Return the probability that each question's gold pair comes first, 0 if it is not a candidate: (questions,)."""
    if not questions:
        return np.zeros(0)
    gold = find_gold(opened.kb, questions)
    pools = opened.gather_pools(gold.texts)
    rating = opened.rate_taught(pools, gold.texts)
    if rating is None:
        return np.zeros(len(questions))
    return GoldScores(Evidence(pools, {}), gold.pairs(pools)).expected_by(rating.scores)


def taught_lines(answerer: Answerer, result: Result) -> list[str]:
    """Return lines on the nearest taught question, and on the first candidate without teaching."""
    taught = answerer.teaching.newest()
    if not result.taught or not result.candidates:
        return []
    system = answerer.system(
        pruning=result.pruning, scorer=result.scorer, subject=result.subject_scorer, ranker=result.ranker
    )
    first, lines = result.candidates[0], [f"  taught by {plural(result.taught, 'question')}"]
    question = Question.read(result.question)
    for name in system.every_scorer:
        if isinstance(scorer := answerer.parts.scorer(name, answerer.kb), Teachable):
            (vector,) = scorer.embed([MarkedQuestion(question, first.mention.start, first.mention.end)])
            cosines = taught.embedded(name, scorer) @ vector
            nearest = taught.questions[int(cosines.argmax())]
            lines.append(f"  nearest: {nearest.question!r} {nearest.relation}, cosine {cosines.max():.2f}")
            break
    opened = answerer.opened(system)
    type_row = None if result.type is None else answerer.reader.type_row(result.type)
    _, _, (before,) = opened.rank(opened.gather([question], type_row=type_row), top=1)
    for pair in before.likeliest[:1]:
        (subject,), relation = opened.kb.ids(np.array([pair[0]], dtype=np.uint32)), opened.kb.relations[pair[1]]
        same = (subject, relation) == (first.subject, MARK * first.inverse + first.relation)
        lines.append(
            "  the first candidate is the same without teaching"
            if same
            else f"  without it {subject} {relation} comes first"
        )
    return lines
