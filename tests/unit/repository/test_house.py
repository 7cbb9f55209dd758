"""Who may import whom, and what may stand where: the rules of docs/architecture.md."""

import ast
import functools
import gc
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from support import processes

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "python" / "fastprof"
TESTS = ROOT / "tests"
MODULES = sorted(PACKAGE.rglob("*.py"))
COMPILED = sorted((ROOT / "src").rglob("*.pyx"))
C_FILES = sorted((ROOT / "csrc").rglob("*.c"))
OTHERS = [path for name in ("bench", "tests", "examples") for path in (ROOT / name).rglob("*.py")]

# Rooms from the bottom up; a module imports from its own room and from those before it.
ROOMS = [
    *("_version", "errors", "_core", "_system", "model", "ops", "readers", "profile", "analysis"),
    *("writers", "ranks", "exports", "page", "api", "runs", "annotate", "integrations"),
    *("mcp", "cli", "parse", "prof", "__main__"),
]

# What runs within a training program, and what only that may import.
IN_TRAINING = {"annotate", "integrations"}
OF_TRAINING = {"torch", "nvtx", "lightning", "pytorch_lightning"}


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """All nodes of a file, the module first."""
    return list(ast.walk(ast.parse(path.read_text())))


@pytest.fixture(autouse=True, scope="module")
def _forget() -> Iterator[None]:
    """Searches for garbage among a million nodes would take longer than to parse the files."""
    gc.disable()
    yield
    nodes.cache_clear()
    gc.enable()


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def imports_of(path: Path) -> set[str]:
    result = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            result |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "fastprof":
            result |= {f"fastprof.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            result.add(node.module)
    return result


def own_room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_modules_import_only_from_the_rooms_below() -> None:
    upward = {
        f"{named(path)} imports {module}"
        for path in MODULES
        if own_room(path) != "__init__"
        for module in imports_of(path)
        if module.partition(".")[0] == "fastprof"
        and ROOMS.index(room_of(module)) > ROOMS.index(own_room(path))
    }
    assert upward == set()


def texts_of(path: Path) -> Iterator[str]:
    """The texts of a file that are no docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in nodes(path)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes(path):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings:
            yield node.value


def test_texts_name_only_modules_of_the_rooms_below() -> None:
    """`import_module("fastprof.page")` is an import, too."""
    upward = {
        f"{named(path)} names fastprof.{room}"
        for path in MODULES
        if own_room(path) != "__init__"
        for text in texts_of(path)
        for room in re.findall(r"\bfastprof\.(\w+)", text)
        if room in ROOMS and ROOMS.index(room) > ROOMS.index(own_room(path))
    }
    # It runs first in the interpreter of a program, and loads the recorder there.
    assert upward == {"python/fastprof/runs/startup/sitecustomize.py names fastprof.annotate"}


def modules_imported_by(path: Path, modules: set[str]) -> set[str]:
    """The modules of fastprof that a module imports when it runs."""
    result = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            result |= (names & modules) or {node.module} & modules
    return result


def test_imports_have_no_cycles() -> None:
    parts = {path: path.relative_to(PACKAGE.parent).with_suffix("").parts for path in MODULES}
    modules = {".".join(each).removesuffix(".__init__"): path for path, each in parts.items()}
    graph = {name: modules_imported_by(path, set(modules)) for name, path in modules.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(modules)


def test_every_package_says_what_it_is_for() -> None:
    packages = [path for path in MODULES if path.name == "__init__.py"]
    assert [named(path) for path in packages if not ast.get_docstring(nodes(path)[0])] == []


def test_only_annotate_and_integrations_import_what_training_needs() -> None:
    for path in MODULES:
        if own_room(path) in IN_TRAINING:
            continue
        imports = imports_of(path)
        assert not {name.split(".")[0] for name in imports} & OF_TRAINING, named(path)
        if own_room(path) != "__init__":  # which names their contents, and imports them when asked
            rooms = {room_of(name) for name in imports if name.startswith("fastprof.")}
            assert not rooms & IN_TRAINING, named(path)


KINDS = [
    "browser",
    "csrc",
    "dist",
    "fuzz",
    "golden",
    "oracle",
    "programs",
    "property",
    "real",
    "unit",
]
NOT_OF_A_ROOM = ("bench", "repository", "support")  # what else tests/unit tests


def test_tests_mirror_the_rooms() -> None:
    names = {path.relative_to(TESTS).parts[0] for path in tracked() if path.is_relative_to(TESTS)}
    assert names == {*KINDS, "support", "conftest.py"}
    folders = {path.parent.relative_to(TESTS / "unit") for path in TESTS.glob("unit/**/test_*.py")}
    rooms = [path for path in folders if path.parts[0] not in NOT_OF_A_ROOM]
    assert len(rooms) > 40
    assert [str(path) for path in rooms if not (PACKAGE / path / "__init__.py").is_file()] == []


def test_helpers_of_one_folder_stand_in_it() -> None:
    helpers = {f"support.{path.stem}" for path in TESTS.glob("support/*.py")}
    folders: dict[str, list[str]] = {name: [] for name in helpers}
    for path in TESTS.rglob("*.py"):
        for name in modules_imported_by(path, helpers):
            folders[name].append(str(path.parent.relative_to(TESTS)))
    shared = {name: os.path.commonpath(where) for name, where in folders.items() if where}
    assert len(shared) > 30
    assert {name for name, where in shared.items() if where not in ("", "unit", "support")} == set()


# What may stand in few places, and these; `print` besides wherever a program prints.
ALLOWED = {
    # programs that a test compares, as they are typed
    "exec": {f"tests/unit/annotate/annotation_{name}.py" for name in ("outcomes", "expressions")},
    "pickle.load": {"python/fastprof/ranks/work.py", "python/fastprof/ranks/local.py"},  # pipes
}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def without_texts(source: str) -> str:
    """Cython without comments and docstrings, on as many lines."""
    kept = re.sub(r'"""[\s\S]*?"""', lambda text: "\n" * text[0].count("\n"), source)
    return re.sub(r"#.*", "", kept)


def dotted(node: ast.expr) -> str:
    """The text of a name, or of an attribute of a name; that of others is not needed."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def forbidden(file: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and name of what only few places may do: calls, and an `except` of everything."""
    for node in file:
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield node.lineno, "except:"
        if not isinstance(node, ast.Call):
            continue
        called = dotted(node.func)
        if called in ("eval", "exec", "os.system", "os.popen", "pickle.load", "print"):
            yield node.lineno, called
        if any(
            keyword.arg == "shell" and ast.unparse(keyword.value) != "False"
            for keyword in node.keywords
        ):
            yield node.lineno, "shell="


def offences(path: Path, may_print: bool) -> list[str]:
    """Place and name of each forbidden call in a file, without those that ALLOWED lists."""
    return [
        f"{named(path)}:{line}: {what}"
        for line, what in forbidden(nodes(path))
        if not (what == "print" and may_print) and named(path) not in ALLOWED.get(what, ())
    ]


def test_the_library_neither_evaluates_nor_asserts_nor_prints() -> None:
    result = [offence for path in MODULES for offence in offences(path, own_room(path) == "cli")]
    result += [
        f"{named(path)}:{node.lineno}: assert"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Assert)
    ]
    assert result == []


