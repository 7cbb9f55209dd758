"""The source distribution and its wheel, as users get them: `make dist-test`."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path, PurePosixPath

import pytest

import fastprof
from bench.generate import generate
from support import processes

ROOT = Path(__file__).resolve().parents[2]
DIST = os.environ.get("FASTPROF_DIST")
pytestmark = pytest.mark.skipif(DIST is None, reason="nothing was built: make dist-test")

COMMANDS = (
    ("parse", "net.sqlite"),
    ("parse", "--format", "jsonl", "net.sqlite"),
    ("prof", "--csv", "net.sqlite"),
    ("prof", "-w", "150", "net.sqlite"),
    ("info", "net.sqlite"),
)


def the_only(pattern: str) -> Path:
    (path,) = Path(DIST or "").resolve().glob(pattern)
    return path


def sources(*patterns: str) -> set[str]:
    result = (path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file())
    return {str(path.relative_to(ROOT)) for path in result}


@pytest.fixture(scope="module")
def in_sdist() -> set[str]:
    with tarfile.open(the_only("*.tar.gz")) as archive:
        files = [member.name for member in archive.getmembers() if member.isfile()]
    return {name.partition("/")[2] for name in files}


@pytest.fixture(scope="module")
def in_wheel() -> set[str]:
    with zipfile.ZipFile(the_only("*.whl")) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with only the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("empty") / "env"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    wheel = the_only("*.whl")
    nothing_compiles = os.environ | {"CC": "false", "CXX": "false"}
    done = processes.ran([python, "-m", "pip", "install", "--quiet", wheel], env=nothing_compiles)
    assert done.returncode == 0, done.stderr
    return python


def run(folder: Path, python: Path | str, *words: str) -> str:
    """The output of a program run in a folder without this environment's settings."""
    done = processes.ran([python, *words], cwd=folder, env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_sdist_has_every_source(in_sdist: set[str]) -> None:
    wanted = sources(
        *("csrc/**/*.[ch]", "src/**/*.p[yx][xd]", "python/**/*.py", "python/**/*.pyi"),
        *("python/**/py.typed", "tests/**/*.py", "bench/**/*.py", "bench/*.sql", "docs/*.md"),
        *("setup.py", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile"),
    )
    assert len(wanted) > 400
    assert wanted - in_sdist == set()


def test_the_sdist_has_nothing_that_was_built(in_sdist: set[str]) -> None:
    built = {".so", ".o", ".pyc", ".html"}
    made = {name for name in in_sdist if PurePosixPath(name).suffix in built}
    assert made == {"python/fastprof/page/assets/page.html"}  # a source, unlike Cython's
    assert {name for name in in_sdist if name.startswith(("build/", "dist/", "."))} == set()


def test_the_wheel_has_the_package_and_nothing_else(in_wheel: set[str]) -> None:
    kinds: dict[str, set[str]] = {}
    for name in in_wheel:
        folder, _, rest = name.partition("/")
        kinds.setdefault(folder.partition("-")[0], set()).add(rest)
    assert set(kinds) == {"fastprof"}
    code = {name for name in in_wheel if name.startswith("fastprof/")}
    compiled = {name for name in code if name.endswith(".so")}
    assert code - compiled == {
        name.removeprefix("python/")
        for name in sources(
            "python/**/*.py", "python/**/*.pyi", "python/**/py.typed", "python/fastprof/**/*.txt",
            "python/fastprof/page/assets/**/*", "python/fastprof/skills/**/*.md",
        )
    } | {f"fastprof/mcp/pages/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    names = {PurePosixPath(name).name.partition(".")[0] for name in compiled}
    sources_of_modules = {path.stem for path in (ROOT / "src/fastprof/_core").glob("*.pyx")}
    assert names == sources_of_modules | {"_cyutility"}


def test_the_environment_has_nothing_to_build_with(installed: Path, tmp_path: Path) -> None:
    result = run(tmp_path, installed, "-c", (
        "import importlib.util as u;"
        "print([m for m in ('Cython', 'torch', 'pandas', 'pyarrow', 'pytest') if u.find_spec(m)])"
    ))  # fmt: skip
    assert result == "[]\n"


def test_the_wheel_is_what_runs_there(installed: Path, tmp_path: Path) -> None:
    told = run(tmp_path, installed, "-c", "import fastprof; print(fastprof.__file__)")
    assert Path(told.strip()).is_relative_to(installed.parents[1])
    assert run(tmp_path, installed.parent / "fastprof", "--version") == (
        f"fastprof {fastprof.__version__}\n"
    )


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_it_prints_what_the_checkout_prints(
    installed: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    generate(tmp_path / "net.sqlite", 1000)
    result = run(tmp_path, installed.parent / "fastprof", *words)
    own = processes.python("-m", "fastprof", *words, cwd=tmp_path)
    assert result and result == own.stdout


def test_the_test_command_of_cibuildwheel_passes(installed: Path, tmp_path: Path) -> None:
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for command in settings["tool"]["cibuildwheel"]["test-command"]:
        subprocess.run(
            ["sh", "-c", command.replace("{project}", str(ROOT))],
            check=True,
            cwd=tmp_path,
            env={"PATH": f"{installed.parent}:/usr/bin:/bin"},
        )
