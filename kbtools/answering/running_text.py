"""Linking running text: non-overlapping mentions of entities, sentence by sentence, so that cost is linear."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from kbtools.answering.entity_reader import NameLookup
from kbtools.answering.limits import read_limit, read_share, require_text
from kbtools.answering.name_candidates import rank_by_name
from kbtools.answering.records import LinkedMention, LinkedText
from kbtools.linking.links import Link
from kbtools.linking.strict import link_all_strictly
from kbtools.pruning.n_gram import NGramIdf
from kbtools.text.function_words import has_content
from kbtools.text.ngrams import Ngram, ngrams
from kbtools.text.question import Question
from kbtools.text.readings import inner_ngrams
from kbtools.text.rungs import Rung

# The threshold and the likelihoods below: 30 sentences over the sample, 60 of their 61 mentions found and one besides.
# On 611 facts of FBSQ written out as sentences F1 is 89 %, and 20 % of the mentions found mean another entity; at 0.2
# F1 is 92 %, and 23 % do.
THRESHOLD = 0.25
"""Score from which a mention is linked."""

CANDIDATES = 5
"""Candidates of a mention that are given unless told otherwise."""

LONGEST_MENTION = 12
"""Words of a mention in running text: longer names are whole sentences, and each length costs a look-up a word."""

TOGETHER = 16
"""Sentences whose n-grams are looked up together: on a cluster in one request."""

LONGEST_SENTENCE = 2_000
"""Characters after which a sentence is cut at the next space."""

# Possessive quantifiers, and a look behind: else a run of a million full stops would be read again from each of them.
SENTENCE_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s++(?=[^\W_a-z]|[\"'“‘(\[])|[。！？]|\n\s*\n",
)
UNFINISHED = re.compile(r"(?:^|[\s.(])(?:\w|mr|mrs|ms|dr|st|jr|sr|vs|no|vol|gen|col|lt|prof|inc|ltd|co)\.$", re.I)
"""The words before a full stop that ends no sentence: initials and abbreviations, `J. K. Rowling`, `St. Louis`."""

HALF = 2.0
"""Rarity, a logarithm, at which words are as likely a name as not, all else agreeing."""

PROPER, UNCASED, INITIAL, PHRASE, WORD, OTHER_CASE = 1.0, 0.7, 0.6, 0.6, 0.3, 0.25
"""The likelihood of words as a name: with a capital inside a sentence, in a text without any capital, with one only
at the start of a sentence, several in lower case as the name is, a single one, and in another case than the name."""

RARE_CAPITALS = 30
"""Words that have one capital among them and are read as if they had none: the 30 sentences have one among 3 words, and
a text in lower case with a stray `I` is no text whose names have capitals."""

LOOSER = 0.05
"""The loss of that by each rung below an equal case."""


def split_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the sentences of a text start and end; one that does not end is cut at a space."""
    start = 0
    for end in sentence_ends(text):
        while end - start > LONGEST_SENTENCE:
            cut = text.rfind(" ", start + 1, start + LONGEST_SENTENCE)
            cut = start + LONGEST_SENTENCE if cut < 0 else cut
            yield start, cut
            start = cut
        if start < end:
            yield start, end
        start = end


def sentence_ends(text: str) -> Iterator[int]:
    for match in SENTENCE_END.finditer(text):
        head = text[max(0, match.start() - 6) : match.start() + 1]
        if text[match.start()] != "." or not UNFINISHED.search(head):
            yield match.end()
    yield len(text)


def has_case(text: str) -> bool:
    """Return whether capitals distinguish the words of a text: some words have one, and not all letters are."""
    words = re.findall(r"\w+", text)
    capitals = sum(word[0].isupper() for word in words)
    return capitals * RARE_CAPITALS > len(words) and text != text.upper()


