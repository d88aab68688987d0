"""Results as text: candidates and answers one per line, and the reasons for the order of the candidates."""

from collections.abc import Sequence

from kbtools.answering.results import Answer, Candidate, Result
from kbtools.errors import BadArgument
from kbtools.kb.ids import is_literal, literal_text
from kbtools.linking.links import MOST_LINKED
from kbtools.text.question import MOST_LETTERS, MOST_RUNS

_SHOWN_TYPES, _SHOWN_ANSWERS = 3, 3
"""Types of a subject, and answers, shown for a reading."""

MATCHES = {
    "exact": "is exactly the name {name!r}",
    "case": "is the name {name!r} in different case",
    "accents": "is the name {name!r} with different accents",
    "punctuation": "is the name {name!r} with different punctuation",
    "apostrophe": "is the name {name!r} with a different apostrophe",
    "variant": "is a variant of the name {name!r} (article, bracket, comma or lost escape)",
    "fuzzy": "resembles the name {name!r}",
    "near": "has a vector near that of {name!r}",
}

PARTS = {
    "relation": "the relation's log-probability, given the rest of the question",
    "subject": "the subject's log-probability, given the question and the relation",
    "mention": "the mention, compared with the best mention of the question",
    "rung": "the difference between the mention and the name",
    "similarity": "the dissimilarity of a fuzzy match or a near vector",
    "popularity": "the number of the subject's facts",
    "sum": "the weighted sum of the parts, on its own and compared with the best of the pool",
    "taught": "taught questions that mean the subject, or this very question",
    "unexplained": "the content words outside the mention",
    "namesakes": "the entities with the name, and how many of them have the relation",
    "pool": "the number of candidates",
}


def explain(result: Result) -> str:
    """Return a result as text with the reasons for every candidate, as `kbtools query --explain` prints it.

    Raises BadArgument for anything but a Result.
    """
    if not isinstance(result, Result):
        raise BadArgument(f"explain takes a Result, as returned by query, found {result!r:.80}", name="result")
    return "\n".join(explained_lines(result))


def explained_lines(result: Result) -> list[str]:
    """Return the lines of `explain`."""
    lines = [result.question]
    for place, candidate in enumerate(result.candidates, 1):
        lines.append(_candidate_line(place, candidate))
        lines += ["      " + line for line in explain_candidate(candidate).splitlines()]
    lines += ["  " + line for line in explain_result(result).splitlines()]
    return lines + closing_lines(result)


def table_lines(result: Result) -> list[str]:
    """Return the question, a line for each candidate and the answers."""
    lines = [_candidate_line(place, candidate) for place, candidate in enumerate(result.candidates, 1)]
    if result.readings:  # in place of the first candidates
        return [result.question, *closing_lines(result), *lines[len(result.readings) :]]
    return [result.question, *lines, *closing_lines(result)]


def _candidate_line(place: int, candidate: Candidate) -> str:
    name = candidate.subject_name or "(no name)"
    relation = f"{candidate.relation_name} ({candidate.relation})" if candidate.relation_name else candidate.relation
    relation = f"inverse of {relation}" if candidate.inverse else relation
    link = f"[{candidate.rung}: {candidate.mention.text}]"
    described = f", {candidate.subject_description}" if candidate.subject_description else ""
    return f"{place:>3}  {candidate.score:8.3f}  {name} ({candidate.subject}){described}  {relation}  {link}"


def closing_lines(result: Result) -> list[str]:
    """Return the lines about the answers, or about why there are none, and about unread text."""
    lines = []
    if result.unread:
        most = f"{MOST_RUNS:,} words and marks are read, or in scripts without spaces {MOST_LETTERS:,} letters"
        lines.append(f"  only the first {most}: {result.unread:,} characters were not read")
    if result.bearers_left_out:
        most = f"only the {MOST_LINKED:,} bearers of a name with the most facts are candidates"
        lines.append(f"  {most}: {result.bearers_left_out:,} are left out")
    lines.append(f"  {verdict(result)}")
    for reading in result.readings:
        answers = _answers_text(reading.answers, reading.answers_total, most=_SHOWN_ANSWERS)
        lines.append(f"    {reading.text}: {answers}")
    if (rest := result.readings_total - len(result.readings)) > 0:
        lines.append(f"    and {rest:,} more")
    if result.answered:
        lines.append(f"  answers: {_answers_text(result.answers, result.answers_total)}")
    return lines


