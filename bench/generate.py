"""Write an Nsight Systems export of a generated PyTorch training run.

The same number of kernels, processes and seed give the same rows on every machine.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from bench.export import Export
from bench.process import Process
from bench.rocpd import RocpdExport
from bench.rocpd_schema import VERSIONS
from bench.strings import StringTable

HELP = "write a generated export"
CAPTURE_BEGIN = 2_026_720_015
N_ORPHANS = 8
SMALL_RUN, SMALL_MODEL, LARGE_MODEL = 5_000, 2, 8


def generate(
    path: Path, n_kernels: int, seed: int = 1, n_processes: int = 1, rocpd: str | None = None
) -> None:
    """Write an export with exactly `n_kernels` kernels, replacing the file.

    rocpd : version of a rocpd database, which the file is then

    Runs below SMALL_RUN kernels use a smaller model, so they contain complete steps. A few kernels
    are launched before the capture begins and have no API call; the capture ends in the middle of a
    step. Memory use does not depend on the number of kernels.
    """
    n_blocks = SMALL_MODEL if n_kernels < SMALL_RUN else LARGE_MODEL
    strings = StringTable()
    processes = [Process(rank, n_processes, n_blocks, seed, strings) for rank in range(n_processes)]
    shares = [(n_kernels + n_processes - 1 - rank) // n_processes for rank in range(n_processes)]
    unfinished = path.with_name(path.name + ".part")
    unfinished.unlink(missing_ok=True)
    with RocpdExport(unfinished, rocpd) if rocpd else Export(unfinished) as export:
        export.write_targets([process.identity for process in processes], strings)
        write_run(export, processes, shares)
        export.write_strings(strings)
    unfinished.replace(path)


def write_run(export: Export | RocpdExport, processes: list[Process], shares: list[int]) -> None:
    """Play step after step, all processes together, until each has launched its kernels."""
    n_orphans = [min(N_ORPHANS, share // 100) for share in shares]
    rows = [
        process.play_before_capture(CAPTURE_BEGIN, n)
        for process, n in zip(processes, n_orphans, strict=True)
    ]
    n_left = [share - n for share, n in zip(shares, n_orphans, strict=True)]
    step = 0
    while rows:
        export.write_steps(rows)
        begin = max(row.end for row in rows)
        rows = []
        for i, process in enumerate(processes):
            if n_left[i] == 0:
                continue
            if n_left[i] < process.n_kernels:
                process.cut_after(n_left[i])
            n_left[i] -= process.n_kernels
            rows.append(process.play(step, begin))
        step += 1


def size(text: str) -> int:
    """A number of kernels, such as 1000 or 1e6."""
    try:
        number = float(text)
    except ValueError:
        number = -1
    if number < 0 or number != int(number):
        raise argparse.ArgumentTypeError(f"expected a number such as 1000 or 1e6, found {text!r}")
    return int(number)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kernels", type=size, default=1_000, help="number of kernels (default 1000)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="equal seeds give equal rows (default 1)"
    )
    parser.add_argument(
        "--processes", type=int, default=1, help="number of processes, each with a GPU (default 1)"
    )
    parser.add_argument("--rocpd", choices=VERSIONS, help="write a rocpd database of this version")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")


def run(options: argparse.Namespace) -> int:
    begin = time.perf_counter()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    generate(options.output, options.kernels, options.seed, options.processes, options.rocpd)
    seconds = time.perf_counter() - begin
    megabytes = options.output.stat().st_size / 1e6
    print(f"{options.output}: {options.kernels} kernels, {megabytes:.1f} MB in {seconds:.1f} s")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.generate", description=__doc__)
    add_arguments(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    raise SystemExit(main())
