"""Attribute the GPU time of a PyTorch run to operators, layers and source lines.

    profile = fastprof.open("net.sqlite")        # Nsight Systems, torch.profiler, NVProf
    profile                                      # the answer, the GPUs, the step
    profile.overview()                           # the first screen of `fastprof net.sqlite`
    profile.layers(depth=2)                      # a Table: layers, lines, steps, idle, ...
    profile.summary(by=["op", "shape"])[:10]     # by any keys; docs/reports.md lists them
    profile.advise()                             # what to change, and what it saves
    profile.kernels["sil"].sum()                 # every kernel, as columns; .to_pandas()
    profile.report().save("net.html")            # all reports and charts, as a page

    fastprof.diff("before.sqlite", "after.sqlite")   # what changed, and why
    fastprof.batch("traces/")                        # many traces, or the ranks of a run

    fastprof.init()                              # annotates a program that nsys records
    with fastprof.capture(wait=10) as cap: ...   # records one iteration; or: fastprof run train.py

`help(fastprof.open)` and so on say more. `fastprof --help` lists the commands.
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
    from fastprof.api.history import History, open_history
    from fastprof.api.open import open
    from fastprof.api.profile import Profile
    from fastprof.api.ranks import Ranks, RanksError, open_ranks
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
    "History",
    "InternalError",
    "MissingDependencyError",
    "NotEnoughMemoryError",
    "OpError",
    "Option",
    "Profile",
    "Ranks",
    "RanksError",
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
    "open_history",
    "open_ranks",
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
    "History": "fastprof.api.history",
    "Option": "fastprof.analysis.registry",
    "Profile": "fastprof.api.profile",
    "Ranks": "fastprof.api.ranks",
    "RanksError": "fastprof.api.ranks",
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
    "open_history": "fastprof.api.history",
    "open_ranks": "fastprof.api.ranks",
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
                raise _MissingName(
                    f"fastprof.{name} needs {error.name}, which is not installed; run: pip install "
                    "'fastprof[torch]'"
                ) from error
            # torch.compile of torch 2.3 finds no other names in a module.
            globals()[name] = value
            return value
        from fastprof.model.heading import unknown_name

        raise AttributeError(unknown_name(f"name of {__name__}", name, __all__))

    def __dir__() -> list[str]:
        return __all__


class _MissingName(MissingDependencyError, AttributeError):
    """`help` and completion skip a name that needs a package which is not installed."""
