"""Notebooks: `%load_ext fastprof` defines the cell magic `%%fastprof`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import Module

from fastprof._core import _hooks
from fastprof._core._layers import Enter
from fastprof.annotate.layers import Layers, annotate_layers
from fastprof.annotate.program.layers import annotate_all
from fastprof.annotate.program.modules import Outermost
from fastprof.annotate.quiet import unwarned
from fastprof.annotate.recorders import activities, save, synchronize
from fastprof.annotate.session import init, is_on
from fastprof.api.open import open_trace
from fastprof.errors import CaptureError
from fastprof.runs.directory import new_directory, write_facts
from fastprof.runs.facts import facts_of

if TYPE_CHECKING:
    from fastprof.api.profile import Profile


def load_ipython_extension(shell: Any) -> None:
    """Define `%%fastprof` in an IPython shell; `%load_ext fastprof` calls it."""

    def fastprof(line: str, cell: str) -> Profile | None:
        """%%fastprof [NAME]: record the cell with torch.profiler and return its Profile."""
        return recorded_cell(shell, line.strip() or "notebook", cell)

    shell.register_magic_function(fastprof, "cell", "fastprof")


def recorded_cell(shell: Any, name: str, cell: str) -> Profile | None:
    """Run a cell, record it, and open the trace; None if the cell failed.

    The trace is kept in `fastprof-runs/NAME-DATE`, as those of `fastprof run`.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
    name : of the run
    cell : source

    Raises
    ------
    CaptureError
        PyTorch's profiler is already active, or the trace cannot be written.
    BadInputError
        The directory cannot be created.
    """
    if torch.autograd._profiler_enabled():
        raise CaptureError("PyTorch's profiler is already active; end it before the cell")
    with unwarned():
        profiler = torch.profiler.profile(activities=activities(), record_shapes=True)
    with ExitStack() as on:
        _annotate(on)
        synchronize()
        with unwarned():
            on.enter_context(profiler)
        result = shell.run_cell(cell)
        synchronize()
    if not result.success:
        return None  # IPython has shown the error
    directory = new_directory(name)
    write_facts(directory, facts_of(["%%fastprof"], []))
    save(profiler, directory / "trace.json.gz")
    return open_trace(str(directory / "trace.json.gz"), copies=True)


def _annotate(on: ExitStack) -> None:
    """Annotate torch and all modules, those that the cell makes too, until `on` closes."""
    was_on = is_on()
    init()
    on.callback(_hooks.annotate, was_on)
    layers = annotate_all((), ())

    def found(module: Module) -> None:
        if not any(map(_has_layer, module.modules())):
            layers.append(annotate_layers(module))

    outermost = Outermost(_ignored, found)
    outermost.look()
    on.callback(_remove, layers)
    on.callback(outermost.close)


def _remove(layers: list[Layers]) -> None:
    for layer in layers:
        layer.remove()


def _has_layer(module: Module) -> bool:
    return any(type(hook) is Enter for hook in module._forward_pre_hooks.values())


def _ignored(_: Module) -> None:
    """Steps are found in the trace."""
