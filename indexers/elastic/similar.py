"""Names close to a form: recalled by the cluster, rescored here, remembered with what they link to."""

from collections.abc import Sequence

from kbtools.indexers.elastic.cache import Cache
from kbtools.indexers.elastic.fuzzy import recall_searches, recalled
from kbtools.indexers.elastic.names import Names
from kbtools.kb.contract import SimilarName
from kbtools.linking.similarity import LONGEST_NAME, rescore

REMEMBERED = 1_000


class SimilarNames:
    """Find the names close to forms, many forms in one request."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.known: Cache[tuple[str, int, float], list[SimilarName]] = Cache(REMEMBERED)

    def to(self, form: str, *, limit: int, cutoff: float) -> list[SimilarName]:
        known = self.known.get((form, limit, cutoff))
        return list(self.fetch([form], limit, cutoff)[form] if known is None else known)

    def expect(self, forms: Sequence[str], *, limit: int, cutoff: float) -> None:
        """Fetch the names close to several forms."""
        self.fetch(
            [form for form in dict.fromkeys(forms) if self.known.get((form, limit, cutoff)) is None], limit, cutoff
        )

    def fetch(self, wanted: Sequence[str], limit: int, cutoff: float) -> dict[str, list[SimilarName]]:
        """Recall and rescore the names close to forms, and remember them."""
        askable = [form for form in wanted if form and len(form) <= LONGEST_NAME]
        words = {word for form in askable for word in form.split(" ")}
        known = {word for word, count in zip(words, self.names.frequency(list(words)), strict=True) if count}
        searches = {form: recall_searches(form, known) for form in askable}
        answers = iter(
            self.names.searches.run([(self.names.index, body) for bodies in searches.values() for body in bodies])
        )
        found = {}
        for form in wanted:
            sources = {one["form"]: one for _ in searches.get(form, ()) for one in recalled(next(answers))}
            found[form] = rescore(form, sources, limit=limit, cutoff=cutoff)
            self.known.put((form, limit, cutoff), found[form])
            for near in found[form]:
                self.names.note_linked(sources[near.form])
        return found
