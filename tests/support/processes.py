"""Programs that tests start: their output is text, and none outlasts the patience of the tests."""

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from support.waiting import PATIENCE


def ran(
    command: Sequence[str | os.PathLike[str]], **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Run a command to its end and return what `subprocess.run` does, with its output as text.

    `options` are those of `subprocess.run`; text=False gives bytes.
    """
    defaults = {"capture_output": True, "text": True, "timeout": PATIENCE}
    return subprocess.run(command, **(defaults | options))


def python(*words: str | os.PathLike[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    """`ran`, by this Python."""
    return ran([sys.executable, *words], **options)
