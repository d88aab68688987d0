"""Look-up: from a name to the entities that bear it, strictly, else to those whose names resemble it."""

from kbtools.answering.entity_reader import EntityReader
from kbtools.answering.explaining import MATCHES
from kbtools.answering.limits import TOP, read_limit, require_text
from kbtools.answering.name_candidates import NameCandidates, link_name, link_similar_names, rank_by_name, whole
from kbtools.answering.records import EntityMatch, LookupResult
from kbtools.linking.strict import link_inverted
from kbtools.text.normaliser import normal_form
from kbtools.text.rungs import Rung


class NameLookup:
    """A finder of the entities that a name may mean, which writes them out."""

    def __init__(self, reader: EntityReader) -> None:
        self.kb = reader.kb
        self.reader = reader

    def lookup(self, name: str, *, type: str | None = None, limit: int | None = TOP) -> LookupResult:
        """Find the bearers of a name, strictly, else fuzzily; raise UnknownType for a type that no entity has."""
        require_text(name, "name")
        limit = read_limit(limit, "limit")
        of_type = None if type is None else self.reader.type_row(type)
        bearers = rank_by_name(self.kb, link_name(self.kb, name), of_type=of_type)
        if not len(bearers.entities):
            (inverted,) = link_inverted(self.kb, [[whole(name, normal_form(name))]])
            bearers = rank_by_name(self.kb, inverted, of_type=of_type)
        if not len(bearers.entities):
            bearers = rank_by_name(self.kb, link_similar_names(self.kb, name), of_type=of_type)
        return LookupResult(name, type, self.matches(name, bearers, limit=limit))

    def matches(self, words: str, bearers: NameCandidates, *, limit: int | None) -> tuple[EntityMatch, ...]:
        """Write out the first bearers of some words."""
        entities = bearers.entities[:limit]
        labels, types = self.reader.labels(entities), self.reader.types_of(entities)
        described = self.kb.descriptions(entities)
        scored = zip(labels, types, described, bearers.links[:limit], bearers.scores(limit), strict=True)
        matches = []
        for place, (label, kinds, description, link, score) in enumerate(scored):
            reasons = [f"{words!r} {MATCHES[link.rung.label].format(name=link.name)}"]
            if link.rung is Rung.FUZZY:
                reasons.append(f"similarity {link.similarity:.1f} of 100")
            matches.append(
                EntityMatch(
                    id=label.id,
                    name=label.name,
                    matched_name=link.name,
                    rung=link.rung.label,
                    similarity=round(link.similarity, 4),
                    prior=round(float(bearers.prior.values[place]), 6),
                    score=round(score, 4),
                    types=kinds,
                    reasons=(*reasons, bearers.prior.reason(place)),
                    description=description,
                )
            )
        return tuple(matches)
