"""Measure fastprof on made-up exports and print the figures: `python -m bench.run --help`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bench import machine
from bench.contenders import CONTENDERS, INTERPRETER, PARSE, Files
from bench.generate import generate, size
from bench.report import Figures, SizeFigures, growth_table, size_table

ROOT = Path(__file__).parent.parent
OUT = ROOT / "bench" / "out"
DEFAULT_SIZES = (10_000, 100_000, 1_000_000)
SEED = 1
CHUNK = 1 << 24


def cached_export(n_kernels: int, n_processes: int, fresh: bool) -> Path:
    """The made-up export of this size in bench/out, made now unless it is there."""
    suffix = "" if n_processes == 1 else f".{n_processes}processes"
    path = OUT / f"{n_kernels}{suffix}.sqlite"
    if fresh or not path.exists():
        print(f"generating {path.relative_to(ROOT)}", file=sys.stderr)
        generate(path, n_kernels, SEED, n_processes)
    return path


def warm(path: Path) -> None:
    """Read a file once, so that the file system has it in memory."""
    if not path.exists():
        return
    with path.open("rb", buffering=0) as file:
        while file.read(CHUNK):
            pass


def measure(name: str, files: Files) -> dict[str, Any]:
    """Run `bench.measure` in a fresh process; a crash is an error like any other."""
    paths = {
        "--export": files.export,
        "--dict": files.dict_file,
        "--output": files.output,
    }
    options = [str(part) for item in paths.items() for part in item]
    arguments = [sys.executable, "-m", "bench.measure", name, *options]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    last_words = "".join(done.stderr.strip().splitlines()[-1:])
    if done.returncode:
        return {"error": f"ended with {done.returncode}: {last_words}"}
    result = json.loads(done.stdout.splitlines()[-1])
    if "error" in result and last_words:
        result["error"] += f" ({last_words})"
    return result


def measure_size(n_kernels: int, n_processes: int, repeat: int, fresh: bool) -> SizeFigures:
    """All contenders in turn, `repeat` times over; dict files and reports are deleted after."""
    scratch = OUT / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    export = cached_export(n_kernels, n_processes, fresh)
    files = Files(export, scratch / f"{export.stem}.dict", scratch / "report")
    try:
        return measure_files(n_kernels, files, repeat)
    finally:
        for path in scratch.iterdir():
            path.unlink()
        scratch.rmdir()


def measure_files(n_kernels: int, files: Files, repeat: int) -> SizeFigures:
    own = measure(INTERPRETER, files)
    if "error" in own:
        print(f"interpreter's own memory is not known: {own['error']}", file=sys.stderr)
    measure(PARSE, replace(files, output=files.dict_file))
    warm(files.export)
    warm(files.dict_file)
    figures = {name: Figures() for name in CONTENDERS}
    for _ in range(repeat):
        for name, contender in figures.items():
            contender.add(measure(name, files))
            files.output.unlink(missing_ok=True)
    return SizeFigures(
        n_kernels=n_kernels,
        export_bytes=files.export.stat().st_size,
        dict_bytes=files.dict_file.stat().st_size if files.dict_file.exists() else 0,
        own_bytes=own.get("peak_bytes", 0),
        contenders=figures,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.add_argument(
        "--kernels", type=size, nargs="+", default=DEFAULT_SIZES, help="sizes, such as 1e4 1e6"
    )
    parser.add_argument("--repeat", type=int, default=3, help="measurements of each (default 3)")
    parser.add_argument("--processes", type=int, default=1, help="processes in the made-up run")
    parser.add_argument("--fresh", action="store_true", help="generate again what bench/out has")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args()
    description = machine.describe()
    print(", ".join(f"{name} {value}" for name, value in description.items()))
    sizes = []
    for n_kernels in options.kernels:
        sizes.append(measure_size(n_kernels, options.processes, options.repeat, options.fresh))
        print(f"\n{size_table(sizes[-1])}", flush=True)
    print(f"\n{growth_table(sizes)}".rstrip())
    if options.json:
        figures = {"machine": description, "sizes": [asdict(item) for item in sizes]}
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
