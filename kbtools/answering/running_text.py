"""Linking running text: non-overlapping mentions of entities, sentence by sentence, so that cost is linear."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from itertools import islice
from operator import add

from kbtools.answering.context import ContextRanker
from kbtools.answering.entity_reader import NameLookup
from kbtools.answering.limits import read_limit, read_share, require_text
from kbtools.answering.name_candidates import rank_by_name
from kbtools.answering.records import LinkedMention, LinkedText
from kbtools.deadline import check_time
from kbtools.kb.views import question_languages
from kbtools.linking.fuzzy import link_slips
from kbtools.linking.links import Link
from kbtools.linking.strict import link_all_strictly
from kbtools.text.common_words import COMMON, FUNCTION, ORDINARY, UNKNOWN, VERY_COMMON, commonness
from kbtools.text.function_words import has_content
from kbtools.text.lexicons import function_words, hinting_words
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question
from kbtools.text.readings import every_ngram, respaced_ngrams
from kbtools.text.rungs import Rung

# On 2,075 validation questions of FBSQ F1 is highest, 67.7 % in lower case and 71.8 % with names as they are written,
# of 0.1 to 0.5; all mentions of 30 sentences over the sample are found, and none besides.
THRESHOLD = 0.3
"""Score from which a mention is linked."""

CANDIDATES = 5
"""Candidates of a mention that are given unless told otherwise."""

_LONGEST_MENTION = 12
"""Words of a mention in running text: longer names are whole sentences, and each length costs a look-up a word."""

_TOGETHER = 16
"""Sentences whose n-grams are looked up together: on a cluster in one request."""

LONGEST_SENTENCE = 2_000
"""Characters after which a sentence is cut at the next space."""

# Possessive quantifiers, and a look behind: else a run of a million full stops would be read again from each of them.
_SENTENCE_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s++(?=[^\W_a-z]|[\"'“‘(\[])|[。！？]|\n\s*\n",
)
_UNFINISHED = re.compile(r"(?:^|[\s.(])(?:\w|mr|mrs|ms|dr|st|jr|sr|vs|no|vol|gen|col|lt|prof|inc|ltd|co)\.$", re.I)
"""The words before a full stop that ends no sentence: initials and abbreviations, `J. K. Rowling`, `St. Louis`."""

_WORD = re.compile(r"\w+")
_INSIDE = re.compile(r"(?<=[\w,;:)'’”-] )(?!I\b)[^\W\d_](?=\w)")
"""The first letter of a word that no sentence begins with."""

_RARE_CAPITALS = 30
"""Words with one capital inside a sentence among them that are read as if they had none: the 30 sentences have one
among 3 words, and in a text in lower case a stray capital tells nothing of names."""

_HEADLINE = 4
"""Fewest words of a sentence that is taken for a headline if every word but the function words has a capital."""


class _Case(IntEnum):
    """The case of a mention's words, as far as it tells names from other words."""

    PROPER = 0
    """With a capital inside a sentence."""
    INITIAL = 1
    """With one only at the start of a sentence, or in capitals alone, as the name is not."""
    PHRASE = 2
    """Several content words as the name has them, or in a sentence whose capitals tell nothing."""
    UNCASED = 3
    """One content word in such a sentence."""
    SMALL = 4
    """One content word in small letters, as the name is, where others have capitals."""
    OTHER = 5
    """In small letters, or with fewer capitals than the name."""


# The next two: 2,500 validation questions of FBSQ as they are and with the subject's name as it is written, where a
# rare word in small letters is the subject in 73 of 100 cases, an ordinary one in 50, a common one in 17 and a very
# common one in 4, a word with a capital in 88 and more; INITIAL and OTHER by the 30 sentences.
_CASES = {
    _Case.PROPER: 1.5,
    _Case.INITIAL: -3.5,
    _Case.PHRASE: -1.0,
    _Case.UNCASED: -3.7,
    _Case.SMALL: -4.5,
    _Case.OTHER: -5.4,
}
"""Log-odds that words are meant as a name, by their case."""

_RARITIES = {UNKNOWN: 4.7, ORDINARY: 3.5, COMMON: 2.1, VERY_COMMON: 0.4, FUNCTION: 0.05}
"""What each word adds to that, by how common it is in English."""

