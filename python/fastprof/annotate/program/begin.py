"""Begins to watch a program; `sitecustomize` calls it once torch is imported."""

from __future__ import annotations

import atexit

from fastprof.annotate.program.compiled import keep_layers
from fastprof.annotate.program.layers import LayerAnnotation, annotate_graphs
from fastprof.annotate.program.program import RecordedProgram
from fastprof.runs.facts import from_environment


def begin() -> None:
    """Annotate torch, without ranges until a recording begins, and watch for steps."""
    settings = from_environment()
    if settings is None:
        return
    keep_layers()
    annotate_graphs()
    program = RecordedProgram(settings, LayerAnnotation(settings.functions))
    atexit.register(program.ended)
    program.begin()