def _answers_text(answers: Sequence[Answer], total: int, *, most: int | None = None) -> str:
    """Return the first answers as text, and the number of the others."""
    shown = answers[:most]
    more = f" and {total - len(shown):,} more" if total > len(shown) else ""
    return ", ".join(map(_answer_text, shown)) + more


def reading_text(candidate: Candidate) -> str:
    """Return a candidate in words, with what distinguishes its subject from namesakes."""
    relation = candidate.relation_name or candidate.relation
    direction = f"what has as its {relation}" if candidate.inverse else f"the {relation} of"
    about = candidate.subject_description or ", ".join(candidate.types[:_SHOWN_TYPES])
    subject = f"{candidate.subject}; {about}" if about else candidate.subject
    return f"{direction} {candidate.subject_name or '(no name)'} ({subject})"


def _answer_text(answer: Answer) -> str:
    """Return the name and id of an answer, or the text of a literal."""
    if is_literal(answer.id):
        return answer.name or literal_text(answer.id)
    return f"{answer.name} ({answer.id})" if answer.name else answer.id


def _why_empty(result: Result) -> str:
    """Return why a result has no candidates."""
    if not result.without_facts:
        suggested = " or ".join(f"{entity.name or '(no name)'} ({entity.id})" for entity in result.suggestions or ())
        hint = f"; did you mean {suggested}?" if suggested else ""
        return f"no candidates: the question contains no name of the knowledge base{hint}"
    named = ", ".join(f"{entity.name} ({entity.id})" for entity in result.without_facts)
    no_fact = "no fact" if result.inverse else "no fact as a subject; --inverse reads facts backwards"
    return f"no candidates: the question names {named}, for which the knowledge base has {no_fact}"


def verdict(result: Result) -> str:
    """Return the confidence of a result, or why it has no answer."""
    if not result.candidates:
        return _why_empty(result)
    if result.readings_total:
        return f"not sure: {result.readings_total:,} readings are equally likely:"
    doubt = f", {result.doubt}" if result.doubt else ""
    if not result.answered:
        return f"no answer: confidence {result.confidence:.2f}{doubt}"
    return f"{'doubtful: ' if result.doubtful else ''}confidence {result.confidence:.2f}{doubt}"


def explain_candidate(candidate: Candidate) -> str:
    """Return the link of a candidate and every part of its score."""
    mention = candidate.mention
    match = MATCHES[candidate.rung].format(name=candidate.matched_name)
    lines = [f"{mention.text!r} (characters {mention.start} to {mention.end}) {match}"]
    for part, value in candidate.parts.items():
        lines.append(f"{value:+10.4f}  {part}: {PARTS.get(part, part)}")
    lines.append(f"{candidate.score:+10.4f}  score")
    return "\n".join(lines)


def _scorers_of(result: Result) -> str:
    """Return the relation scorers of a result, and whether the scorers for doubtful questions ran."""
    if result.scored_by is None:
        return result.scorer
    first, _, last = result.scorer.rpartition("/")
    if first:
        reason = f"since {first} was in doubt" if result.scored_by == last else f"confident without {last}"
        return f"{result.scored_by}, {reason}"
    return result.scored_by + (
        ", all of them because the first ranker was in doubt"
        if result.scored_by == result.scorer
        else f": confident without the others of {result.scorer}"
    )


def explain_result(result: Result) -> str:
    """Return the pruner and scorer of a result, the namesakes among its subjects, and its ties."""
    lines = [f"pruned by {result.pruning}, relations scored by {_scorers_of(result)}"]
    subjects_of: dict[str, dict[str, None]] = {}
    for candidate in result.candidates:
        subjects_of.setdefault(candidate.matched_name, {})[candidate.subject] = None
    for name, subjects in subjects_of.items():
        if len(subjects) > 1:
            bearers = ", ".join(subjects)
            lines.append(f"namesakes: {name!r} is borne by {bearers}; a stricter match comes first, then more facts")
    if result.tied > 1:
        same = "" if result.readings_total else " and have the same answers"
        lines.append(f"{result.tied} candidates share the first place{same}; they are ordered by id")
    return "\n".join(lines)
