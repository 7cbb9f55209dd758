"""Begins to watch a program; `sitecustomize` calls it once torch is imported."""

from __future__ import annotations

import atexit

from fastprof._core import _hooks
from fastprof.annotate.program.program import Program
from fastprof.annotate.session import init
from fastprof.runs.settings import from_environment


def begin() -> None:
    """Annotate torch, without ranges until a recording begins, and watch for steps."""
    settings = from_environment()
    if settings is None:
        return
    init(settings.functions)
    _hooks.annotate(False)
    program = Program(settings)
    program.watch()
    atexit.register(program.ended)
