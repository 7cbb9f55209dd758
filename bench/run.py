"""Measure all contenders at several sizes: `python -m bench` without a command."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import machine
from bench.contenders import CONTENDERS, PARSE, Files
from bench.figures import Figures, Run, SizeFigures
from bench.generate import generate, size
from bench.measure import LONG_SECONDS
from bench.report import page

ROOT = Path(__file__).parent.parent
OUT = ROOT / "bench" / "out"
DEFAULT_SIZES = [10_000, 100_000, 1_000_000]
FULL_SIZES = [*DEFAULT_SIZES, 10_000_000]
SMOKE_SIZES = [10_000]
SEED = 1
CHUNK = 1 << 24


def cached_export(n_kernels: int, fresh: bool) -> Path:
    """The export of this size in bench/out; generated if missing or `fresh`."""
    path = OUT / f"{n_kernels}.sqlite"
    if fresh or not path.exists():
        print(f"generating {path.relative_to(ROOT)}", file=sys.stderr)
        generate(path, n_kernels, SEED)
    return path


def warm(path: Path) -> None:
    """Read a file once, to load it into the file cache."""
    if not path.exists():
        return
    with path.open("rb", buffering=0) as file:
        while file.read(CHUNK):
            pass


def measure(name: str, files: Files, counts: bool = False) -> dict[str, Any]:
    """Run `bench.measure` in a new process; a crash becomes an error result."""
    paths = {
        "--export": files.export,
        "--dict": files.dict_file,
        "--output": files.output,
    }
    options = [str(part) for item in paths.items() for part in item]
    options += ["--count"] if counts else []
    arguments = [sys.executable, "-m", "bench.measure", name, *options]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    last_words = "".join(done.stderr.strip().splitlines()[-1:])
    if done.returncode:
        return {"error": f"ended with {done.returncode}: {last_words}"}
    result = json.loads(done.stdout.splitlines()[-1])
    if "error" in result and last_words:
        result["error"] += f" ({last_words})"
    return result


def measure_size(n_kernels: int, options: argparse.Namespace) -> SizeFigures:
    """Measure all contenders in turn, `repeat` times; delete dict files and reports."""
    scratch = OUT / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    export = cached_export(n_kernels, options.fresh)
    files = Files(export, scratch / f"{export.stem}.dict", scratch / "report")
    try:
        return measure_files(n_kernels, files, options.repeat, counts=options.smoke)
    finally:
        for path in scratch.iterdir():
            path.unlink()
        scratch.rmdir()


def measure_files(n_kernels: int, files: Files, repeat: int, counts: bool) -> SizeFigures:
    own = measure("interpreter", files)
    if "error" in own:
        print(f"memory of the interpreter is unknown: {own['error']}", file=sys.stderr)
    measure(PARSE, replace(files, output=files.dict_file))
    warm(files.export)
    warm(files.dict_file)
    figures = {name: Figures() for name, each in CONTENDERS.items() if each.runs_on(n_kernels)}
    for turn in range(repeat):
        for name, result in figures.items():
            # One long measurement averages out the load of the machine.
            if turn and (result.error or min(result.cpu_seconds) > LONG_SECONDS):
                continue
            result.add(measure(name, files, counts))
            files.output.unlink(missing_ok=True)
    return SizeFigures(
        n_kernels=n_kernels,
        export_bytes=files.export.stat().st_size,
        dict_bytes=files.dict_file.stat().st_size if files.dict_file.exists() else 0,
        own_bytes=own.get("peak_bytes", 0),
        contenders=figures,
    )


def complaints(run: Run) -> list[str]:
    """The failures of a smoke test: errors, and wrong numbers of kernels."""
    return [
        f"{size.n_kernels} kernels: {name} {found.error or f'found {found.rows}'}"
        for size in run.sizes
        for name, found in size.contenders.items()
        if found.error or found.rows not in (None, size.n_kernels)
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument(
        "--kernels",
        metavar="N",
        type=size,
        action="append",
        help="a size, such as 1e6 (default 1e4, 1e5, 1e6)",
    )
    sizes.add_argument("--full", action="store_true", help="1e4 to 1e7 kernels: 4 GB and more")
    sizes.add_argument(
        "--smoke", action="store_true", help="1e4 kernels once; fails if a contender fails"
    )
    parser.add_argument(
        "--repeat", metavar="N", type=int, help="measurements of each contender (default 3)"
    )
    parser.add_argument("--fresh", action="store_true", help="regenerate the exports in bench/out")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        default=OUT / "figures.json",
        help="file for all figures (default bench/out/figures.json)",
    )


def run(options: argparse.Namespace) -> int:
    """Measure, print the page and write the figures; return the exit code."""
    preset = FULL_SIZES if options.full else SMOKE_SIZES if options.smoke else DEFAULT_SIZES
    options.repeat = options.repeat or (1 if options.smoke else 3)
    result = Run(machine.describe(), [])
    for n_kernels in sorted(options.kernels or preset):
        print(f"measuring {n_kernels:,} kernels", file=sys.stderr, flush=True)
        result.sizes.append(measure_size(n_kernels, options))
    print(page(result))
    result.write(options.json)
    print(f"all figures: {options.json}")
    wrong = complaints(result) if options.smoke else []
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0