def test_compiled_modules_neither_evaluate_nor_assert_nor_print() -> None:
    pattern = r"\b(?:eval|exec|print)\(|\bassert\b|\bexcept:|pickle|os\.system"
    result = [
        f"{named(path)}: {each}"
        for path in COMPILED
        for each in re.findall(pattern, without_texts(path.read_text()))
    ]
    assert len(COMPILED) > 10
    assert result == []


def test_cached_properties_are_those_that_threads_share() -> None:
    """`functools.cached_property` has no lock from Python 3.12 on: use `computed_once`."""
    assert [named(path) for path in MODULES if "cached_property" in set(uses(path))] == []


def test_tests_and_bench_run_no_shell_and_no_text() -> None:
    assert [offence for path in OTHERS for offence in offences(path, may_print=True)] == []


@pytest.mark.parametrize(
    "source, found",
    [
        ("eval(x)", ["eval"]),
        ("model.eval()", []),
        ("try:\n    f()\nexcept:\n    pass", ["except:"]),
        ("subprocess.run(x, shell=True)", ["shell="]),
        ("pickle.load(f)", ["pickle.load"]),
        ("os.system(x)", ["os.system"]),
    ],
)
def test_what_is_forbidden_is_found(source: str, found: list[str]) -> None:
    assert [what for _, what in forbidden(list(ast.walk(ast.parse(source))))] == found


def test_the_c_core_knows_nothing_of_python() -> None:
    for path in sorted((ROOT / "csrc").rglob("*.[ch]")):
        text = path.read_text()
        assert "Python.h" not in text, path.name
        assert "printf(" not in text, path.name


def test_files_stay_small() -> None:
    sources = [*MODULES, *(ROOT / "csrc").rglob("*.[ch]"), *COMPILED]
    lengths = {named(path): len(path.read_text().splitlines()) for path in sources}
    assert {name: n for name, n in lengths.items() if n > 700} == {}


def functions_of_python(path: Path) -> Iterator[tuple[str, int]]:
    """Name of each function, and how many lines it has besides its docstring and empty ones."""
    lines = path.read_text().splitlines()
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            told = ast.get_docstring(node) is not None
            text = range(first.lineno, (first.end_lineno or 0) + 1) if told else range(0)
            own = range(node.lineno, (node.end_lineno or 0) + 1)
            yield node.name, sum(i not in text and bool(lines[i - 1].strip()) for i in own)


def functions_of_cython(path: Path) -> Iterator[tuple[str, int]]:
    """The same of Cython, by indentation."""
    lines = without_texts(path.read_text()).splitlines()
    for i, line in enumerate(lines):
        begin = re.match(r"( *)(?:def|cdef|cpdef) [^=]*?(\w+)\(", line)
        if begin is None:
            continue
        n = 1
        for below in lines[i + 1 :]:
            indent = len(below) - len(below.lstrip())
            if below.strip() and indent <= len(begin[1]) and not below.lstrip().startswith(")"):
                break
            n += bool(below.strip())
        yield begin[2], n


