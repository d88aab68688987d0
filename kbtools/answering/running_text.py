"""Linking running text: non-overlapping mentions of entities, sentence by sentence, in linear time."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from itertools import islice
from operator import add

from kbtools.answering.context import ContextRanker
from kbtools.answering.entity_reader import EntityReader
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

# F1 on 2,075 validation questions of FBSQ is highest here among 0.1 to 0.5: 67.7 % in lower case, 71.8 % with names as
# they are written. In 30 sentences about the sample, exactly the right mentions are found.
THRESHOLD = 0.3
"""Lowest score of a linked mention."""

CANDIDATES = 5
"""Default number of candidates of a mention."""

_LONGEST_MENTION = 12
"""Words of a mention in running text: longer names are whole sentences, and each length costs a look-up per word."""

_TOGETHER = 16
"""Sentences whose n-grams are looked up together, on a cluster in one request."""

LONGEST_SENTENCE = 2_000
"""Characters after which a sentence is cut at the next space."""

# Possessive quantifiers and a look-behind avoid quadratic time on a long run of full stops.
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s++(?=[^\W_a-z]|[\"'“‘(\[])|[。！？]|\n\s*\n")
_UNFINISHED = re.compile(r"(?:^|[\s.(])(?:\w|mr|mrs|ms|dr|st|jr|sr|vs|no|vol|gen|col|lt|prof|inc|ltd|co)\.$", re.I)
"""Words before a full stop that does not end a sentence: initials and abbreviations, `J. K. Rowling`, `St. Louis`."""

_WORD = re.compile(r"\w+")
_INSIDE = re.compile(r"(?<=[\w,;:)'’”-] )(?!I\b)[^\W\d_](?=\w)")
"""The first letter of a word that does not begin a sentence."""

_RARE_CAPITALS = 30
"""A text is read as lower case if fewer than one word in this many has a capital inside a sentence. The 30 sentences
have one in 3 words; in a lower-case text a stray capital says nothing about names."""

_HEADLINE = 4
"""Fewest words of a headline, a sentence in which every word but the function words has a capital."""


class _Case(IntEnum):
    """The case of a mention's words, as evidence that they are a name."""

    PROPER = 0
    """A capital inside a sentence."""
    INITIAL = 1
    """A capital only at the start of the sentence, or only capitals, unlike the name."""
    PHRASE = 2
    """Several content words in the case of the name, or in a sentence whose case says nothing."""
    UNCASED = 3
    """One content word in a sentence whose case says nothing."""
    SMALL = 4
    """One content word in lower case, like the name, in a sentence that uses capitals."""
    OTHER = 5
    """Lower case, or fewer capitals than the name."""


# Both tables are from 2,500 validation questions of FBSQ, as they are and with the subject's name as it is written: a
# lower-case word is the subject in 73 of 100 cases if rare, 50 if ordinary, 17 if common and 4 if very common; a word
# with a capital in at least 88. INITIAL and OTHER are from the 30 sentences.
_CASES = {
    _Case.PROPER: 1.5,
    _Case.INITIAL: -3.5,
    _Case.PHRASE: -1.0,
    _Case.UNCASED: -3.7,
    _Case.SMALL: -4.5,
    _Case.OTHER: -5.4,
}
"""Log-odds that words are a name, by their case."""

_RARITIES = {UNKNOWN: 4.7, ORDINARY: 3.5, COMMON: 2.1, VERY_COMMON: 0.4, FUNCTION: 0.05}
"""Log-odds that each word adds, by how common it is in English."""

LOOSER, FUZZY = -0.1, -1.0
"""Log-odds added for each rung below CASE, and for a misspelt name."""