class TextLinker:
    """A finder of the mentions of running text, by the n-grams, strict links and rarities of the pruners."""

    def __init__(self, names: NameLookup) -> None:
        self.kb = names.kb
        self.names = names
        self.rarity = NGramIdf(names.kb)
        self.lengths = [length for length in names.kb.manifest.lengths if length <= LONGEST_MENTION]

    def link(self, text: str, *, threshold: float, limit: int | None) -> LinkedText:
        """Link a text; mentions that score below the threshold are left out."""
        require_text(text, "text")
        limit = read_limit(limit, "limit")
        threshold = read_share(threshold, "threshold", what="score")
        cased = has_case(text)
        mentions: list[LinkedMention] = []
        spans = split_sentences(text)
        while batch := list(islice(spans, TOGETHER)):
            sentences = [Question.read(text[start:end]) for start, end in batch]
            links = link_all_strictly(self.kb, sentences, [self.ngrams_of(sentence) for sentence in sentences])
            self.rarity.learn({word for own in links for link in own for word in link.ngram.form.split(" ")})
            for (offset, _), sentence, own in zip(batch, sentences, links, strict=True):
                weighed = weigh(self.rarity, sentence, own, cased=cased, threshold=threshold)
                mentions += self.link_sentence(sentence, offset, weighed, threshold=threshold, limit=limit)
        return LinkedText(text, tuple(mentions))

    def ngrams_of(self, sentence: Question) -> list[Ngram]:
        """Return the n-grams of a sentence that may be names."""
        every = ngrams(sentence, lengths=self.lengths)
        if not sentence.text.isascii():
            every += inner_ngrams(sentence, frozenset(self.lengths))
        return [ngram for ngram in every if may_be_mention(sentence, ngram)]

    def link_sentence(
        self,
        sentence: Question,
        offset: int,
        weighed: Sequence[tuple[float, list[Link]]],
        *,
        threshold: float,
        limit: int | None,
    ) -> list[LinkedMention]:
        """Choose the mentions of a sentence, the most certain first, of equally certain ones the longest."""
        mentions: dict[int, LinkedMention] = {}
        covered: set[int] = set()
        for certainty, links in weighed:
            characters = range(min(link.start for link in links), max(link.end for link in links))
            if not covered.isdisjoint(characters):
                continue
            covered.update(characters)  # an ambiguous name is left out, but none inside it takes its place
            bearers = rank_by_name(self.kb, links)
            score = certainty * float(bearers.prior.values[0])
            if score >= threshold:
                first = bearers.links[0]
                words = sentence.text[first.start : first.end]
                candidates = self.names.matches(words, bearers, limit=limit)
                mentions[first.start] = LinkedMention(
                    words, offset + first.start, offset + first.end, round(score, 6), candidates
                )
        return [mentions[start] for start in sorted(mentions)]


def weigh(
    rarity: NGramIdf, question: Question, links: Sequence[Link], *, cased: bool, threshold: float
) -> list[tuple[float, list[Link]]]:
    """Return the links of each n-gram that may be a name with its certainty, the most certain first."""
    groups: dict[tuple[int, int], list[Link]] = {}
    for link in links:
        groups.setdefault((link.ngram.start, link.ngram.end), []).append(link)
    weighed = []
    for own in groups.values():
        rare = rarity.weigh(own[0].ngram.form)
        strictest = min(own, key=lambda link: link.rung)
        certainty = rare / (rare + HALF) * spelling_likelihood(question, strictest, cased=cased)
        if certainty >= threshold:
            weighed.append((certainty, own))
    return sorted(weighed, key=lambda pair: (-pair[0], pair[1][0].start - pair[1][0].end, pair[1][0].start))


def spelling_likelihood(question: Question, link: Link, *, cased: bool) -> float:
    """Return how likely words are meant as a name, 0 to 1, from their case and how far they are from the name."""
    words = question.text[link.start : link.end]
    looser = 1.0 - LOOSER * max(0, link.rung - Rung.CASE)
    capitals = words != words.lower()
    if not cased:
        return UNCASED * looser
    if link.rung is Rung.CASE or (not capitals and link.name != link.name.lower()):
        return OTHER_CASE * looser
    if capitals:
        after = any(token.is_word for token in question.tokens[: link.ngram.first])
        inside = after or words[1:] != words[1:].lower()
        return (PROPER if inside else INITIAL) * looser
    if words == words.upper():  # no letter that has a case
        return (WORD if words.isdigit() else PROPER) * looser
    return (PHRASE if " " in words else WORD) * looser


def may_be_mention(question: Question, ngram: Ngram) -> bool:
    """Leave out function words: titles such as `It` would flood; `The Who` may be one where every word is a capital."""
    if has_content(ngram.form):
        return True
    words = question.text[ngram.start : ngram.end].split()
    return len(words) > 1 and all(word[0].isupper() for word in words)
