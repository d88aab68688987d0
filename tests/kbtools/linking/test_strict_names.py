"""Names that questions link by are kept at hand, and are those that a look-up gives."""

from collections.abc import Mapping, Sequence

from kbtools.kb.contract import KnowledgeBase, NameMatch
from kbtools.kb.views import View
from kbtools.linking.strict import StrictNames, link_matches, link_strictly, with_facts
from kbtools.text.question import Question

TEXTS = ("who was born in paris", "where is lodz", "what is the population of paris", "no name at all", "")


class Renamed(View):
    """A view whose names change between two questions."""

    lost = False

    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        return {} if self.lost else {form: list(names) for form, names in self.kb.lookup(forms).items()}


def test_names_at_hand_match_as_those_looked_up_do(tiny_memory: KnowledgeBase) -> None:
    names = StrictNames(tiny_memory)
    questions = [Question.read(text) for text in TEXTS]
    expected = [with_facts(tiny_memory, link_strictly(tiny_memory, question)) for question in questions]

    matched = [
        [link_matches(tiny_memory, *own) for own in zip(questions, names.matches(questions), strict=True)]
        for _ in range(2)
    ]

    for own in matched:
        assert [list(map(repr, matches)) for matches in own] == [list(map(repr, matches)) for matches in expected]
    assert any(expected)


def test_names_that_are_no_longer_found_link_to_nothing(tiny_memory: KnowledgeBase) -> None:
    view = Renamed(tiny_memory)
    names, question = StrictNames(view), Question.read(TEXTS[0])
    assert names.matches([question])[0]

    view.lost = True

    assert names.matches([question]) == [[]]


def test_a_name_that_is_another_now_is_looked_up_again(tiny_memory: KnowledgeBase) -> None:
    class Changing(Renamed):
        called = "Paris"

        def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
            found = self.kb.lookup(forms)
            return {form: [match._replace(name=self.called) for match in names] for form, names in found.items()}

    view = Changing(tiny_memory)
    names, question = StrictNames(view), Question.read("who was born in paris")
    before = {name.name for match in names.matches([question])[0] for name, _ in match.names}

    view.called = "Lutetia"

    after = {name.name for match in names.matches([question])[0] for name, _ in match.names}
    assert (before, after) == ({"Paris"}, {"Lutetia"})
