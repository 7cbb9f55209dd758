"""Destinations of ranges: the attached NVTX tool, and torch.profiler while it records."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import nvtx
import torch
from torch.autograd import profiler

from fastprof._core import _ranges

_connected = False


def connect() -> None:
    """Detect an NVTX tool. It attaches once, at the program's first NVTX call."""
    global _connected
    if _connected:
        return
    domain = tool_domain()
    _ranges.connect(
        domain,
        vars(profiler),
        _is_recording,
        _recorder(),
        recordable,
        None if domain is None else _plain(),
    )
    _connected = True


def tool_domain(name: str | None = None) -> nvtx.Domain | None:
    """A domain of the attached NVTX tool, the default one without a name; None without a tool."""
    domain = nvtx.get_domain(name)
    if type(domain).__name__ != "DummyDomain":
        return domain
    if not os.environ.get("NVTX_INJECTION64_PATH"):
        return None
    # Nsight Systems 2022.4 and 2023.4 report every domain as disabled, but record its ranges.
    compiled = nvtx._lib.lib
    domain = object.__new__(compiled.Domain)
    domain.handle = compiled.DomainHandle(name)
    domain.__init__(name)
    return domain


def _is_recording() -> bool:
    """Whether torch.profiler records ranges itself; under emit_nvtx they go to NVTX directly."""
    return int(torch._C._autograd._profiler_type()) not in _ELSEWHERE


_KINDS = torch._C._profiler.ActiveProfilerType
_ELSEWHERE = {int(_KINDS.NONE), int(_KINDS.NVTX), int(_KINDS.ITT)}  # enums hash slowly


def _recorder() -> Callable[[str], object]:
    """The fast form of record_function if torch has it: 3 instead of 14 us per range."""
    fast = getattr(torch._C._profiler, "_RecordFunctionFast", None)
    recorder: Callable[[str], object] = profiler.record_function if fast is None else fast
    return recorder


def recordable(text: str) -> str:
    """Make a range's text safe for torch.profiler, which does not escape its JSON.

    In a double-quoted string, apostrophes become ` and the quotes become apostrophes: the text
    stays a Python literal. Other double quotes and backslashes become ` and /.
    """
    if '"' not in text and "\\" not in text:
        return text
    text = _DOUBLE_QUOTED.sub(lambda match: "'" + match[1].replace("'", "`") + "'", text)
    return text.replace('"', "`").replace("\\", "/")


_DOUBLE_QUOTED = re.compile(r'"([^"\\]*)"')


def _plain() -> Callable[[str], object] | None:
    """torch's NVTX push, which does not register the string; None in builds without CUDA."""
    if torch.version.cuda is None:
        return None
    from torch.cuda import nvtx as of_torch

    push: Callable[[str], object] = of_torch.range_push
    return push
