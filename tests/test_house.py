"""What holds for the whole house: rooms, walls, sizes, a test file for every module, all of it documented."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from gateway.cli.main import COMMANDS
from gateway.routing.affinity import AffinityBook
from gateway.routing.breakers import BreakerBoard
from gateway.routing.budgets import BudgetWindows
from gateway.routing.fleet_view import FleetView
from gateway.routing.lengths import LengthLearner
from gateway.routing.reasons import MEANING, Reason
from gateway.routing.value import ValueSample
from gateway.telemetry.counters import Counters
from gateway.telemetry.exposition import METRICS, Exposition, Sources

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "gateway"
TESTS = ROOT / "tests"
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text("utf-8")
OPERATIONS = (ROOT / "docs/operations.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
IMPORTLINTER = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]

# Modules with functions and no test file of their own, each with the place that tests it.
TESTED_ELSEWHERE = {
    "__main__": "tests/cli/test_main.py runs `python -m gateway`",
}
# Tests of more than one module.
BEYOND_MODULES = {"faults", "engine", "deploy", "captures"}
HEAVY = ("litellm", "openai", "sqlalchemy", "jinja2", "pydantic", "fastapi")


def modules() -> list[Path]:
    """Every module of the package, __init__ left out."""
    return sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


def dotted(path: Path) -> str:
    """gateway/reports/render/table.py -> reports/render/table."""
    return path.relative_to(PACKAGE).with_suffix("").as_posix()


MODULES = {dotted(path): ast.parse(path.read_text("utf-8")) for path in modules()}


# Rooms and walls


def documented_rooms() -> dict[str, set[str]]:
    """Room -> modules, as the table in docs/architecture.md has them."""
    rows = re.findall(
        r"^\| `(\w+)` \| (?:pure|shell|mixed) \| [^|]* \| ([^|]*) \|$", ARCHITECTURE, re.MULTILINE
    )
    return {room: set(re.findall(r"`([^`]+)`", names)) for room, names in rows}


def folders() -> dict[str, set[str]]:
    """Room -> modules, as they are."""
    rooms: dict[str, set[str]] = {path.parent.name: set() for path in PACKAGE.glob("*/__init__.py")}
    for name in MODULES:
        room, _, module = name.partition("/")
        if module:
            rooms[room].add(module)
    return rooms


def layers() -> set[str]:
    (contract,) = [each for each in IMPORTLINTER["contracts"] if each["type"] == "layers"]
    return {name.strip() for layer in contract["layers"] for name in layer.split("|")}


def test_rooms_are_folders_are_layers() -> None:
    beside = {name for name in MODULES if "/" not in name}
    assert set(documented_rooms()) == set(folders())
    assert layers() == set(folders()) | beside


def test_the_page_names_every_module_of_every_room() -> None:
    page, tree = documented_rooms(), folders()
    differing = {
        room: {"not on the page": tree[room] - page[room], "not there": page[room] - tree[room]}
        for room in tree
        if page.get(room, set()) != tree[room]
    }
    assert not differing
    for name in (each for each in MODULES if "/" not in each):
        assert f"`{name}`" in ARCHITECTURE


def test_pure_rooms_on_the_page_are_those_that_the_contract_holds() -> None:
    (pure,) = [each for each in IMPORTLINTER["contracts"] if "pure core" in each["name"]]
    on_page = set(re.findall(r"^\| `(\w+)` \| pure ", ARCHITECTURE, re.MULTILINE))
    assert {f"gateway.{room}" for room in on_page} == set(pure["source_modules"])


def test_the_page_shows_the_walls_as_they_are() -> None:
    (shown,) = re.findall(r"```toml\n(.*?)```", ARCHITECTURE, re.DOTALL)
    assert tomllib.loads(shown)["tool"]["importlinter"]["contracts"] == IMPORTLINTER["contracts"]


def test_an_init_is_one_docstring() -> None:
    for path in PACKAGE.rglob("__init__.py"):
        tree = ast.parse(path.read_text("utf-8"))
        assert ast.get_docstring(tree), path
        assert len(tree.body) == 1, path


def test_the_command_loads_no_heavy_library() -> None:
    code = f"import sys, gateway.cli.main; print(*sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=20, check=True
    )
    assert done.stdout.split() == []


# Sizes


class Function(NamedTuple):
    """A function and where it is."""

    where: str
    node: ast.FunctionDef | ast.AsyncFunctionDef

    @property
    def lines(self) -> int:
        """With its decorators."""
        first = min([self.node.lineno, *(each.lineno for each in self.node.decorator_list)])
        return (self.node.end_lineno or first) - first + 1


def functions() -> Iterator[Function]:
    for name, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield Function(f"{name}.py:{node.lineno} {node.name}", node)


FUNCTIONS = list(functions())


def test_functions_are_small() -> None:
    lengths = sorted(function.lines for function in FUNCTIONS)
    long = [f"{function.where}: {function.lines}" for function in FUNCTIONS if function.lines > 50]
    assert median(lengths) <= 9
    assert lengths[int(0.9 * len(lengths))] <= 30
    assert len(long) < 0.03 * len(lengths), long
    assert [each for each in long if int(each.rsplit(" ", 1)[1]) > 80] == []


def test_modules_are_small() -> None:
    sizes = {path: len(path.read_text("utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {dotted(path): size for path, size in sizes.items() if size > 400} == {}


def test_every_function_is_typed() -> None:
    assert [function.where for function in FUNCTIONS if not is_typed(function.node)] == []


def is_typed(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A return type, and a type on everything but `self` and `cls`."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    bare = {each.arg for each in every if each.annotation is None}
    return node.returns is not None and bare <= {"self", "cls"}


# Tests


def has_function(tree: ast.Module) -> bool:
    """Modules of types and tables alone are shown right by those that use them; a Protocol's methods are
    types.
    """
    every = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return any(not is_signature(node) for node in every)


def is_signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Its body is `...`."""
    last = node.body[-1]
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is ...


