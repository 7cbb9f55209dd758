"""Kept figures -> docs/bench.png, and the table of README.md: `python -m bench publish --help`.

python -m bench --json bench/figures.json     # measure
python -m bench publish                       # plot, and table between the README's two marks
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.contenders import CONTENDERS, NAIVE, PYTHON
from bench.figures import Run
from bench.plot import NoPlotError, plot
from bench.report import ratio

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- made by python -m bench publish -->", "<!-- end of what it made -->"
NAMES = {
    "floor": "floor: step the same SELECTs in C, do nothing with the rows",
    "walk, two cores": "walk: read the same from the file's pages, do nothing with it, two cores",
    "pages": "pages: the columns of the large tables from the file's pages, all rows",
    "pages, two cores": "the same on two cores",
    "open": "`fastprof.open`",
    "open through SQLite": "`fastprof.open` with `FASTPROF_SCAN=sqlite`",
    "open on one core": "`fastprof.open` on one core",
    "parse": "`fastprof parse -o net.dict`",
    "prof --csv from trace": "`fastprof prof --csv` from the export",
    "prof --csv from dict": "`fastprof prof --csv` from the dict file",
    "python open": "the work of `open` in plain Python (`bench/baseline`)",
    "python parse": "the work of `parse` in plain Python",
    "naive parse": "the work of `parse` with SQL for every kernel, as PyProf (`bench/naive.py`)",
}
HEAD = (
    "| {n} kernels | seconds | ns a kernel | times the floor | faster than the Python "
    "| faster than the naive way | peak bytes a kernel | bytes read a kernel |"
)


def table(run: Run) -> str:
    """The largest size with all of fastprof's contenders, in Markdown."""
    n = max(size.n_kernels for size in run.sizes if size.seconds("parse"))
    size = run.size(n)
    assert size is not None
    lines = [HEAD.format(n=f"{n:,}"), "|---" * 8 + "|"]
    for name in CONTENDERS:
        seconds, measured = run.seconds(name, n)
        if seconds is None:
            continue
        floors, python = run.floors(name, n), run.against_python(name, n)
        naive = run.against_naive(name, n)
        cells = [
            NAMES[name],
            f"{'' if measured else '~'}{seconds:.2f}",
            f"{'' if measured else '~'}{1e9 * seconds / n:.0f}",
            f"{floors:.2f}" if floors else "",
            ratio(*python) if python[0] and name not in (*PYTHON.values(), NAIVE) else "",
            ratio(*naive) if naive[0] and name != NAIVE else "",
        ]
        figures = size.contenders.get(name)
        cells.append(f"{size.peak_bytes(name) / n:.0f}" if figures else "")
        cells.append(f"{figures.read_bytes / n:.0f}" if figures and figures.read_bytes else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def machine_line(run: Run) -> str:
    """What it was measured on, and the sizes of the export and the dict file."""
    about = run.machine
    size = run.sizes[-1]
    return (
        f"{about['processor']}, {about['cores']} cores, Python {about['python']}, SQLite "
        f"{about['sqlite']}, commit {about['commit']}; export {size.export_bytes / 1e6:.0f} MB, "
        f"dict file {size.dict_bytes / 1e6:.0f} MB, both in the file cache. `~`: from the largest "
        "size that was measured, in proportion."
    )


def put_into(readme: Path, text: str) -> None:
    """Put a text between the two marks of a file."""
    before, begin, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{readme}: no lines {BEGIN} and {END} to put the table between")
    readme.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench publish", description=__doc__)
    parser.add_argument("figures", type=Path, nargs="?", default=ROOT / "bench" / "figures.json")
    parser.add_argument("--plot", type=Path, default=ROOT / "docs" / "bench.png")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    options = parser.parse_args()
    run = Run.read(options.figures)
    put_into(options.readme, f"{table(run)}\n\n{machine_line(run)}")
    try:
        plot(run, options.plot)
    except NoPlotError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