def functions_of_c(path: Path) -> Iterator[tuple[str, int]]:
    """The same of C, whose functions begin and end at the first column."""
    source = path.read_text()
    for begin in re.finditer(r"^\w[^;{}=]*?(\w+)\([^;{}]*\)\s*\{\n(.*?)^\}", source, re.M | re.S):
        yield begin[1], sum(bool(line.strip()) for line in begin[0].splitlines())


def test_functions_fit_a_screen() -> None:
    long = {}
    for paths, functions in (
        (MODULES, functions_of_python),
        (COMPILED, functions_of_cython),
        (C_FILES, functions_of_c),
    ):
        n_functions = 0
        for path in paths:
            for name, n in functions(path):
                n_functions += 1
                if n > 60:
                    long[f"{named(path)}: {name}"] = n
        assert n_functions > 100, functions.__name__
    assert long == {}


def test_functions_are_verbs_or_nouns() -> None:
    """`of_kernel` is a column beside others, a property: no function begins so."""
    functions = [
        f"{named(path)}: {node.name}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef) and not node.decorator_list
    ]
    assert len(functions) > 1000
    assert [text for text in functions if " of_" in text] == []


def test_a_class_has_a_name_of_its_own() -> None:
    homes = defaultdict(list)
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(named(path))
    assert len(homes) > 400
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_types_are_ignored_for_a_reason_only() -> None:
    for path in MODULES:
        for line in path.read_text().splitlines():
            if "type: ignore" in line:
                assert re.search(r"# type: ignore\[[\w, -]+\]  # \w", line), f"{path.name}: {line}"


# Who uses these is not seen: a base class calls them, or a program does; docs/guide.md says so.
CALLED_FROM_OUTSIDE = {
    "find_class": "pickle.Unpickler",
    "visit_Name": "ast.NodeVisitor",
    "writable": "io.TextIOWrapper",
    "_check_value": "argparse.ArgumentParser",
    "to_polars": "docs/guide.md",
    "FastprofProfiler": "docs/guide.md",
    "to_dict": "docs/guide.md",
    "repro": "docs/guide.md",
    "reset": "docs/guide.md",
    "whatif": "docs/replay.md",
    "write_perfetto": "docs/guide.md",
    "ranges_table": "docs/reports.md",
    "serving": "docs/serving.md",
    "open_at": "the C core's tree, which a property test asks one instant at a time",
}


def definitions(path: Path) -> Iterator[str]:
    """Functions, methods and classes, and the constants of the module; not what is registered."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            decorators = {ast.unparse(each).partition("(")[0] for each in node.decorator_list}
            if not decorators & {"op", "operators", "collective", "rule", "call_rule"}:
                yield node.name
    tree = nodes(path)[0]
    assert isinstance(tree, ast.Module)
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        yield from (target.id for target in targets if isinstance(target, ast.Name))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def uses(path: Path) -> Iterator[str]:
    """Names that are read, attributes and keywords; in the package's __init__ also imports."""
    is_public = path == PACKAGE / "__init__.py"
    for node in nodes(path):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.ImportFrom) and is_public:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and is_public:
            yield node.value


def test_what_the_library_defines_it_uses() -> None:
    defined, used = set(), set()
    for path in MODULES:
        defined |= set(definitions(path))
        used |= set(uses(path))
    for path in COMPILED:
        code = without_texts(path.read_text())
        beginning = r"^ *(?:def|cdef class|class) (\w+)|^([A-Z_]+) ="
        defined |= {name for pair in re.findall(beginning, code, re.M) for name in pair if name}
        used |= set(re.findall(r"\w+", re.sub(beginning, "", code, flags=re.M)))
    for path in [*(ROOT / "bench").rglob("*.py"), *(ROOT / "docs").glob("*.py")]:
        used |= set(uses(path))
    unused = {name for name in defined - used if not re.fullmatch("__.*__", name)}
    assert unused == set(CALLED_FROM_OUTSIDE)


def tracked() -> list[Path]:
    """The files of the repository; of what lies here, where git does not say."""
    done = processes.ran(["git", "ls-files", "-z"], cwd=ROOT)
    if done.returncode:
        return [*MODULES, *COMPILED, *OTHERS, *(ROOT / "docs").glob("*.md"), ROOT / "Makefile"]
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_nothing_says_where_it_was_written() -> None:
    places = re.compile("/root/|/work/|/opt/py|index-url|devpi")
    for path in set(tracked()) - {Path(__file__)}:
        text = path.read_bytes().decode("utf-8", "replace")
        assert places.search(text) is None, f"{named(path)}: {places.search(text)}"


def test_the_makefile_installs_what_the_extra_lint_says() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    (wanted,) = re.findall(r"^lint = \[(.*?)\]$", project, re.M | re.S)
    makefile = (ROOT / "Makefile").read_text()
    assert [each for each in re.findall(r'"[^"]+"', wanted) if each not in makefile] == []