def mirrored(name: str) -> Path:
    """Where a module's tests are."""
    return TESTS / Path(name).parent / f"test_{Path(name).name}.py"


def test_every_module_has_its_tests() -> None:
    wanted = {name for name, tree in MODULES.items() if has_function(tree)} - set(TESTED_ELSEWHERE)
    missing = sorted(name for name in wanted if not mirrored(name).exists())
    assert not missing, f"no test file for {', '.join(missing)}"


def test_every_test_file_has_its_module() -> None:
    expected = {mirrored(name) for name in MODULES} | {TESTS / "test_house.py"}
    files = {
        path for path in TESTS.rglob("test_*.py") if path.relative_to(TESTS).parts[0] not in BEYOND_MODULES
    }
    assert sorted(path.relative_to(TESTS).as_posix() for path in files - expected) == []


def test_exemptions_are_still_needed() -> None:
    for name in TESTED_ELSEWHERE:
        assert name in MODULES
        assert not mirrored(name).exists(), f"{name} has tests of its own"


# Pages


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    assert f"spillgate {command}" in README + OPERATIONS


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_documented(reason: Reason) -> None:
    assert f"| `{reason.value}` | {MEANING[reason]} |" in OPERATIONS


def test_every_metric_is_documented_under_the_name_that_it_is_scraped_by() -> None:
    rows = re.findall(r"^\| `spillgate_(\w+)` \| ([^|]*) \| ([^|]*) \|$", OPERATIONS, re.MULTILINE)
    assert {name.removesuffix("_total"): (labels, text) for name, labels, text in rows} == {
        name: (", ".join(f"`{label}`" for label in each.labels), each.help) for name, each in METRICS.items()
    }
    scraped = re.findall(r"^# TYPE spillgate_(\w+) ", empty_page(), re.MULTILINE)
    assert {name for name, *_ in rows} == set(scraped)


def empty_page() -> str:
    """/metrics of a gateway without engines and endpoints: every family, no sample."""
    view = FleetView(
        models={}, snapshots={}, books={}, rates={}, lengths=LengthLearner(), breakers=BreakerBoard(),
        budgets=BudgetWindows({}), affinity=AffinityBook(), values=ValueSample(), prices={},
    )  # fmt: skip
    sources = Sources(Counters(), view, (), lambda: 0, lambda: 0.0, lambda: 0.0)
    return Exposition(sources).page().decode()


# Everything that is kept

LEFT_OUT = {".git", ".venv", "venv", "__pycache__", "build", "dist", ".hypothesis", "node_modules"}
# Written by vLLM on a machine, and kept as they were.
RECORDED = TESTS / "captures"
LOOSE_ENDS = re.compile(
    "|".join(rf"\b{a}{b}\b" for a, b in (("TO", "DO"), ("FIX", "ME"), ("XX", "X"), ("HA", "CK")))
)
MACHINE_PATHS = re.compile(r"(?<![\w.}])/(?:home|root|Users|work|mnt)/\w")


def kept_files() -> Iterator[tuple[Path, str]]:
    """Every text file of the project, caches and environments left out."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if LEFT_OUT & set(parts) or any(re.search(r"_cache$|\.egg-info$|\.db", part) for part in parts):
            continue
        if path.is_file() and path.name != ".ready":
            try:
                yield path, path.read_text("utf-8")
            except UnicodeDecodeError:
                continue


def test_nothing_is_left_to_do() -> None:
    found = [path.relative_to(ROOT).as_posix() for path, text in kept_files() if LOOSE_ENDS.search(text)]
    assert found == []


def test_no_file_names_a_place_on_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path, text in kept_files()
        if RECORDED not in path.parents
        for match in MACHINE_PATHS.finditer(text)
    ]
    assert found == []
