"""Repeats programs of several ranks that gloo crashes.

gloo's threads in torch 2.13 crash some 5 % of all programs at their end, also without fastprof.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

CRASH = "terminate called without an active exception"
ATTEMPTS = 3
Result = TypeVar("Result")


def repeated(
    run: Callable[[Path], Result], errors: Callable[[Result], str], folder: Path
) -> tuple[Path, Result]:
    """Run a program until gloo does not crash it, each time in a new directory below `folder`.

    Returns the last directory and `run(directory)`; `errors` returns the stderr of a result.
    """
    for attempt in range(ATTEMPTS):
        root = folder / str(attempt)
        root.mkdir()
        result = run(root)
        if CRASH not in errors(result):
            break
    return root, result
