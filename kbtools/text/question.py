"""A question as given, its tokens, and which of its words name the subject."""

from dataclasses import dataclass

from kbtools.text.tokens import Token, tokenise

MOST_TOKENS = 500
"""Words and marks of a question that are read. What is asked grows with their square, since each mention is scored
beside all other words: 500 of them take 0.1 s, 2,400 took 2 s; the longest question of SimpleQuestions has 36 words."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question as given, and its tokens: the first `MOST_TOKENS` of a longer one."""

    text: str
    tokens: tuple[Token, ...]

    @classmethod
    def read(cls, text: str) -> "Question":
        return cls(text, tuple(tokenise(text)[:MOST_TOKENS]))

    @property
    def unread(self) -> int:
        """Count the characters behind the last token that is read, spaces at the end left out."""
        return len(self.text[self.tokens[-1].end :].strip()) if len(self.tokens) == MOST_TOKENS else 0


@dataclass(frozen=True, slots=True)
class MarkedQuestion:
    """A question and the characters of it that name the subject; the rest speaks of the relation."""

    question: Question
    start: int
    end: int

    def words(self, *, symbol: str | None = None) -> list[str]:
        """List the words of the question, with one symbol in the mention's place if one is given."""
        words = []
        for token in self.question.tokens:
            if token.is_word:
                mentioned = symbol is not None and self.start <= token.start and token.end <= self.end
                words.append(str(symbol) if mentioned else token.text)
        return [word for at, word in enumerate(words) if word != symbol or words[at - 1 : at] != [word]]

    def context(self) -> list[str]:
        """List the words outside the mention."""
        return [word for word in self.words(symbol="") if word]
