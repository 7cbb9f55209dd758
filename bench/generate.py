"""Write an Nsight Systems export of a made-up training run: `python -m bench.generate --help`.

The same number of kernels, processes and seed give the same rows on every machine.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from bench.export import Export
from bench.process import Process
from bench.strings import StringTable

DESCRIPTION = "Write an Nsight Systems export of a made-up PyTorch training run."
CAPTURE_BEGIN = 2_026_720_015
N_ORPHANS = 8
SMALL_RUN, SMALL_MODEL, LARGE_MODEL = 5_000, 2, 8


def generate(path: Path, n_kernels: int, seed: int = 1, n_processes: int = 1) -> None:
    """Write an export with exactly `n_kernels` kernels, replacing the file.

    A run of less than SMALL_RUN kernels has a smaller model, so that it has whole steps too. A few
    kernels were launched before the capture began and have no API call; the capture ends in the
    middle of a step. Memory does not grow with the number of kernels.
    """
    n_blocks = SMALL_MODEL if n_kernels < SMALL_RUN else LARGE_MODEL
    strings = StringTable()
    processes = [Process(rank, n_processes, n_blocks, seed, strings) for rank in range(n_processes)]
    shares = [(n_kernels + n_processes - 1 - rank) // n_processes for rank in range(n_processes)]
    unfinished = path.with_name(path.name + ".part")
    unfinished.unlink(missing_ok=True)
    with Export(unfinished) as export:
        export.write_targets([process.identity for process in processes], strings)
        write_run(export, processes, shares)
        export.write_strings(strings)
    unfinished.replace(path)


def write_run(export: Export, processes: list[Process], shares: list[int]) -> None:
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
    """A number of kernels, which may be written 1e6."""
    number = float(text)
    if number < 0 or number != int(number):
        raise argparse.ArgumentTypeError(f"expected a whole number of kernels, not {text}")
    return int(number)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.generate", description=DESCRIPTION)
    parser.add_argument("--kernels", type=size, default=1_000, help="how many (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="same seed, same rows (default 1)")
    parser.add_argument("--processes", type=int, default=1, help="processes, each with a GPU")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    begin = time.perf_counter()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    generate(options.output, options.kernels, options.seed, options.processes)
    seconds = time.perf_counter() - begin
    megabytes = options.output.stat().st_size / 1e6
    print(f"{options.output}: {options.kernels} kernels, {megabytes:.1f} MB in {seconds:.1f} s")


if __name__ == "__main__":
    main()
