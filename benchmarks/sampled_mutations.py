"""Random small faults in a room, and how many of them are detected by the tests that run the faulty line.

python -m pytest tests/kbtools/text --cov --cov-context=test      # which test runs which line, kept in .coverage
python benchmarks/sampled_mutations.py ROOM [--count 60] [--seed 26] [--only 3,7]

A fault is one change of a syntax tree: another comparison, a dropped argument, a deleted statement and so on. Its kind
is drawn first, then its place, with at most one fault per line. Tests are collected once; each fault is then inserted
into the functions and values of a forked process, in which the tests that run its line continue until one fails,
starting with those that run the least code. Survivors are printed: some do not change behaviour, which only a reader
can decide.
"""

import argparse
import ast
import gc
import os
import random
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from copy import deepcopy
from importlib.machinery import SourceFileLoader
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest
from coverage import CoverageData
from mutations import ROOT, copy_checkout, enter_copy, preload

ROOMS = {
    **{room: [f"kbtools/{room}/*.py"] for room in "text linking pruning ranking answering comparison kb".split()},
    "pure": ["kbtools/*.py"],
    "scorers": ["scorers/**/*.py"],
    "serve": ["serve/*.py"],
    "cli": ["cli/*.py"],
    **{room: [f"indexers/{room}/*.py"] for room in ("readers", "updates", "elastic")},
    "folder": ["indexers/folder/*.py", "indexers/building/*.py"],
}
SECONDS = 20
"""CPU seconds of the tests of a fault: the loop that a fault makes may have no end."""

COMPARISONS = {"Lt": "LtE", "LtE": "Lt", "Gt": "GtE", "GtE": "Gt", "Eq": "NotEq", "NotEq": "Eq"}
COMPARISONS |= {"Is": "IsNot", "IsNot": "Is", "In": "NotIn", "NotIn": "In"}
OPERATORS = {"Add": "Sub", "Sub": "Add", "Mult": "Div", "Div": "Mult", "FloorDiv": "Div"}
OPERATORS |= {"BitOr": "BitAnd", "BitAnd": "BitOr", "LShift": "RShift", "RShift": "LShift"}
NEIGHBOURS = {"min": "max", "max": "min", "any": "all", "all": "any", "append": "extend", "rstrip": "lstrip"}
UNSEEN = {"annotation", "returns", "type_params", "exc", "msg"}
"""Fields of the tree without a fault: types, and the words of errors."""


