"""Where ranges go: to the NVTX tool that is attached, and to torch.profiler while it records."""

from __future__ import annotations

import re
from collections.abc import Callable

import nvtx
import torch
from torch.autograd import profiler

from fastprof._core import _ranges

_connected = False


def connect() -> None:
    """Find out who may listen. An NVTX tool attaches once, when a program first uses NVTX."""
    global _connected
    if _connected:
        return
    domain = nvtx.get_domain()
    attached = type(domain).__name__ != "DummyDomain"
    _ranges.connect(
        domain if attached else None,
        vars(profiler),
        _is_recording,
        _recorder(),
        recordable,
        _plain() if attached else None,
    )
    _connected = True


def _is_recording() -> bool:
    """Whether torch.profiler records; under emit_nvtx ranges go to NVTX without its help."""
    return int(torch._C._autograd._profiler_type()) not in _ELSEWHERE


_KINDS = torch._C._profiler.ActiveProfilerType
_ELSEWHERE = {int(_KINDS.NONE), int(_KINDS.NVTX), int(_KINDS.ITT)}  # enums hash slowly


def _recorder() -> Callable[[str], object]:
    """record_function in its cheap form, where torch has it (3 against 14 us a range)."""
    fast = getattr(torch._C._profiler, "_RecordFunctionFast", None)
    recorder: Callable[[str], object] = profiler.record_function if fast is None else fast
    return recorder


def recordable(text: str) -> str:
    """The text of a range as torch.profiler can write it into its JSON, which escapes nothing.

    A quoted text that holds apostrophes (`"mode='same'"`) gets ` in their place, so that the
    literal stays one; other double quotes and backslashes become ` and /.
    """
    if '"' not in text and "\\" not in text:
        return text
    text = _DOUBLE_QUOTED.sub(lambda match: "'" + match[1].replace("'", "`") + "'", text)
    return text.replace('"', "`").replace("\\", "/")


_DOUBLE_QUOTED = re.compile(r'"([^"\\]*)"')


def _plain() -> Callable[[str], object] | None:
    """What pushes a text without registering it: torch's own NVTX, in its CUDA builds."""
    if torch.version.cuda is None:
        return None
    from torch.cuda import nvtx as of_torch

    push: Callable[[str], object] = of_torch.range_push
    return push
