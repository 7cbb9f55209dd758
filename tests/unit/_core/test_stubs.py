"""What the stubs say of the compiled modules is what the modules have.

mypy's stubtest compares all it can see at run time. What Cython hides, the parameters of
`__cinit__`, is read from the sources.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.waiting import PATIENCE

pytest.importorskip("mypy", reason="mypy is not installed: pip install '.[test]'")

ROOT = Path(__file__).resolve().parents[3]
CORE = ROOT / "python" / "fastprof" / "_core"
SOURCES = {
    path.stem: path.read_text() for path in sorted((ROOT / "src/fastprof/_core").glob("*.pyx"))
}

# What Cython adds to modules and classes.
MADE_BY_CYTHON = r"fastprof\._core\._\w+(\.\w+)?\.__(test|pyx_capi|(reduce|setstate)_cython)__"
# The slot is filled after the class is made (the end of _hooks.pyx), so that no method is there.
CALLS = r"fastprof\._core\._hooks\.Wrapped\.__call__"


def constructors(source: str) -> dict[str, str]:
    """`__init__` or `__cinit__` with its parameters, of the classes of a .pyx that have one."""
    result = {}
    for block in re.split(r"^(?=cdef class )", source, flags=re.MULTILINE)[1:]:
        name = re.match(r"cdef class (\w+)", block)[1]
        constructor = re.search(r"^    def (__c?init__)\(self(?:, )?(.*?)\):$", block, re.M | re.S)
        if constructor and not name.startswith("_"):
            result[name] = constructor[1] + "(" + " ".join(constructor[2].split()) + ")"
    return result


def parameters(text: str) -> list[tuple[str, str | None]]:
    """Name and default of each parameter of `__cinit__(const int32_t[::1] x, str what="")`."""
    inner = text[text.index("(") + 1 : -1]
    result = []
    for part in filter(None, inner.split(", ")):
        declared, _, default = part.removesuffix(" not None").partition("=")
        value = ast.unparse(ast.parse(default, mode="eval")) if default else None
        result.append((declared.split()[-1], value))
    return result


def stub_parameters(stub: str) -> dict[str, list[tuple[str, str | None]]]:
    """The same of the `__init__` of the classes of a stub."""
    result = {}
    for kind in ast.walk(ast.parse(stub)):
        for method in kind.body if isinstance(kind, ast.ClassDef) else []:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                names = [arg.arg for arg in method.args.args[1:]]
                given = [ast.unparse(default) for default in method.args.defaults]
                defaults = [None] * (len(names) - len(given)) + given
                result[kind.name] = list(zip(names, defaults, strict=True))
    return result


def stubtest(stubs: Path, tmp_path: Path) -> str:
    """What stubtest has against the stubs of a package `fastprof` there; "" if all is well."""
    hidden = [
        rf"fastprof\._core\.{module}\.{name}\.__init__"
        for module, source in SOURCES.items()
        for name, constructor in constructors(source).items()
        if constructor.startswith("__cinit__")
    ]
    allowed = tmp_path / "allowed"
    allowed.write_text("\n".join([MADE_BY_CYTHON, CALLS, *hidden]))
    command = [sys.executable, "-m", "mypy.stubtest", "--concise", "--allowlist", str(allowed)]
    command += ["--ignore-unused-allowlist", "--ignore-disjoint-bases"]
    done = subprocess.run(
        [*command, *(f"fastprof._core.{module}" for module in SOURCES)],
        env=os.environ | {"MYPYPATH": str(stubs)},
        cwd=tmp_path,  # no settings of ours, and a cache that goes
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == (1 if done.stdout else 0), done.stderr
    return done.stdout


def copied_stubs(tmp_path: Path) -> Path:
    package = tmp_path / "stubs" / "fastprof"
    core = package / "_core"
    core.mkdir(parents=True)
    for path in CORE.glob("*.pyi"):
        shutil.copy(path, core)
    for each in (package, core):
        (each / "__init__.pyi").touch()
    stand_in_for_numpy(tmp_path / "stubs" / "numpy", core)
    return core


def stand_in_for_numpy(package: Path, core: Path) -> None:
    """Write the few names of numpy that our stubs use: its own stubs take 3 s to read.

    `make lint` checks our stubs with numpy's own.
    """
    stubs = "".join(path.read_text() for path in core.glob("_*.pyi"))
    names = sorted({*re.findall(r"\bnp\.(\w+)", stubs)} - {"generic"})
    kinds = "".join(f"class {name}(generic): ...\n" for name in names)
    package.mkdir()
    (package / "__init__.pyi").write_text(f"class generic: ...\n{kinds}")
    (package / "typing.pyi").write_text(
        'from typing import Generic, TypeVar\nT = TypeVar("T")\nclass NDArray(Generic[T]): ...\n'
    )


def test_every_compiled_module_has_a_stub_and_every_stub_a_module() -> None:
    assert {path.stem for path in CORE.glob("_*.pyi")} == set(SOURCES)


def test_stubs_say_what_the_modules_have(tmp_path: Path) -> None:
    assert stubtest(copied_stubs(tmp_path).parents[1], tmp_path) == ""


def test_a_wrong_stub_is_found(tmp_path: Path) -> None:
    core = copied_stubs(tmp_path)
    for module, right, wrong in (
        ("_path", "def depth(parent: _Int32)", "def depth(child: _Int32)"),
        ("_take", "none: int = -1", "none: int"),
        ("_nest", 'what: str = "ranges"', 'what: str = "frames"'),
        ("_pools", "def values(self)", "def numbers(self)"),
        ("_link", "BACKWARD: int", "BACKWARD: str"),
        ("_share", "def ordinal(", "def unheard_of("),
        ("_kineto", "    is_whole: bool\n", ""),
    ):
        path = core / f"{module}.pyi"
        assert right in path.read_text()
        path.write_text(path.read_text().replace(right, wrong))
    said = stubtest(core.parents[1], tmp_path)
    for name, why in (
        ("_path.depth", 'stub parameter "child"'),
        ("_take.take", 'runtime parameter "none" has a default value but stub'),
        ("_nest.sweep", "has a default value of 'ranges', which is different from stub"),
        ("_pools.Keys.numbers", "is not present at runtime"),
        ("_pools.Keys.values", "is not present in stub"),
        ("_link.BACKWARD", "variable differs from runtime type"),
        ("_share.unheard_of", "is not present at runtime"),
        ("_share.ordinal", "is not present in stub"),
        ("_kineto.KinetoReader.is_whole", "is not present in stub"),
    ):
        lines = [line for line in said.splitlines() if line.startswith(f"fastprof._core.{name} ")]
        assert any(why in line for line in lines), f"{name}: {said}"


def test_constructors_have_the_parameters_that_their_stubs_say() -> None:
    stubs = {module: stub_parameters((CORE / f"{module}.pyi").read_text()) for module in SOURCES}
    assert stubs == {
        module: {
            name: given
            for name, text in constructors(source).items()
            if (given := parameters(text))
        }
        for module, source in SOURCES.items()
    }


def test_constructors_are_read_as_cython_reads_them() -> None:
    source = '''cdef class Some(Base):
    """What it is."""
    cdef int field

    def __cinit__(self, const int32_t[::1] left, str name not None, more=None,
                  bint on=False):
        pass


cdef class _Private:
    def __cinit__(self, int hidden):
        pass
'''
    assert {name: parameters(text) for name, text in constructors(source).items()} == {
        "Some": [("left", None), ("name", None), ("more", "None"), ("on", "False")]
    }
