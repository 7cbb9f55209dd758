"""Attribute the GPU time of a PyTorch run to operators, layers and source lines.

>>> import fastprof
>>> profile = fastprof.open("net.sqlite")   # doctest: +SKIP
>>> profile.kernels["sil"].sum()            # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fastprof._system.garbage import uncollected
from fastprof._version import __version__
from fastprof.errors import (
    AnnotateError,
    BadInputError,
    CaptureError,
    CheckError,
    FastprofError,
    InternalError,
    MissingDependencyError,
    NotEnoughMemoryError,
    OpError,
    ReportError,
    StepsError,
    UnknownColumnError,
)

if TYPE_CHECKING:
    from fastprof.analysis.advice.finding import CannotJudge, Finding
    from fastprof.analysis.advice.registry import rule
    from fastprof.analysis.memory.snapshot import memory_snapshot
    from fastprof.analysis.registry import Option, report
    from fastprof.annotate.capture import capture
    from fastprof.annotate.layers import annotate_layers, layer
    from fastprof.annotate.session import init, uninit
    from fastprof.annotate.timer import timer, timings
    from fastprof.annotate.wrap import wrap
    from fastprof.api.batch import Batch, batch
    from fastprof.api.diff import Diff, diff
    from fastprof.api.open import open
    from fastprof.api.profile import Profile
    from fastprof.model.call import Tensor, Unknown
    from fastprof.ops import CannotModel, Cost, op

__all__ = [
    "AnnotateError",
    "BadInputError",
    "Batch",
    "CannotJudge",
    "CannotModel",
    "CaptureError",
    "CheckError",
    "Cost",
    "Diff",
    "FastprofError",
    "Finding",
    "InternalError",
    "MissingDependencyError",
    "NotEnoughMemoryError",
    "OpError",
    "Option",
    "Profile",
    "ReportError",
    "StepsError",
    "Tensor",
    "Unknown",
    "UnknownColumnError",
    "__version__",
    "annotate_layers",
    "batch",
    "capture",
    "diff",
    "init",
    "layer",
    "memory_snapshot",
    "op",
    "open",
    "report",
    "rule",
    "timer",
    "timings",
    "uninit",
    "wrap",
]

_HOMES = {
    "Batch": "fastprof.api.batch",
    "CannotJudge": "fastprof.analysis.advice.finding",
    "CannotModel": "fastprof.ops",
    "Cost": "fastprof.ops",
    "Diff": "fastprof.api.diff",
    "Finding": "fastprof.analysis.advice.finding",
    "Option": "fastprof.analysis.registry",
    "Profile": "fastprof.api.profile",
    "Tensor": "fastprof.model.call",
    "Unknown": "fastprof.model.call",
    "annotate_layers": "fastprof.annotate.layers",
    "batch": "fastprof.api.batch",
    "capture": "fastprof.annotate.capture",
    "diff": "fastprof.api.diff",
    "init": "fastprof.annotate.session",
    "layer": "fastprof.annotate.layers",
    "load_ipython_extension": "fastprof.annotate.notebook",
    "memory_snapshot": "fastprof.analysis.memory.snapshot",
    "op": "fastprof.ops",
    "open": "fastprof.api.open",
    "report": "fastprof.analysis.registry",
    "rule": "fastprof.analysis.advice.registry",
    "timer": "fastprof.annotate.timer",
    "timings": "fastprof.annotate.timer",
    "uninit": "fastprof.annotate.session",
    "wrap": "fastprof.annotate.wrap",
}

_OPTIONAL = ("torch", "nvtx")  # annotation needs them, reading traces does not


if not TYPE_CHECKING:  # to type checkers, a name that is not imported above is an error

    def __getattr__(name: str) -> object:
        """Import public names on first use: `--help` needs neither numpy nor the compiled core."""
        if name in _HOMES:
            try:
                with uncollected():
                    value: object = getattr(import_module(_HOMES[name]), name)
            except ModuleNotFoundError as error:
                if error.name not in _OPTIONAL:
                    raise
                raise MissingDependencyError(
                    f"fastprof.{name} needs {error.name}, which is not installed; run: pip install "
                    "'fastprof[torch]'"
                ) from error
            # torch.compile of torch 2.3 finds no other names in a module.
            globals()[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
