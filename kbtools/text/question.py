"""A question as given, its tokens, and which of its words name the subject."""

from dataclasses import dataclass

from kbtools.text.tokens import Token, tokenise


@dataclass(frozen=True, slots=True)
class Question:
    """A question as given, and its tokens."""

    text: str
    tokens: tuple[Token, ...]

    @classmethod
    def read(cls, text: str) -> "Question":
        return cls(text, tuple(tokenise(text)))


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
