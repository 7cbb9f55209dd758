"""Count the instructions of each C stage on fixed input and compare with bench/instructions.tsv.

Valgrind's callgrind counts them, so the load of the machine has no influence. A compiler other than
the one named in instructions.tsv, or another processor's memcpy, changes counts by a few percent.
The output marks counts that grew by more than 10 %; the exit code is 0.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DRIVERS, CSRC, CHECK = ROOT / "bench" / "callgrind", ROOT / "csrc", ROOT / "tests" / "csrc"
KEPT = ROOT / "bench" / "instructions.tsv"
# As in setup.py, without flags for a specific processor; -g adds the names of functions.
FLAGS = ("-std=c11", "-O3", "-g")
GROWTH_AT_MOST = 1.1
HELP = "count the instructions of the C stages under valgrind"
COUNTED = re.compile(r"Collected : (\d+)")


class NoCountError(Exception):
    """Instructions cannot be counted here; the message gives the reason."""


def compiler() -> str:
    return os.environ.get("CC", "gcc")


def compiler_version() -> str:
    done = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def build(folder: Path) -> Path:
    """Compile the driver of all stages.

    Raises
    ------
    NoCountError
        The compiler or valgrind is not installed.
    """
    for program in (compiler(), "valgrind"):
        if shutil.which(program) is None:
            raise NoCountError(f"{program} is not on the PATH; install it")
    sources = [*DRIVERS.glob("*.c"), *CSRC.rglob("*.c")]
    program = folder / "stages"
    includes = [f"-I{directory}" for directory in (CSRC, CHECK)]
    subprocess.run([compiler(), *FLAGS, *includes, *map(str, sources), "-o", program], check=True)
    return program


def stages(program: Path) -> list[str]:
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()


def count(program: Path, stage: str) -> int:
    """Instructions that a stage executes.

    Raises
    ------
    NoCountError
        Valgrind failed.
    """
    command = ["valgrind", "--tool=callgrind", "--toggle-collect=measured"]
    command += ["--callgrind-out-file=/dev/null", str(program), stage]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    match = COUNTED.search(done.stderr)
    if done.returncode or not match:
        last = "".join(done.stderr.splitlines()[-1:])
        raise NoCountError(f"valgrind {stage} ended with {done.returncode}: {last}")
    return int(match[1])


def read_kept(path: Path) -> tuple[str, dict[str, int]]:
    """The compiler's version and the count of each stage; nothing where there is no file."""
    if not path.exists():
        return "none", {}
    (_, version), *rows = (
        line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()
    )
    return version, {stage: int(number) for stage, number in rows}


def write_kept(path: Path, version: str, counts: dict[str, int]) -> None:
    lines = [f"stage\t{version}", *(f"{stage}\t{number}" for stage, number in counts.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def compare(kept: dict[str, int], counts: dict[str, int]) -> list[str]:
    """One line per stage: its count, the kept count, their ratio."""
    lines = []
    for stage, number in counts.items():
        before = kept.get(stage)
        ratio = f"{number / before:.3f}" if before else "new"
        grew = before is not None and number > GROWTH_AT_MOST * before
        verdict = "  GREW BY MORE THAN 10 %" if grew else ""
        lines.append(f"{stage:<10}{number:>14}{before or '-':>14}{ratio:>8}{verdict}")
    lines += [f"{stage:<10}{'-':>14}{kept[stage]:>14}    gone" for stage in kept.keys() - counts]
    return lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--write", action="store_true", help="rewrite instructions.tsv")


def run(options: argparse.Namespace) -> int:
    try:
        with tempfile.TemporaryDirectory(prefix="fastprof-stages-") as folder:
            program = build(Path(folder))
            counts = {stage: count(program, stage) for stage in stages(program)}
    except NoCountError as error:
        print(f"instructions: skipped: {error}")
        return 0
    version, kept = read_kept(KEPT)
    print(f"kept: {version}\nhere: {compiler_version()}")
    print(f"{'stage':<10}{'instructions':>14}{'kept':>14}{'ratio':>8}")
    print("\n".join(compare(kept, counts)))
    if options.write:
        write_kept(KEPT, compiler_version(), counts)
    return 0
