"""An older torch than fastprof annotates is refused with one clear error, not a traceback."""

import os
from pathlib import Path

import pytest

from support import processes

MESSAGE = (
    "annotating and recording need torch 2.3 or newer, found 2.1.2+cu121: upgrade torch; reading "
    "traces needs none"
)


@pytest.fixture
def old_torch(tmp_path: Path) -> dict[str, str]:
    """Environment variables with a torch that is too old first on the path."""
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '2.1.2+cu121'\n")
    before = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), before])}


@pytest.mark.parametrize("name", ["init", "capture", "timer", "layer", "annotate_layers", "wrap"])
def test_every_function_that_needs_torch_says_so(name: str, old_torch: dict[str, str]) -> None:
    program = (
        "import fastprof\n"
        f"try: fastprof.{name}\n"
        "except fastprof.MissingDependencyError as error: print(error)\n"
        "fastprof.open\n"
    )
    done = processes.python("-c", program, env=old_torch)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{MESSAGE}\n")


def test_a_program_is_not_recorded_and_runs(old_torch: dict[str, str], tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("import torch\nprint('trained')\n")
    done = processes.python(
        "-m", "fastprof", "run", "-o", "run", str(program), env=old_torch, cwd=tmp_path
    )
    assert done.stdout.startswith("trained\n")
    assert f"fastprof: the program is not recorded: {MESSAGE}\n" in done.stderr
    assert "Traceback" not in done.stderr