def split_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence; a sentence that is too long is cut at a space."""
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
    """Return whether a text uses capitals inside its sentences, and not only capitals."""
    inside = sum(match[0].isupper() for match in _INSIDE.finditer(text))
    return inside * _RARE_CAPITALS > len(_WORD.findall(text)) and text != text.upper()


_Level = Callable[[str], int]
"""A function that returns how common a folded word is in the language of a text, UNKNOWN to FUNCTION."""


def _is_headline(sentence: Question, level: _Level) -> bool:
    """Return whether a sentence is a headline: all its content words have capitals, also common ones, or all
    letters."""
    text = sentence.text
    content = [token for token in sentence.tokens if token.is_word and level(token.text) != FUNCTION]
    if len(content) < 2 or not all(text[token.start].isupper() for token in content if token.text.isalpha()):
        return False
    words = sum(token.is_word for token in sentence.tokens)
    return text == text.upper() or (
        words >= _HEADLINE and any(level(token.text) >= COMMON for token in content[text[0].isupper() :])
    )


class TextLinker:
    """A finder of mentions in running text, by strict links, the case of words and how common they are."""

    def __init__(self, reader: EntityReader) -> None:
        self.kb = reader.kb
        self.reader = reader
        self.context: ContextRanker | None = None
        languages = question_languages(reader.kb)
        self.function_words, self.hinting_words = function_words(languages), hinting_words(languages)
        self.level = self.level_in_languages if languages else commonness
        self.lengths = frozenset(length for length in reader.kb.manifest.lengths if length <= _LONGEST_MENTION)

    def link(self, text: str, *, threshold: float, limit: int | None, context: bool = False) -> LinkedText:
        """Return the mentions of a text that score at least the threshold."""
        require_text(text, "text")
        limit = read_limit(limit, "limit")
        if context and self.context is None:
            self.context = ContextRanker(self.reader)
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
            for (offset, _), sentence, sentence_links in zip(batch, sentences, map(add, links, misspelt), strict=True):
                sentence_cased = cased and not _is_headline(sentence, self.level)
                weighed = _weigh(sentence, sentence_links, self.level, cased=sentence_cased, threshold=threshold)
                mentions += self.link_sentence(
                    sentence, offset, weighed, threshold=threshold, limit=limit, ranker=ranker
                )
        return LinkedText(text, tuple(mentions))

    def level_in_languages(self, word: str) -> int:
        """Return how common a word is in the languages of questions; content words as in English."""
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
        """Return the mentions of a sentence, chosen by certainty, then by length."""
        mentions: dict[int, LinkedMention] = {}
        covered: set[int] = set()
        for odds, links in weighed:
            characters = range(min(link.start for link in links), max(link.end for link in links))
            if not covered.isdisjoint(characters):
                continue
            covered.update(characters)  # a name inside never replaces an ambiguous one
            bearers = rank_by_name(self.kb, links)
            bearers = ranker.rank(sentence, bearers) if ranker else bearers
            score = _sigmoid(odds) * float(bearers.prior.values[0])
            if score >= threshold:
                first = bearers.links[0]
                words = sentence.text[first.start : first.end]
                candidates = self.reader.matches(words, bearers, limit=limit)
                mentions[first.start] = LinkedMention(
                    words, offset + first.start, offset + first.end, round(score, 6), candidates
                )
        return [mentions[start] for start in sorted(mentions)]


def _weigh(
    sentence: Question, links: Sequence[Link], level: _Level, *, cased: bool, threshold: float
) -> list[tuple[float, list[Link]]]:
    """Return the log-odds and links of each n-gram that may be a name, the most certain first."""
    groups: dict[tuple[int, int], list[Link]] = {}
    for link in links:
        groups.setdefault((link.ngram.start, link.ngram.end), []).append(link)
    weighed = []
    for group in groups.values():
        if not _may_be_mention(sentence, group[0].ngram, level):
            continue
        odds = max(_log_odds(sentence, link, level, cased=cased) for link in group)
        if _sigmoid(odds) >= threshold:
            weighed.append((odds, group))
    return sorted(weighed, key=lambda pair: (-pair[0], pair[1][0].start - pair[1][0].end, pair[1][0].start))


def _sigmoid(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))


def _log_odds(sentence: Question, link: Link, level: _Level, *, cased: bool) -> float:
    """Return the log-odds that words are a name, from their case, how common they are, and the rung."""
    tokens = sentence.tokens[link.ngram.first : link.ngram.last + 1]
    words = [token.text for token in tokens if token.is_word]
    # A number or a letter is as common as words are.
    levels = [COMMON if len(word) == 1 or word.isdigit() else level(word) for word in words] or [COMMON]
    odds = _CASES[_case_of(sentence, link, cased=cased, content=sum(word_level != FUNCTION for word_level in levels))]
    odds += sum(_RARITIES[word_level] for word_level in levels)
    return odds + (FUZZY if link.rung is Rung.FUZZY else LOOSER * max(0, link.rung - Rung.CASE))


def _case_of(sentence: Question, link: Link, *, cased: bool, content: int) -> _Case:
    """Return the case of a link's words; `content` is the number of content words."""
    words, name = sentence.text[link.start : link.end], link.name
    small, capitals = words == words.lower(), words == words.upper()
    if small and capitals and not words.isdigit():  # no letter with case
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
    """Return whether an n-gram may be a name: it has a content word, or is written like a title or a code.

    Function words match many titles, such as `It`. `The Who` passes because each word has a capital, and `OR` if the
    sentence has lower-case letters.
    """
    if has_content(ngram.form) and any(level(word) != FUNCTION for word in ngram.form.split(" ")):
        return True
    written = sentence.text[ngram.start : ngram.end]
    words = written.split()
    if len(words) > 1:
        return all(word[0].isupper() for word in words)
    return len(written) > 1 and written.isupper() and sentence.text != sentence.text.upper()
