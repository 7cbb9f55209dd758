"""A progress bar on a terminal for what takes over a second, and the lines on stderr."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastprof.profile.profile import Profile


class Bar:
    """One bar after another, one for each table that is read. Nothing if stderr is no terminal."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._what = ""

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, what: str, rows: int, total: int) -> None:
        """Say that `rows` of about `total` of `what` are read; without a total, `what`."""
        if sys.stderr is None or not sys.stderr.isatty():
            return
        if total <= 0:
            if what != self._what:
                self._what = what
                tell(f"{what} ...")
            return
        if what != self._what:
            from tqdm import tqdm

            self.__exit__(None, None, None)
            self._what = what
            self._bar = tqdm(total=total, desc=what, unit="", unit_scale=True, delay=1, leave=False)
        self._bar.update(max(0, rows - self._bar.n))


def tell(message: str) -> None:
    """A line on stderr, whatever is in the message; nothing if stderr is closed."""
    if sys.stderr is not None:
        with suppress(OSError):
            line = "".join(c if c.isprintable() else " " for c in message)
            print(f"fastprof: {line}", file=sys.stderr)


def add_check(parser: argparse.ArgumentParser) -> None:
    """The option after which what `Profile.check` finds is said."""
    parser.add_argument(
        "--check",
        action="store_true",
        help="count the file again by simpler means, and compare; where it differs, the exit code "
        "is 3",
    )


def add_graph_capture(parser: argparse.ArgumentParser) -> None:
    """The option that says where the captures of graphs are."""
    parser.add_argument(
        "--graph-capture",
        metavar="TRACE",
        action="append",
        default=[],
        help="a trace recorded while CUDA or HIP graphs were captured, or a directory of these: "
        "kernels of these graphs take operator, shapes, layer and line from there",
    )


def add_mine(parser: argparse.ArgumentParser) -> None:
    """The option that says which source files are the user's own."""
    parser.add_argument(
        "--mine",
        metavar="GLOB",
        type=_glob,
        action="append",
        default=[],
        help="source files or folders that are yours, for the column line; may be given again "
        "(default: what no package and no interpreter brings along)",
    )


def _glob(text: str) -> str:
    if not text.strip("./\\"):
        raise argparse.ArgumentTypeError(f"expected a file or folder, as src/*, found {text!r}")
    return text


def say(profile: Profile) -> None:
    """Counts, coverage and warnings of a profile, on stderr."""
    for warning in profile.warnings:
        tell(f"warning: {warning}")
    if sys.stderr is None:
        return
    with suppress(OSError):
        if len(profile) == 0:
            print("Found 0 kernels. Exiting.", file=sys.stderr)
        else:
            print(f"Found {len(profile)} kernels. {profile.coverage}", file=sys.stderr)
    if profile.graph_capture is not None:
        tell(f"{profile.graph_capture}")