LOOSER, FUZZY = -0.1, -1.0
"""What is added by each rung below an equal case, and by a slip."""


def split_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the sentences of a text start and end; one that does not end is cut at a space."""
    start = 0
    for end in _sentence_ends(text):
        while end - start > LONGEST_SENTENCE:
            cut = text.rfind(" ", start + 1, start + LONGEST_SENTENCE)
            cut = start + LONGEST_SENTENCE if cut < 0 else cut
            yield start, cut
            start = cut
        if start < end:
            yield start, end
        start = end


def _sentence_ends(text: str) -> Iterator[int]:
    for match in _SENTENCE_END.finditer(text):
        head = text[max(0, match.start() - 6) : match.start() + 1]
        if text[match.start()] != "." or not _UNFINISHED.search(head):
            yield match.end()
    yield len(text)


def _has_case(text: str) -> bool:
    """Return whether capitals distinguish the words of a text: some have one that no sentence begins with."""
    inside = sum(match[0].isupper() for match in _INSIDE.finditer(text))
    return inside * _RARE_CAPITALS > len(_WORD.findall(text)) and text != text.upper()


_Level = Callable[[str], int]
"""Returns how common a folded word is in the language of a text, UNKNOWN to FUNCTION."""


def _is_headline(sentence: Question, level: _Level) -> bool:
    """Return whether every content word of a sentence has a capital, ordinary words among them, or all letters have."""
    text = sentence.text
    content = [token for token in sentence.tokens if token.is_word and level(token.text) != FUNCTION]
    if len(content) < 2 or not all(text[token.start].isupper() for token in content if token.text.isalpha()):
        return False
    words = sum(token.is_word for token in sentence.tokens)
    return text == text.upper() or (
        words >= _HEADLINE and any(level(token.text) >= COMMON for token in content[text[0].isupper() :])
    )


class TextLinker:
    """A finder of the mentions of running text, by strict links, the case of words and how common these are."""

    def __init__(self, names: NameLookup) -> None:
        self.kb = names.kb
        self.names = names
        self.context: ContextRanker | None = None
        languages = question_languages(names.kb)
        self.function_words, self.hinting_words = function_words(languages), hinting_words(languages)
        self.level = self.level_in_languages if languages else commonness
        self.lengths = frozenset(length for length in names.kb.manifest.lengths if length <= _LONGEST_MENTION)

    def link(self, text: str, *, threshold: float, limit: int | None, context: bool = False) -> LinkedText:
        """Link a text; mentions that score below the threshold are left out."""
        require_text(text, "text")
        limit = read_limit(limit, "limit")
        if context and self.context is None:
            self.context = ContextRanker(self.names.reader)
        ranker = self.context if context else None
        threshold = read_share(threshold, "threshold", what="score")
        cased = _has_case(text)
        mentions: list[LinkedMention] = []
        spans = split_sentences(text)
        while batch := list(islice(spans, _TOGETHER)):
            check_time()
            sentences = [Question.read(text[start:end]) for start, end in batch]
            links = link_all_strictly(self.kb, sentences, [self.ngrams_of(sentence) for sentence in sentences])
            misspelt = link_slips(self.kb, sentences, links)
            for (offset, _), sentence, own in zip(batch, sentences, map(add, links, misspelt), strict=True):
                own_case = cased and not _is_headline(sentence, self.level)
                weighed = _weigh(sentence, own, self.level, cased=own_case, threshold=threshold)
                mentions += self.link_sentence(
                    sentence, offset, weighed, threshold=threshold, limit=limit, ranker=ranker
                )
        return LinkedText(text, tuple(mentions))

    def level_in_languages(self, word: str) -> int:
        """Return how common a word is in the languages of questions: as in English, where these have no table of it."""
        if word in self.function_words:
            return FUNCTION
        return VERY_COMMON if word in self.hinting_words else commonness(word)

    def ngrams_of(self, sentence: Question) -> list[Ngram]:
        """Return the n-grams of a sentence that may be names."""
        kb = self.kb
        every = every_ngram(sentence, lengths=self.lengths, table=kb.manifest.variants, likely=kb.likely_runs)
        return [*every, *respaced_ngrams(sentence, self.lengths)]

    def link_sentence(
        self,
        sentence: Question,
        offset: int,
        weighed: Sequence[tuple[float, list[Link]]],
        *,
        threshold: float,
        limit: int | None,
        ranker: ContextRanker | None,
    ) -> list[LinkedMention]:
        """Choose the mentions of a sentence, the most certain first, of equally certain ones the longest."""
        mentions: dict[int, LinkedMention] = {}
        covered: set[int] = set()
        for odds, links in weighed:
            characters = range(min(link.start for link in links), max(link.end for link in links))
            if not covered.isdisjoint(characters):
                continue
            covered.update(characters)  # an ambiguous name is left out, but none inside it takes its place
            bearers = rank_by_name(self.kb, links)
            bearers = ranker.rank(sentence, bearers) if ranker else bearers
            score = _sigmoid(odds) * float(bearers.prior.values[0])
            if score >= threshold:
                first = bearers.links[0]
                words = sentence.text[first.start : first.end]
                candidates = self.names.matches(words, bearers, limit=limit)
                mentions[first.start] = LinkedMention(
                    words, offset + first.start, offset + first.end, round(score, 6), candidates
                )
        return [mentions[start] for start in sorted(mentions)]


def _weigh(
    sentence: Question, links: Sequence[Link], level: _Level, *, cased: bool, threshold: float
) -> list[tuple[float, list[Link]]]:
    """Return the links of each n-gram that may be a name with its log-odds, the most certain first."""
    groups: dict[tuple[int, int], list[Link]] = {}
    for link in links:
        groups.setdefault((link.ngram.start, link.ngram.end), []).append(link)
    weighed = []
    for own in groups.values():
        if not _may_be_mention(sentence, own[0].ngram, level):
            continue
        odds = max(_log_odds(sentence, link, level, cased=cased) for link in own)
        if _sigmoid(odds) >= threshold:
            weighed.append((odds, own))
    return sorted(weighed, key=lambda pair: (-pair[0], pair[1][0].start - pair[1][0].end, pair[1][0].start))


def _sigmoid(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))


def _log_odds(sentence: Question, link: Link, level: _Level, *, cased: bool) -> float:
    """Return the log-odds that words are meant as a name: by their case, how common they are, and the rung."""
    tokens = sentence.tokens[link.ngram.first : link.ngram.last + 1]
    levels = [_level_of(token.text, level) for token in tokens if token.is_word] or [COMMON]
    odds = _CASES[_case_of(sentence, link, cased=cased, content=sum(own != FUNCTION for own in levels))]
    odds += sum(_RARITIES[own] for own in levels)
    return odds + (FUZZY if link.rung is Rung.FUZZY else LOOSER * max(0, link.rung - Rung.CASE))


def _level_of(word: str, level: _Level) -> int:
    """Return how common a word is; a number or a letter is as common as words are."""
    return COMMON if len(word) == 1 or word.isdigit() else level(word)


def _case_of(sentence: Question, link: Link, *, cased: bool, content: int) -> _Case:
    """Return how the words of a link are written; `content` counts its content words."""
    words, name = sentence.text[link.start : link.end], link.name
    small, capitals = words == words.lower(), words == words.upper()
    if small and capitals and not words.isdigit():  # no letter that has a case
        return _Case.PROPER
    if not cased:
        return _Case.PHRASE if content > 1 else _Case.UNCASED
    if small or (name == name.upper() and not capitals):
        return _Case.OTHER if name != name.lower() else _Case.PHRASE if content > 1 else _Case.SMALL
    if capitals and name != name.upper():
        return _Case.INITIAL
    if words[1:] != words[1:].lower() or any(token.is_word for token in sentence.tokens[: link.ngram.first]):
        return _Case.PROPER
    return _Case.INITIAL if name[1:] == name[1:].lower() else _Case.OTHER


def _may_be_mention(sentence: Question, ngram: Ngram, level: _Level) -> bool:
    """Leave out function words, which titles such as `It` would flood, but for titles and codes as they are written.

    `The Who` may be a name where every word is a capital, and `OR` where the sentence has small letters.
    """
    if has_content(ngram.form) and any(level(word) != FUNCTION for word in ngram.form.split(" ")):
        return True
    written = sentence.text[ngram.start : ngram.end]
    words = written.split()
    if len(words) > 1:
        return all(word[0].isupper() for word in words)
    return len(written) > 1 and written.isupper() and sentence.text != sentence.text.upper()
