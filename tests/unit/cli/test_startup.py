"""What a command imports and defines before it answers: most of the time of a small trace."""

import json
from pathlib import Path

import pytest
from bench.generate import generate

from support import processes

# Runs the command line, then prints the names of all modules, and of the classes of fastprof with
# a method whose source was generated.
SCRIPT = """
import json, sys
from fastprof.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
modules = sorted(sys.modules)
classes = {
    f"{each.__module__}.{each.__qualname__}"
    for name in modules if name.startswith("fastprof")
    for each in vars(sys.modules[name]).values() if isinstance(each, type)
    for method in ("__init__", "__new__")
    if getattr(getattr(each, method), "__code__", main.__code__).co_filename.startswith("<string")
}
print(json.dumps([modules, sorted(classes)]), file=sys.stderr)
"""

# Standard modules that cost 1 ms or more and that a first screen has no use for.
HEAVY = {
    *("concurrent.futures", "csv", "decimal", "fractions", "hashlib", "importlib.metadata"),
    *("importlib.resources", "logging", "multiprocessing", "random", "subprocess", "tempfile"),
    *("difflib", "numpy.ma", "shutil"),
}
# What other commands, formats and callers need.
UNUSED = {
    *("fastprof.analysis.diff", "fastprof.annotate", "fastprof.exports", "fastprof.integrations"),
    *("fastprof.model.page", "fastprof.profile.recount"),
    *("fastprof.page", "fastprof.profile.captured_graphs", "fastprof.profile.from_dict_lines"),
    *("fastprof.readers.kineto", "fastprof.readers.nvprof.reader", "fastprof.writers"),
    *("fastprof.readers.torch_snapshot", "fastprof.cli.batch", "fastprof.cli.diff"),
    *("fastprof.cli.export", "fastprof.cli.nsys", "fastprof.cli.report", "fastprof.cli.run"),
    *("fastprof.analysis.idle.columns", "fastprof.analysis.steps.columns"),
    *("fastprof.ops.libraries.fbgemm", "fastprof.ops.libraries.torchvision"),
    "fastprof.ops.libraries.serving.attention",
}
MOST_OF_SCREEN, MOST_OF_HELP = 340, 99  # modules of fastprof; a report has a package


def loaded(*words: str | Path) -> tuple[set[str], list[str]]:
    """The modules that a command line imports, and its classes with generated methods."""
    done = processes.python("-c", SCRIPT, *map(str, words), check=True)
    modules, classes = json.loads(done.stderr.splitlines()[-1])
    assert "fastprof.cli" in modules
    return set(modules), classes


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], list[str]]:
    path = tmp_path_factory.mktemp("startup") / "small.sqlite"
    generate(path, 2500, 1)
    return loaded(path)


def test_the_first_screen_imports_nothing_that_it_does_not_use(screen):
    modules, _ = screen
    assert modules & HEAVY == set()
    assert modules & UNUSED == set()
    assert sum(module.startswith("fastprof") for module in modules) <= MOST_OF_SCREEN


def test_the_first_screen_compiles_no_methods(screen):
    assert screen[1] == []


def test_help_imports_headings_only():
    modules, classes = loaded("--help")
    own = {module for module in modules if module.startswith("fastprof")}
    assert len(own) <= MOST_OF_HELP
    assert not {"numpy", "apsw", "fastprof.ops", "fastprof.profile.data"} & modules
    assert classes == []


def test_the_help_of_a_command_imports_no_other_command():
    modules, _ = loaded("layers", "--help")
    assert "fastprof.analysis.layers.columns" in modules
    assert not {"fastprof.analysis.idle.columns", "fastprof.cli.diff", "numpy"} & modules
