"""Say in words why a candidate stands where it does."""

from kbtools.results import Candidate, Result

MATCHES = {
    "exact": "is exactly the name {name!r}",
    "case": "is the name {name!r} but for its case",
    "accents": "is the name {name!r} but for its accents",
    "punctuation": "is the name {name!r} but for its punctuation",
    "apostrophe": "is the name {name!r} but for an apostrophe",
    "variant": "is a variant of the name {name!r} (article, bracket, comma or lost escape)",
    "fuzzy": "resembles the name {name!r}",
    "near": "has a vector near that of {name!r}",
}

PARTS = {
    "relation": "the relation's log-probability, given the rest of the question",
    "subject": "the subject's log-probability, given the question and the relation",
    "mention": "the mention against the best mention of the question",
    "rung": "how far the mention is from the name",
    "similarity": "how much a fuzzy match, or a near vector, lacks",
    "popularity": "the number of the subject's facts",
}


def explain_candidate(candidate: Candidate) -> str:
    """Explain one candidate: its link, then every part of its score."""
    mention = candidate.mention
    match = MATCHES[candidate.rung].format(name=candidate.matched_name)
    lines = [f"{mention.text!r} (characters {mention.start} to {mention.end}) {match}"]
    for part, value in candidate.parts.items():
        lines.append(f"{value:+10.4f}  {part}: {PARTS.get(part, part)}")
    lines.append(f"{candidate.score:+10.4f}  score")
    return "\n".join(lines)


def explain_result(result: Result) -> str:
    """Explain what holds for the whole result: how it was pruned and scored, and what a tie means."""
    lines = [f"pruned by {result.pruning}, relations scored by {result.scorer}"]
    names: dict[str, dict[str, None]] = {}
    for candidate in result.candidates:
        names.setdefault(candidate.matched_name, {})[candidate.subject] = None
    for name, subjects in names.items():
        if len(subjects) > 1:
            shown = ", ".join(subjects)
            lines.append(f"namesakes: {name!r} is borne by {shown}; a stricter match comes first, then more facts")
    if result.tied > 1:
        lines.append(f"{result.tied} candidates share the first place; their order is that of their ids, no preference")
    return "\n".join(lines)