class Fault(NamedTuple):
    """What is put in place of a node of a file's tree; the tests that run one of the lines are to see it."""

    file: str
    place: int
    """The number of the node, in the order of `ast.walk`."""
    old: ast.AST
    new: ast.AST
    kind: str
    lines: range
    inside: bool
    """Whether it stands in the body of a function."""

    @property
    def label(self) -> str:
        old, new = (" ".join(ast.unparse(node).split())[:150] for node in (self.old, self.new))
        return f"{self.file}:{self.line} [{self.kind}] {old}  ->  {new}"

    @property
    def line(self) -> int:
        return min((n.lineno for n in ast.walk(self.old) if hasattr(n, "lineno")), default=self.lines.start)

    def tree(self) -> ast.Module:
        """Return the tree of the file with the fault in it."""
        tree = ast.parse((ROOT / self.file).read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        for parent in nodes:
            for field, value in ast.iter_fields(parent):
                if value is nodes[self.place]:
                    setattr(parent, field, self.new)
                elif isinstance(value, list):
                    value[:] = [self.new if child is nodes[self.place] else child for child in value]
        return ast.fix_missing_locations(tree)


def changed(node: ast.AST, **fields: Any) -> ast.AST:
    new = deepcopy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def without(values: list[Any], place: int) -> list[Any]:
    return [value for number, value in enumerate(values) if number != place]


def changes(node: ast.AST, names: list[str]) -> Iterator[tuple[str, ast.AST]]:
    """Yield the faults of a node, each with its kind; `names` are the variables of its function."""
    match node:
        case ast.Compare(ops=[op]):
            yield "comparison", changed(node, ops=[getattr(ast, COMPARISONS[type(op).__name__])()])
        case ast.BoolOp(op=op, values=values):
            yield "and, or", changed(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
            for place in range(len(values)):
                rest = without(values, place)
                yield "dropped condition", changed(node, values=rest) if len(rest) > 1 else rest[0]
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield "removed not", operand
        case ast.BinOp(left=left, op=op) | ast.AugAssign(target=left, op=op) if type(op).__name__ in OPERATORS:
            yield "operator", changed(node, op=getattr(ast, OPERATORS[type(op).__name__])())
            if isinstance(node, ast.BinOp):
                yield "dropped operand", left
        case ast.Constant(value=bool() as value):
            yield "constant", changed(node, value=not value)
        case ast.Constant(value=int() as value):
            yield "off by one", changed(node, value=value + 1)
            yield "off by one", changed(node, value=value - 1)
        case ast.Constant(value=float() as value):
            yield "constant", changed(node, value=value * 2 or 1.0)
        case ast.Constant(value=str() as value) if value and " " not in value:
            yield "text", changed(node, value=value[:-1])
        case ast.Call(func=func, args=args, keywords=keywords):
            for place in range(len(keywords)):
                yield "dropped keyword", changed(node, keywords=without(keywords, place))
            if len(args) > 1:
                yield "dropped argument", changed(node, args=args[:-1])
                yield "swapped arguments", changed(node, args=[args[1], args[0], *args[2:]])
            if len(args) == 1 and not keywords and not isinstance(args[0], ast.Starred):
                yield "dropped call", args[0]
            if isinstance(func, ast.Attribute) and not args and not keywords:
                yield "dropped call", func.value
            for place, arg in enumerate(args):
                if isinstance(arg, ast.Name):
                    for name in neighbour(arg.id, names):
                        new = [*args[:place], ast.Name(name, ast.Load()), *args[place + 1 :]]
                        yield "neighbour", changed(node, args=new)
        case ast.Name(id=name, ctx=ast.Load()) if name in NEIGHBOURS:
            yield "min, max", changed(node, id=NEIGHBOURS[name])
        case ast.Attribute(attr=name) if name in NEIGHBOURS:
            yield "min, max", changed(node, attr=NEIGHBOURS[name])
        case ast.Return(value=ast.Name(id=own)):
            for name in neighbour(own, names):
                yield "neighbour", changed(node, value=ast.Name(name, ast.Load()))
        case ast.Slice(lower=lower, upper=upper):
            if lower:
                yield "slice", changed(node, lower=None)
            if upper:
                yield "slice", changed(node, upper=None)
        case ast.IfExp(body=body, orelse=orelse):
            yield "branch", body
            yield "branch", orelse
        case ast.comprehension(ifs=[_, *_]):
            yield "dropped condition", changed(node, ifs=[])
        case ast.If(orelse=[]) | ast.Raise() | ast.AugAssign() | ast.Expr(value=ast.Call()) | ast.Delete():
            if "logger." not in ast.unparse(node):
                yield "deleted statement", ast.Pass()
        case ast.If():
            yield "branch", changed(node, test=ast.Constant(True))
            yield "branch", changed(node, test=ast.Constant(False))
        case ast.Break():
            yield "break, continue", ast.Continue()
        case ast.Continue():
            yield "break, continue", ast.Break()


def neighbour(own: str, names: list[str]) -> list[str]:
    """Return the variable before another in its function, if there is one."""
    return [names[names.index(own) - 1]] if own in names and len(names) > 1 else []


def find_faults(file: str) -> Iterator[Fault]:
    """Yield every fault of a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    places = {id(node): place for place, node in enumerate(ast.walk(tree))}

    def walk(node: ast.AST, names: list[str], lines: range, inside: bool) -> Iterator[Fault]:
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = [arg.arg for arg in (*node.args.args, *node.args.kwonlyargs) if arg.arg not in ("self", "cls")]
            stored = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
            names, lines = list(dict.fromkeys(own + stored)), range(node.body[0].lineno, (node.end_lineno or 0) + 1)
        elif inside and isinstance(node, ast.stmt):
            block = getattr(node, "body", None)
            lines = range(node.lineno, max(block[0].lineno if block else (node.end_lineno or 0) + 1, node.lineno + 1))
        for kind, new in changes(node, names):
            if ast.dump(node) != ast.dump(new):
                yield Fault(file, places[id(node)], node, new, kind, lines, inside)
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                words = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
                if isinstance(child, ast.AST) and not words and field not in UNSEEN:
                    yield from walk(child, names, lines, inside or (function and field == "body"))

    yield from walk(tree, [], range(1, 10_000), False)


def draw(files: list[str], *, count: int, seed: int) -> list[Fault]:
    """Draw faults: a kind by chance, then one of its places, each line once."""
    kinds: dict[str, list[Fault]] = defaultdict(list)
    for file in files:
        for fault in find_faults(file):
            kinds[fault.kind].append(fault)
    chance = random.Random(seed)
    drawn: dict[tuple[str, int], Fault] = {}
    while kinds and len(drawn) < count:
        kind = chance.choice(sorted(kinds))
        fault = kinds[kind].pop(chance.randrange(len(kinds[kind])))
        drawn.setdefault((fault.file, fault.line), fault)
        if not kinds[kind]:
            del kinds[kind]
    return sorted(drawn.values(), key=lambda fault: (fault.file, fault.line))


def read_coverage(path: str) -> dict[str, dict[int, set[str]]]:
    """Return the tests that run each line of each file."""
    data = CoverageData(path)
    data.read()
    return {
        file: {
            line: {name.partition("|")[0] for name in names if name}
            for line, names in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }


def tests_of(fault: Fault, coverage: dict[str, dict[int, set[str]]], size: Counter[str], *, most: int) -> list[str]:
    """Return the tests that run a line of a fault, those that run least code first."""
    lines = next((lines for file, lines in coverage.items() if file.endswith(f"/{fault.file}")), {})
    tests = {name for line, names in lines.items() if line in fault.lines for name in names}
    return sorted(tests, key=lambda test: (size[test], test))[:most]


def put_in(fault: Fault, folder: Path) -> None:
    """Put a fault into the functions and values of this process, and into the module if it is imported later."""
    path = os.path.realpath(folder / fault.file)
    read: Callable[..., Any] = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        own = os.path.realpath(loader.path) == path
        return compile(fault.tree(), loader.path, "exec") if own else read(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
    modules = [module for module in sys.modules.values() if type(module) is ModuleType]
    for module in modules:
        if os.path.realpath(vars(module).get("__file__") or "/") == path:
            replace_in_functions(fault, module)
            if not fault.inside:
                replace_values(fault, module, modules)


def replace_in_functions(fault: Fault, module: ModuleType) -> None:
    codes: dict[tuple[str, int], CodeType] = {}
    waiting = [compile(fault.tree(), str(module.__file__), "exec")]
    while waiting:
        inner = [const for const in waiting.pop().co_consts if isinstance(const, CodeType)]
        codes |= {(code.co_qualname, code.co_firstlineno): code for code in inner}
        waiting += inner
    for function in [f for f in gc.get_objects() if type(f) is FunctionType]:
        code = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
        if code and function.__code__.co_filename == module.__file__:
            if len(code.co_freevars) != len(function.__code__.co_freevars):
                raise TypeError("other variables of the function around")
            function.__code__ = code


def replace_values(fault: Fault, module: ModuleType, modules: list[ModuleType]) -> None:
    """Run a module's code anew and put what it makes in place of the values that any module has of it."""
    fresh = {name: value for name, value in vars(module).items() if name.startswith("__")}
    exec(compile(fault.tree(), str(module.__file__), "exec"), fresh)
    body = [
        node
        for node in fault.tree().body
        if min(n.lineno for n in ast.walk(node) if hasattr(n, "lineno")) <= fault.line
    ]
    for name, old in list(vars(module).items()):
        new, own = fresh.get(name, old), isinstance(old, type) and name == getattr(body[-1], "name", "")
        if own and old.__subclasses__():
            raise TypeError("a class with others below it")
        if isinstance(old, FunctionType):
            old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
        elif not name.startswith("__") and (own or not isinstance(old, type | ModuleType)):
            for other in modules:
                if vars(other).get(name) is old:
                    setattr(other, name, new)


class Trial:
    """A run of pytest that tries faults, each in a process of its own; `verdicts` is the file that they go to."""

    def __init__(self, faults: dict[int, tuple[Fault, list[str]]], folder: Path, verdicts: Path) -> None:
        self.faults, self.folder, self.verdicts = faults, folder, verdicts

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        tests = {item.nodeid: item for item in session.items}
        for number, (fault, names) in self.faults.items():
            if not self.in_a_process(number, session, [tests[name] for name in names if name in tests], fault):
                self.write(number, "no end")
        killers = {line.split("\t")[1] for line in self.verdicts.read_text().splitlines()} & tests.keys()
        self.in_a_process(0, session, [tests[name] for name in sorted(killers)], None)
        return True

    def write(self, number: int, verdict: str) -> None:
        with self.verdicts.open("a") as file:
            file.write(f"{number}\t{verdict}\n")

    def in_a_process(self, number: int, session: pytest.Session, items: list[pytest.Item], fault: Fault | None) -> bool:
        """Run tests, with a fault until one fails; write which failed, and return whether the process ended itself."""
        pid = os.fork()
        if pid:
            return not os.waitpid(pid, 0)[1]
        try:
            if fault:
                signal.alarm(600)
                resource.setrlimit(resource.RLIMIT_CPU, (2 * SECONDS, 2 * SECONDS))
                put_in(fault, self.folder)
            for item, following in zip(items, [*items[1:], None], strict=True):
                failed = session.testsfailed
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed > failed:
                    self.write(number, item.nodeid)
                    if fault:
                        os._exit(0)
                if fault and time.process_time() > SECONDS:
                    break
            self.write(number, "survived")
        except Exception as error:
            self.write(number, f"not put in: {error!r}")
        finally:
            os._exit(0)


def try_faults(faults: dict[int, tuple[Fault, list[str]]], folder: Path) -> dict[int, str]:
    """Return the verdict of each fault; raise SystemExit where a test that saw one fails without it too."""
    written = folder / "verdicts.tsv"
    written.write_text("")
    files = sorted({name.partition("::")[0] for _, names in faults.values() for name in names})
    pid = os.fork()
    if not pid:
        enter_copy(folder)
        pytest.main(["-q", "-p", "no:cacheprovider", *files], plugins=[Trial(faults, folder, written)])
        os._exit(0)
    os.waitpid(pid, 0)
    rows = [line.split("\t") for line in written.read_text().splitlines()]
    if unsound := [verdict for number, verdict in rows if number == "0" and verdict != "survived"]:
        sys.exit(f"fail without any fault: {', '.join(unsound)}")
    return {int(number): verdict for number, verdict in rows if number != "0"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room", choices=ROOMS)
    parser.add_argument("--count", type=int, default=60, help="faults to draw")
    parser.add_argument("--seed", type=int, default=26)
    parser.add_argument("--only", help="numbers of the faults that are tried, with commas between")
    parser.add_argument("--coverage", default=".coverage", help="the file that says which test runs which line")
    parser.add_argument("--tests", type=int, default=100, help="tests of a fault at most")
    arguments = parser.parse_args()
    coverage = read_coverage(arguments.coverage)
    size = Counter(name for lines in coverage.values() for names in lines.values() for name in names)
    sys.dont_write_bytecode = True
    preload()
    files = sorted(str(path.relative_to(ROOT)) for pattern in ROOMS[arguments.room] for path in ROOT.glob(pattern))
    drawn = dict(enumerate(draw(files, count=arguments.count, seed=arguments.seed), 1))
    chosen = map(int, arguments.only.split(",")) if arguments.only else drawn
    faults = {n: (drawn[n], tests_of(drawn[n], coverage, size, most=arguments.tests)) for n in chosen}
    with TemporaryDirectory() as name:
        copy_checkout(Path(name))
        verdicts = try_faults(faults, Path(name))
    for number, (fault, names) in faults.items():
        verdict = verdicts.get(number, "lost")
        print(f"{number:>4} {verdict} ({len(names)} tests)  {fault.label}")
    seen = sum("::" in verdict or verdict == "no end" for verdict in verdicts.values())
    tried = seen + sum(verdict == "survived" for verdict in verdicts.values())
    print(f"{arguments.room}: killed {seen} of {tried} that could be put in, of {len(faults)} drawn")


if __name__ == "__main__":
    main()
