"""Random small faults in a room, and how many of them are detected by the tests that run the faulty line.

python -m pytest tests/kbtools/text --cov --cov-context=test      # which test runs which line, kept in .coverage
python benchmarks/sampled_mutations.py ROOM [--count 60] [--seed 26] [--only 3,7]
python benchmarks/sampled_mutations.py ROOM --again OUTPUT       # the faults of an earlier output, with today's tests

The kind of a fault is drawn first, then its place, with at most one fault per line. Tests are collected once; each
fault is then inserted into the functions and values of a forked process, in which the tests that run its line continue
until one fails, starting with those that run the least code. A survivor in code that runs at import is tried again in
a process that collects tests with the fault. Survivors are printed: some do not change behaviour, which only a reader
can decide. `sampled_mutations.tsv` lists those, each with the reason.
"""

import argparse
import ast
import gc
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest
from coverage import CoverageData
from figures import read_records, show_table
from mutations import ROOT, copy_checkout, enter_copy, preload, tests_pass
from tree_faults import Fault, draw, find_again

ROOMS = {
    **{room: [f"kbtools/{room}/*.py"] for room in "text linking pruning ranking answering comparison kb".split()},
    "pure": ["kbtools/*.py"],
    "scorers": ["scorers/**/*.py"],
    "serve": ["serve/*.py"],
    "cli": ["cli/*.py"],
    **{room: [f"indexers/{room}/*.py"] for room in ("readers", "updates", "elastic")},
    "folder": ["indexers/folder/*.py", "indexers/building/*.py"],
}
COLUMNS = ("room", "tried", "change no behaviour", "of the others seen before", "seen now")

JUDGEMENTS = Path(__file__).with_suffix(".tsv")
"""The faults that change no behaviour, one per line: file, change and the reason, separated by tabs."""

SURVIVED, NOT_PUT_IN, LOST = "survived", "not put in", "lost"

SECONDS = 20
"""CPU seconds of the tests of a fault, which may cause an endless loop."""


