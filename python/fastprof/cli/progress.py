"""Progress bars, warnings and summaries on stderr."""

from __future__ import annotations

import sys
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from fastprof.model.names import printable

if TYPE_CHECKING:
    from fastprof.api.profile import Profile


class Bar:
    """A progress bar for each table; prints nothing unless stderr is a terminal."""

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
        """Show that `rows` of about `total` rows of `what` are read.

        With `total` 0 or less, print the name `what` once.
        """
        if sys.stderr is None or not sys.stderr.isatty():
            return
        if total <= 0:
            if what != self._what:
                self._what = what
                log(f"{what} ...")
            return
        if what != self._what:
            from tqdm import tqdm

            self.__exit__(None, None, None)
            self._what = what
            self._bar = tqdm(
                total=total, desc=printable(what), unit="", unit_scale=True, delay=1, leave=False
            )
        self._bar.update(max(0, rows - self._bar.n))


def log(message: str) -> None:
    """Print one line on stderr, control characters replaced; does nothing if stderr is closed."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"fastprof: {printable(message)}", file=sys.stderr)


def log_profile(profile: Profile) -> None:
    """Print the warnings, kernel count and coverage of a profile on stderr."""
    for warning in profile.warnings:
        log(f"warning: {warning}")
    if sys.stderr is None:
        return
    with suppress(OSError):
        if len(profile) == 0:
            print("Found 0 kernels. Exiting.", file=sys.stderr)
        else:
            print(f"Found {len(profile)} kernels. {profile.coverage}", file=sys.stderr)
    if profile.graph_capture is not None:
        log(f"{profile.graph_capture}")
