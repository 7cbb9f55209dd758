"""Checks that no kernel and no GPU time is lost or counted twice: sums that must agree.

Every run makes the cheap checks (a few ms per million kernels). `--check` adds the others, and
compares with an independent count of the file (profile/recount).
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from fastprof._core import _path
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof._version import __version__
from fastprof.errors import CheckError
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Ints, Values


@dataclass()
class Totals:
    """GPU work by kind (kernel, graph, memcpy, memset): number of rows and GPU time in ns.

    `unsure` is the number of rows with an impossible duration, which may or may not count.
    """

    rows: dict[str, int] = field(default_factory=dict)
    time: dict[str, int] = field(default_factory=dict)
    unsure: int = 0

    def add(self, kind: str, rows: int, time: int) -> None:
        """Add work of a kind; kinds without rows are left out."""
        if rows:
            self.rows[kind] = self.rows.get(kind, 0) + rows
            self.time[kind] = self.time.get(kind, 0) + time

    def __str__(self) -> str:
        rows = " and ".join(f"{n} {kind} rows" for kind, n in self.rows.items()) or "no rows"
        return f"{rows}, {sum(self.time.values()) / 1e6:.3f} ms"


def totals_of(kind: Values, duration: Ints, unsure: int = 0) -> Totals:
    """Sum the rows of a report."""
    totals = Totals(unsure=unsure)
    for number, name in enumerate(kind.values):
        time = duration.values[kind.ids == number]
        known = time[time > 0].astype(np.uint64)
        halves = int((known >> 32).sum()), int((known & 0xFFFFFFFF).sum())  # the sum may not fit
        totals.add(name, len(time), (halves[0] << 32) + halves[1])
    return totals


def mistake(name: str, what: str, expected: object, found: object) -> CheckError:
    """The error for two numbers that differ."""
    import platform

    return CheckError(
        f"{name}: {what}: expected {expected}, found {found}. This is a mistake in fastprof, and "
        "the report would be wrong: please report this line, what recorded the trace, its version "
        "and the first lines of `fastprof info`; not the trace itself "
        f"(fastprof {__version__}, Python {platform.python_version()}, numpy {np.__version__}, "
        f"{platform.system()} {platform.machine()})"
    )


def tree(
    name: str, node_parent: Int32, node_of_frame: Int32, frame_parent: Int32, node_of_kernel: Int32
) -> None:
    """Check that frames and kernels refer to the right nodes of the call-path tree. Linear.

    Raises
    ------
    CheckError
    """
    wrong = _path.misplaced(frame_parent, node_of_frame, node_parent)
    if wrong < 0:
        raise mistake(name, "call-path tree", "parents before children", "another order")
    if wrong:
        raise mistake(name, "ranges whose path is not one longer than their parent's", 0, wrong)
    most = int(node_of_kernel.max(initial=-1))
    if most >= len(node_parent):
        raise mistake(name, "paths of kernels", f"less than {len(node_parent)}", most)


def inclusive(name: str, frame_of_kernel: Int32, time: Int64, found: Any) -> None:
    """Check the inclusive sums of each path: along frames and along nodes they must agree.

    found : Attribution, whose frames and nodes are summed

    Raises
    ------
    CheckError
    """
    n_frames, n_nodes = len(found.frame_parent), len(found.node_parent)
    node_of_kernel = take(found.node_of_frame, frame_of_kernel)
    for what, weight in (("kernels", np.ones(len(time), np.int64)), ("ns", time)):
        by_frame = _path.sums(found.frame_parent, _own(frame_of_kernel, weight, n_frames))
        by_node = _path.sums(found.node_parent, _own(node_of_kernel, weight, n_nodes))
        of_frames = _own(found.node_of_frame, by_frame, n_nodes)
        differ = np.flatnonzero(of_frames != by_node)
        if len(differ):
            path = differ[0]
            where = f"{what} of path {path} and its descendants"
            raise mistake(name, where, int(of_frames[path]), int(by_node[path]))
        outermost = np.append(by_node[found.node_parent < 0], weight[frame_of_kernel < 0]).sum()
        if outermost != weight.sum():
            raise mistake(name, f"{what} over all paths", int(weight.sum()), int(outermost))


def _own(place: Int32, weight: Int64, n: int) -> Int64:
    """Sum the weights at each of n places; place -1 does not count."""
    out = np.zeros(n + 1, np.int64)
    np.add.at(out, place, weight)
    return out[:n]


def shares(what: str, expected: int, found: int) -> None:
    """Check that the shares of the kernels add up to the cost of their calls.

    Raises
    ------
    CheckError
    """
    if expected != found:
        raise mistake(what, "sum over kernels differs from sum over calls", expected, found)


def same(name: str, file: Totals, report: Totals) -> None:
    """Check that the report contains the work of the file, no less and no more.

    Raises
    ------
    CheckError
    """
    if file.rows != report.rows:
        raise mistake(name, "rows", file.rows, report.rows)
    if not report.unsure and file.time != report.time:
        raise mistake(name, "ns of GPU time", file.time, report.time)
