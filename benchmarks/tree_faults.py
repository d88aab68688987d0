"""Small faults of a file's syntax tree: another comparison, a dropped argument, a deleted statement and so on."""

import ast
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

from mutations import ROOT

COMPARISONS = {"Lt": "LtE", "LtE": "Lt", "Gt": "GtE", "GtE": "Gt", "Eq": "NotEq", "NotEq": "Eq"}
COMPARISONS |= {"Is": "IsNot", "IsNot": "Is", "In": "NotIn", "NotIn": "In"}
OPERATORS = {"Add": "Sub", "Sub": "Add", "Mult": "Div", "Div": "Mult", "FloorDiv": "Div"}
OPERATORS |= {"BitOr": "BitAnd", "BitAnd": "BitOr", "LShift": "RShift", "RShift": "LShift"}
NEIGHBOURS = {"min": "max", "max": "min", "any": "all", "all": "any", "append": "extend", "rstrip": "lstrip"}
UNSEEN = {"annotation", "returns", "type_params", "exc", "msg"}
"""Fields of the tree without a fault: types, and the words of errors."""


class Fault(NamedTuple):
    """A replacement for a node of a file's tree; the tests that run one of the lines should detect it."""

    file: str
    place: int
    """The number of the node, in the order of `ast.walk`."""
    old: ast.AST
    new: ast.AST
    kind: str
    lines: range
    inside: bool
    """Whether it is in the body of a function."""

    @property
    def label(self) -> str:
        return f"{self.file}:{self.line} {self.change}"

    @property
    def change(self) -> str:
        """The fault without its place."""
        old, new = (" ".join(ast.unparse(node).split())[:150] for node in (self.old, self.new))
        return f"[{self.kind}] {old}  ->  {new}"

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


def find_again(labels: Iterable[str]) -> Iterator[Fault | None]:
    """Yield the fault of each label in the current code, the nearest one of several; None if it is gone."""
    faults: dict[str, dict[str, list[Fault]]] = {}
    for label in labels:
        place, _, change = label.partition(" ")
        file, _, line = place.partition(":")
        if file not in faults:
            faults[file] = defaultdict(list)
            for fault in find_faults(file) if (ROOT / file).exists() else ():
                faults[file][fault.change].append(fault)
        yield min(faults[file][change], key=lambda fault: abs(fault.line - int(line)), default=None)