def read_coverage(path: str) -> dict[str, dict[int, set[str]]]:
    """Return the tests that run each line of each file; an empty name stands for the import."""
    data = CoverageData(path)
    data.read()
    return {
        file: {
            line: {name.partition("|")[0] for name in names} for line, names in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }


def contexts_of(fault: Fault, coverage: dict[str, dict[int, set[str]]]) -> set[str]:
    """Return the tests that run a line of a fault, and an empty name if the import does."""
    lines = next((lines for file, lines in coverage.items() if file.endswith(f"/{fault.file}")), {})
    return {name for line, names in lines.items() if line in fault.lines for name in names}


def tests_of(fault: Fault, coverage: dict[str, dict[int, set[str]]], size: Counter[str], *, most: int) -> list[str]:
    """Return the tests that run a line of a fault, those that run least code first."""
    tests = contexts_of(fault, coverage) - {""}
    return sorted(tests, key=lambda test: (size[test], test))[:most]


def runs_at_import(fault: Fault, coverage: dict[str, dict[int, set[str]]]) -> bool:
    """Return whether a fault is in code that runs before any test, such as the declaration of an option."""
    return not fault.inside or "" in contexts_of(fault, coverage)


def import_with(fault: Fault, folder: Path) -> None:
    """Put a fault into the module when it is imported."""
    path = os.path.realpath(folder / fault.file)
    read: Callable[..., Any] = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        own = os.path.realpath(loader.path) == path
        return compile(fault.tree(), loader.path, "exec") if own else read(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]


def put_in(fault: Fault, folder: Path) -> None:
    """Put a fault into the functions and values of this process, and into the module if it is imported later."""
    import_with(fault, folder)
    path = os.path.realpath(folder / fault.file)
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
    gc.unfreeze()  # get_objects leaves out what the tests freeze
    for function in [f for f in gc.get_objects() if type(f) is FunctionType]:
        code = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
        if code and function.__code__.co_filename == module.__file__:
            if len(code.co_freevars) != len(function.__code__.co_freevars):
                raise TypeError("other variables of the function around")
            function.__code__ = code


def replace_values(fault: Fault, module: ModuleType, modules: list[ModuleType]) -> None:
    """Run a module's code again, and replace its values in every module that has them."""
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
        """Run tests, with a fault until one fails; write its name, and return whether the process ended normally."""
        pid = os.fork()
        if pid:
            return not os.waitpid(pid, 0)[1]
        try:
            if fault:
                signal.alarm(600)
                resource.setrlimit(resource.RLIMIT_CPU, (2 * SECONDS, 2 * SECONDS))
                put_in(fault, self.folder)
            for item, following in zip_longest(items, items[1:]):
                failed = session.testsfailed
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed > failed:
                    self.write(number, item.nodeid)
                    if fault:
                        os._exit(0)
                if fault and time.process_time() > SECONDS:
                    break
            self.write(number, SURVIVED)
        except Exception as error:
            self.write(number, f"{NOT_PUT_IN}: {error!r}")
        finally:
            os._exit(0)


def try_faults(faults: dict[int, tuple[Fault, list[str]]], folder: Path) -> dict[int, str]:
    """Return the verdict of each fault; raise SystemExit if a test that saw one also fails without it."""
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
    if unsound := [verdict for number, verdict in rows if number == "0" and verdict != SURVIVED]:
        sys.exit(f"fail without any fault: {', '.join(unsound)}")
    return {int(number): verdict for number, verdict in rows if number != "0"}


class ImportTrial:
    """A run of pytest that imports the code with a fault; the test or file that fails goes to `verdict`."""

    def __init__(self, size: Counter[str], verdict: Path) -> None:
        self.size, self.verdict = size, verdict

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: (self.size[item.nodeid], item.nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.verdict.write_text(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.verdict.write_text(f"{report.nodeid}::collection")

    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        item.session.shouldstop = time.process_time() > SECONDS


def try_at_import(fault: Fault, names: list[str], size: Counter[str], folder: Path) -> str:
    """Return the verdict of a fault that the three files with most of the tests are collected with."""
    files = [file for file, _ in Counter(name.partition("::")[0] for name in names).most_common(3)]
    verdict = folder / "verdict.txt"
    verdict.write_text(SURVIVED)
    pid = os.fork()
    if not pid:
        signal.alarm(600)
        enter_copy(folder)
        import_with(fault, folder)
        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *files], plugins=[ImportTrial(size, verdict)])
        if code == pytest.ExitCode.USAGE_ERROR:  # conftest.py cannot be imported
            verdict.write_text(f"{files[0]}::collection")
        os._exit(0)
    os.waitpid(pid, 0)
    seen_by = verdict.read_text()
    test = seen_by.removesuffix("::collection").removeprefix("tests/")
    if seen_by != SURVIVED and not tests_pass(folder, (test,)):
        sys.exit(f"fail without any fault: {seen_by}")
    return seen_by


def read_output(path: Path) -> dict[int, tuple[str, bool]]:
    """Read the faults of an earlier output that could be put in, by number, and whether the tests saw them."""
    lines = re.findall(r"^ *(\d+) (.*) \((\d+) tests\)  (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        int(number): (label, is_seen(verdict))
        for number, verdict, tests, label in lines
        if verdict != LOST and (not verdict.startswith(NOT_PUT_IN) or tests == "0")
    }


def is_seen(verdict: str) -> bool:
    return "::" in verdict or verdict == "no end"


def read_judgements() -> set[str]:
    """Return the faults that change no behaviour: file and change."""
    lines = JUDGEMENTS.read_text(encoding="utf-8").splitlines() if JUDGEMENTS.exists() else []
    return {" ".join(line.split("\t")[:2]) for line in lines if line and not line.startswith("#")}


def cover(test: str, out: Path) -> None:
    """Write the coverage of a file of tests, with the tests that run each line."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    environment = os.environ | {"COVERAGE_FILE": str(out.resolve())}
    options = ["--cov=kbtools.text", "--cov-context=test", "--cov-report=", "--cov-fail-under=0"]
    subprocess.run([*command, *options], cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room", choices=ROOMS, nargs="?", default="text")
    parser.add_argument("--count", type=int, default=60, help="faults to draw")
    parser.add_argument("--seed", type=int, default=26)
    parser.add_argument("--only", help="numbers of the faults that are tried, with commas between")
    parser.add_argument("--again", type=Path, help="an earlier output, whose faults are tried instead")
    parser.add_argument("--coverage", default=".coverage", help="the file that says which test runs which line")
    parser.add_argument("--tests", type=int, default=1000, help="tests of a fault at most")
    parser.add_argument("--small", action="store_true", help="try three faults of a small file, to see that this runs")
    arguments = parser.parse_args()
    patterns = ROOMS[arguments.room]
    if arguments.small:
        arguments.count, arguments.coverage, patterns = 3, "small.coverage", ["kbtools/text/rungs.py"]
        cover("tests/kbtools/text/test_rungs.py", Path(arguments.coverage))
    else:
        preload()
    coverage = read_coverage(arguments.coverage)
    size = Counter(name for lines in coverage.values() for names in lines.values() for name in names)
    sys.dont_write_bytecode = True
    before = read_output(arguments.again) if arguments.again else {}
    if before:
        again = find_again(label for label, _ in before.values())
        drawn = {number: fault for number, fault in zip(before, again, strict=True) if fault}
    else:
        files = sorted(str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern))
        drawn = dict(enumerate(draw(files, count=arguments.count, seed=arguments.seed), 1))
    chosen = map(int, arguments.only.split(",")) if arguments.only else drawn
    faults = {n: (drawn[n], tests_of(drawn[n], coverage, size, most=arguments.tests)) for n in chosen}
    with TemporaryDirectory() as name:
        copy_checkout(Path(name))
        verdicts = try_faults(faults, Path(name))
        for number, (fault, _) in faults.items():
            judged = f"{fault.file} {fault.change}" in read_judgements()
            if verdicts.get(number) == SURVIVED and not judged and runs_at_import(fault, coverage):
                of_file = tests_of(fault._replace(lines=range(1, 10_000)), coverage, size, most=arguments.tests)
                smallest = sorted(size.keys() - {""}, key=lambda test: (size[test], test))[: arguments.tests]
                verdicts[number] = try_at_import(fault, of_file + smallest, size, Path(name))
    for number, (fault, names) in faults.items():
        print(f"{number:>4} {verdicts.get(number, LOST)} ({len(names)} tests)  {fault.label}")
    tried = {number for number, verdict in verdicts.items() if is_seen(verdict) or verdict == SURVIVED}
    same = {
        number
        for number in tried
        if verdicts[number] == SURVIVED and f"{drawn[number].file} {drawn[number].change}" in read_judgements()
    }
    seen = sum(is_seen(verdicts[number]) for number in tried)
    print(f"{arguments.room}: killed {seen} of {len(tried)} that could be put in, of {len(faults)} drawn")
    if arguments.only:
        return
    others = len(tried - same)
    at_first = sum(before[number][1] for number in tried & before.keys())
    first = f"{at_first} of {others}" if before else ""
    row = [f"`{arguments.room}`", f"{len(tried)}", f"{len(same)}", first, f"{seen} of {others}"]
    rows = read_records().get("sampled_mutations", {"tables": {"rooms": {"rows": []}}})["tables"]["rooms"]["rows"]
    show_table("rooms", COLUMNS, sorted([row, *(old for old in rows if old[0] != row[0])]))


if __name__ == "__main__":
    main()
