"""The rooms of the house: every file has a unique name, imports have no cycle, and arrows point one way.

`python tests/test_rooms.py` prints the tree: lines, comments, and which room imports which.
"""

import ast
import functools
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from configparser import ConfigParser
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SETUP = ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")
FOLDERS = dict(line.split(" = ") for line in SETUP["options"]["package_dir"].split("\n") if line)

FILES = {
    ".".join([package, *path.relative_to(ROOT / folder).with_suffix("").parts]).removesuffix(".__init__"): path
    for package, folder in FOLDERS.items()
    for path in sorted((ROOT / folder).rglob("*.py"))
}

LEVELS = (
    {"ground", "examples"},
    {"text"},
    {"kb"},
    {"linking"},
    {"pruning"},
    {"ranking"},
    {"answering"},
    {
        "comparison",
        "indexers",
        "indexers.readers",
        "indexers.folder",
        "indexers.building",
        "indexers.elastic",
        "indexers.updates",
        "scorers",
        "scorers.networks",
        "scorers.fitting",
    },
    {
        "kbtools",
        "suites",
        "scorers.encoders",
        "scorers.rankers",
        "scorers.relations",
        "scorers.subjects",
        "scorers.taggers",
    },
    {"serve"},
    {"cli"},
)
"""Rooms from the ground up; each imports only from its own level and those below."""

GROUND = {
    "entry_points",
    "deadline",
    "errors",
    "free_memory",
    "processes",
    "quick_records",
    "read_ahead",
    "record_files",
    "storage",
    "tree_ensemble",
    "user_cache",
    "version",
}
"""The modules of kbtools' own folder that every room may import; the others there form the room `kbtools`."""

QUESTION_WORDS = {"How", "What", "When", "Where", "Whether", "Which", "Who", "Why"}

CALLED_BY_NAME = {"logger", "command", "Struct"}
"""Names that need no underscore: by convention, commands of click, and structs named in the API's schema."""

SHORT = 40
"""Least lines of a module with one importer; a shorter one should be part of the other."""


def test_every_file_has_a_name_of_its_own() -> None:
    names = Counter(path.name for path in FILES.values() if path.name != "__init__.py")

    assert [name for name, count in names.items() if count > 1] == []


def test_imports_go_in_no_circle() -> None:
    assert find_circle() == []


def test_arrows_point_down() -> None:
    against = [
        f"{module} imports {name}"
        for module in FILES
        for name in sorted(imports(module))
        if level(room(name)) > level(room(module))
    ]

    assert against == []


def test_readers_know_neither_the_build_nor_a_cluster() -> None:
    assert {room(name) for name in imports_of_room("indexers.readers")} & {"indexers", "indexers.elastic"} == set()


def test_docstrings_of_modules_and_classes_are_no_questions() -> None:
    asking = [
        f"{module}: {docstring}"
        for module, path in FILES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef) and (docstring := ast.get_docstring(node))
        if docstring.split()[0] in QUESTION_WORDS
    ]

    assert asking == []


def test_names_that_only_their_module_uses_begin_with_an_underscore() -> None:
    words: dict[str, set[str]] = {module: set() for module in FILES}
    own = [path for path in ROOT.iterdir() if path.is_dir() and path.name not in {".venv", "build"}]
    for path in [*(path for folder in own for path in folder.rglob("*.py")), ROOT / "setup.cfg"]:
        text = path.read_text(encoding="utf-8")
        of_text = set(re.findall(r"\w+", text))
        for module in named_modules(text):
            if FILES[module] != path:
                words[module] |= of_text

    assert [
        f"{module}.{name}"
        for module, path in FILES.items()
        for name in sorted(top_names(ast.parse(path.read_text(encoding="utf-8"))))
        if not name.startswith("_") and name not in words[module]
    ] == []


def room(module: str) -> str:
    """Return the room of a module: its package without `kbtools`, or the ground."""
    package = module if FILES[module].name == "__init__.py" else module.rpartition(".")[0]
    if package == "kbtools" and module.removeprefix("kbtools.") in GROUND:
        return "ground"
    return package.removeprefix("kbtools.")


def level(room: str) -> int:
    return next(number for number, rooms in enumerate(LEVELS) if room in rooms)


@functools.cache
def imports(module: str) -> set[str]:
    """Return the modules of kbtools that a module imports, at any depth, including those for types only."""
    return set(imported_modules(module)) - {module}


def imported_modules(module: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in FILES)
        elif isinstance(node, ast.ImportFrom) and node.module in FILES:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in FILES else node.module


def imports_of_room(name: str) -> set[str]:
    return {target for module in FILES if room(module) == name for target in imports(module)}


def named_modules(text: str) -> set[str]:
    """Return the modules that a text names in full, with an attribute, or as imported from their package."""
    names = set()
    for match in re.finditer(r"(kbtools[\w.]*)(?: import (\([^)]*|.*))?", text):
        names |= {match[1], match[1].rpartition(".")[0]}
        names |= {f"{match[1]}.{name}" for name in re.findall(r"\w+", match[2] or "")}
    return names & FILES.keys()


def top_names(tree: ast.Module) -> set[str]:
    """Return the functions, classes and constants of a module that nothing refers to by name in a text."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            parts = [*node.decorator_list, *(node.bases if isinstance(node, ast.ClassDef) else [])]
            if not any(word in CALLED_BY_NAME for part in parts for word in re.findall(r"\w+", ast.unparse(part))):
                names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names - CALLED_BY_NAME


def find_circle() -> list[str]:
    """Return the modules of an import cycle; empty if there is none."""
    try:
        TopologicalSorter({module: imports(module) for module in FILES}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def measure(path: Path) -> tuple[int, int, int]:
    """Count the lines of a file, its comments, and its docstrings of constants, which explain their values."""
    text = path.read_text(encoding="utf-8")
    with path.open("rb") as file:
        comments = sum(token.type == tokenize.COMMENT for token in tokenize.tokenize(file.readline))
    bodies = [node.body for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Module | ast.ClassDef)]
    notes = [node for body in bodies for node in body[1:] if is_text(node)]
    return len(text.splitlines()), comments, len(notes)


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def describe() -> Iterator[str]:
    """Yield lines about the tree: its size, violations of rules, and the rooms with their arrows."""
    counts = {module: measure(path) for module, path in FILES.items()}
    lines, comments, notes = (sum(column) for column in zip(*counts.values(), strict=True))
    short = [module for module, (size, *_) in counts.items() if size < SHORT and FILES[module].name != "__init__.py"]
    names = Counter(path.name for path in FILES.values() if path.name != "__init__.py")
    share = 100 * (comments + notes) / lines
    yield f"modules {len(FILES)}, lines {lines:,}, comments {comments} and notes under constants {notes}: {share:.1f} %"
    yield f"modules under {SHORT} lines {len(short)}: {', '.join(short)}"
    yield f"names that occur twice: {[name for name, count in names.items() if count > 1]}, circle: {find_circle()}"
    arrows = 0
    for rooms in LEVELS:
        for name in sorted(rooms):
            modules = [module for module in FILES if room(module) == name]
            targets = sorted({room(target) for target in imports_of_room(name)} - {name})
            arrows += len(targets)
            size = sum(counts[module][0] for module in modules)
            if modules:
                yield f"{name} ({len(modules)} modules, {size:,} lines) -> {', '.join(targets) or 'nothing'}"
    yield f"arrows between rooms {arrows}, between modules {sum(len(imports(module)) for module in FILES)}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in describe())
