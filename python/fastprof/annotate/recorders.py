"""Backends of a capture: NVTX ranges and a window for Nsight Systems, or torch.profiler."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, Protocol

import torch
from torch.autograd.profiler import emit_nvtx
from torch.cuda import nvtx, profiler

from fastprof._core import _ranges
from fastprof._system.reasons import words_of
from fastprof.annotate import TORCH, gpus
from fastprof.annotate.quiet import unwarned
from fastprof.annotate.roctx import roctx_domain
from fastprof.annotate.session import is_on
from fastprof.annotate.text import tool_domain
from fastprof.errors import CaptureError
from fastprof.model.markers.annotations import MODULES_OF_TORCH
from fastprof.model.metadata import GRAPH_ANNOTATIONS, UNRECORDED
from fastprof.runs.facts import CAPTURE_DOMAIN, CAPTURE_RANGE

DEFAULT_PATH: Final = "fastprof_trace.json.gz"
_SUFFIXES: Final = (".json", ".json.gz")
_NO_OTHER: Final = "do not use emit_nvtx or torch.profiler around fastprof.capture"
_NO_MODULES: Final = (2, 15)  # torch that warns of with_modules, which is for TorchScript only
_END: Final = 1 << 16  # bytes at the end of a trace
_COMPRESSION: Final = 4  # low, because the training loop waits


class Recorder(Protocol):
    """A backend. The caller keeps the schedule.

    Attributes
    ----------
    unrecorded : dict or None
        What to keep in the trace about the steps before, see `UnrecordedSteps.facts`; set before
        the first recorded iteration.
    """

    unrecorded: dict[str, Any] | None

    def __init__(
        self, path: str | os.PathLike[str] | None = None, with_stack: bool | None = None
    ) -> None:
        """Check the arguments.

        Raises
        ------
        CaptureError
            An argument is invalid, or a requirement is missing.
        """

    def prepare(self, rank: int, world: int) -> None:
        """Called before the first iteration."""

    def enter(self, iteration: int, is_on: bool, is_recorded: bool) -> None:
        """Called before each iteration: profiler enabled or not, recording or not."""

    def end(self, keep: bool) -> Path | None:
        """Disable the profiler, after any iteration. If `keep`, save and return the file."""


class NvtxRecorder:
    """NVTX ranges of operators, and a window for `nsys --capture-range=cudaProfilerApi`."""

    def __init__(
        self, path: str | os.PathLike[str] | None = None, with_stack: bool | None = None
    ) -> None:
        if path is not None:
            raise CaptureError(
                f"path={os.fsdecode(path)!r}: with backend='nvtx', nsys writes the file (nsys "
                "profile -o); omit path, or use backend='torch'"
            )
        if torch.version.hip is not None:
            raise CaptureError(
                "backend='nvtx' needs Nsight Systems, which does not support AMD GPUs; use "
                "backend='torch'"
            )
        if not torch.cuda.is_available():
            built = torch.version.cuda is not None
            why = "PyTorch finds no GPU" if built else "this PyTorch was built without it"
            raise CaptureError(f"backend='nvtx' needs CUDA, and {why}; use backend='torch'")
        self.unrecorded: dict[str, Any] | None = None
        self._on = ExitStack()
        self._is_on = self._is_recorded = False

    def prepare(self, rank: int, world: int) -> None:
        self._on = ExitStack()
        self._is_on = self._is_recorded = False

    def enter(self, iteration: int, is_on: bool, is_recorded: bool) -> None:
        if is_on and not self._is_on:
            _turned_on(self._on, emit_nvtx(record_shapes=True))
            self._is_on = True
        if not is_recorded:
            return
        if self._is_recorded:
            nvtx.range_pop()
        else:
            synchronize()
            profiler.start()
            self._on.callback(profiler.stop)
        nvtx.range_push(f"ProfilerStep#{iteration}")
        if not self._is_recorded:
            self._on.callback(nvtx.range_pop)
            self._on.callback(synchronize)
            self._is_recorded = True
            _mark(self.unrecorded)

    def end(self, keep: bool) -> None:
        self._on.close()


class RangesRecorder:
    """fastprof's ranges, and a window for `nsys --capture-range=nvtx`; works without CUDA."""

    def __init__(
        self, path: str | os.PathLike[str] | None = None, with_stack: bool | None = None
    ) -> None:
        default, own = tool_domain(), tool_domain(CAPTURE_DOMAIN)
        if default is None or own is None:
            raise CaptureError(
                "no NVTX tool is attached to this process; expected nsys to set "
                "NVTX_INJECTION64_PATH: pass the environment on to this process"
            )
        self.unrecorded: dict[str, Any] | None = None
        self._domain, self._own = default, own
        self._on = ExitStack()

    def prepare(self, rank: int, world: int) -> None:
        self._on = ExitStack()
        self._is_recorded = False

    def enter(self, iteration: int, is_on: bool, is_recorded: bool) -> None:
        if not is_recorded:
            return
        if self._is_recorded:
            self._domain.pop_range()
        else:
            window = self._own.get_event_attributes(message=CAPTURE_RANGE)
            self._on.callback(self._own.end_range, self._own.start_range(window))
        step = self._domain.get_event_attributes(message=f"ProfilerStep#{iteration}")
        self._domain.push_range(step)
        if not self._is_recorded:
            self._on.callback(self._domain.pop_range)
            self._is_recorded = True
            _mark(self.unrecorded)

    def end(self, keep: bool) -> None:
        self._on.close()


class RoctxRecorder:
    """fastprof's ranges, and torch's operators on AMD GPUs, in a window for `rocprofv3`.

    The window is that of `--selected-regions`.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, with_stack: bool | None = None
    ) -> None:
        domain = roctx_domain()
        if domain is None:
            raise CaptureError(
                "rocprofv3 is not attached to this process; expected the library of roctx in "
                "LD_PRELOAD: pass the environment on to this process"
            )
        self.unrecorded: dict[str, Any] | None = None
        self._domain = domain
        self._on = ExitStack()

    def prepare(self, rank: int, world: int) -> None:
        self._on = ExitStack()
        self._is_on = self._is_recorded = False

    def enter(self, iteration: int, is_on: bool, is_recorded: bool) -> None:
        if is_on and not self._is_on:
            if torch.version.hip is not None:  # the ranges of emit_nvtx are those of roctx there
                _turned_on(self._on, emit_nvtx(record_shapes=True))
            self._is_on = True
        if not is_recorded:
            return
        domain = self._domain
        if self._is_recorded:
            domain.pop_range()
        else:
            synchronize()
            domain.resume()
            self._on.callback(domain.pause)
        domain.push_range(domain.get_event_attributes(f"ProfilerStep#{iteration}"))
        if not self._is_recorded:
            self._on.callback(domain.pop_range)
            self._on.callback(synchronize)
            self._is_recorded = True

    def end(self, keep: bool) -> None:
        self._on.close()


def _mark(unrecorded: dict[str, Any] | None) -> None:
    """Keep facts in the recording of Nsight Systems, as a mark with a registered string."""
    domain = tool_domain(CAPTURE_DOMAIN)
    if domain is not None and unrecorded is not None:
        text = f"{UNRECORDED} {json.dumps(unrecorded)}"
        domain.mark(domain.get_event_attributes(message=text))


class TorchRecorder:
    """torch.profiler and the trace it exports."""

    def __init__(
        self, path: str | os.PathLike[str] | None = None, with_stack: bool | None = None
    ) -> None:
        self.unrecorded: dict[str, Any] | None = None
        self._asked = Path(DEFAULT_PATH if path is None else os.fsdecode(path))
        if not self._asked.name.endswith(_SUFFIXES):
            raise CaptureError(f"{self._asked}: expected a name ending in .json or .json.gz")
        self._with_stack = with_stack
        self._on = ExitStack()

    def prepare(self, rank: int, world: int) -> None:
        self._path = _path_of_rank(self._asked, rank, world).absolute()
        folder = self._path.parent
        if self._path.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            why = "it is a directory" if self._path.is_dir() else f"{folder} is not writable"
            raise CaptureError(f"{self._path}: cannot save the trace: {why}; set path=")
        self._on = ExitStack()
        self._action = torch.profiler.ProfilerAction.NONE
        with_stack = not is_on() if self._with_stack is None else bool(self._with_stack)
        with unwarned():
            self._profile: torch.profiler.profile | None = torch.profiler.profile(
                activities=self._activities(),
                schedule=lambda _: self._action,
                record_shapes=True,
                with_stack=with_stack,
                with_modules=with_stack and TORCH < _NO_MODULES,
                experimental_config=_with_collections() if with_stack else None,
            )
        _check_inactive()
        self._is_started = self._is_recorded = False

    def enter(self, iteration: int, is_on: bool, is_recorded: bool) -> None:
        profile = self._profile
        if not is_on or profile is None:
            return
        if is_recorded and not self._is_recorded:
            synchronize()
        action = torch.profiler.ProfilerAction
        self._action = action.RECORD if is_recorded else action.WARMUP
        _ranges.rehearse(not is_recorded)  # else the first recorded step would take longer
        with unwarned():
            if self._is_started:
                profile.step()
            else:
                # torch has asked for the action of the first step when the object was made.
                profile.step_num, profile.current_action = iteration, self._action
                _turned_on(self._on, profile)
                self._is_started = True
        if is_recorded and not self._is_recorded:
            if self.unrecorded is not None:
                profile.add_metadata_json(UNRECORDED, json.dumps(self.unrecorded))
            self._on.callback(synchronize)
            self._is_recorded = True

    def _activities(self) -> list[torch.profiler.ProfilerActivity]:
        return activities()

    def end(self, keep: bool) -> Path | None:
        profile, self._profile = self._profile, None  # frees the recorded events
        _ranges.rehearse(False)
        with unwarned():
            if keep and profile is not None and self._is_recorded:
                _add_graph_annotations(profile)
            self._on.close()
        if not keep or profile is None:
            return None
        save(profile, self._path)
        return self._path


def _with_collections() -> Any:
    """The setting that records Python's garbage collections; None if torch has none (before 2.9).

    torch records them with its tracer of Python functions, so only with stacks.
    """
    try:
        from torch._C._profiler import _ExperimentalConfig

        return _ExperimentalConfig(record_python_gc_info=True)
    except (ImportError, TypeError):
        return None


class InUseRecorder(TorchRecorder):
    """torch.profiler, of GPUs only if the program uses some by the time of `prepare`.

    To record GPUs, torch initialises CUDA, if the program has not.

    Attributes
    ----------
    is_start : whether the first use of a GPU belongs to what the user asked for, so that GPUs are
        recorded in any case
    """

    is_start = False

    def _activities(self) -> list[torch.profiler.ProfilerActivity]:
        return activities_in_use(self.is_start)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _ranges.rehearse(False))
RECORDERS: Final[dict[str, type[Recorder]]] = {"nvtx": NvtxRecorder, "torch": TorchRecorder}


def activities() -> list[torch.profiler.ProfilerActivity]:
    """What torch.profiler records: the CPU, and GPUs if there are any. May initialise CUDA.

    A fork of a process that uses CUDA cannot use it.
    """
    kinds = torch.profiler.ProfilerActivity
    has_gpu = torch.cuda.is_available() and not torch.cuda._is_in_bad_fork()
    return [kinds.CPU, kinds.CUDA] if has_gpu else [kinds.CPU]


def activities_in_use(may_begin: bool = False) -> list[torch.profiler.ProfilerActivity]:
    """The CPU, and GPUs if this process uses some already, or `may_begin` to."""
    kinds = torch.profiler.ProfilerActivity
    may_begin = may_begin and gpus.may_be_used() and not torch.cuda._is_in_bad_fork()
    return [kinds.CPU, kinds.CUDA] if may_begin or gpus.are_used() else [kinds.CPU]


def synchronize() -> None:
    """Wait for the GPUs in use by this process, without creating contexts on others."""
    if not torch.cuda.is_initialized():
        return
    current = torch.cuda.current_device()
    for device in range(torch.cuda.device_count()):
        if device == current or torch.cuda.memory_reserved(device) > 0:
            torch.cuda.synchronize(device)


def rank_and_world() -> tuple[int, int]:
    """Rank and world size, from torch.distributed or else from the launcher's environment."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    texts = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return (int(texts[0]), int(texts[1])) if all(text.isdecimal() for text in texts) else (0, 1)


def _check_inactive() -> None:
    if torch.autograd._profiler_enabled():
        raise CaptureError(f"PyTorch's profiler is already active; {_NO_OTHER}")


def _turned_on(stack: ExitStack, context: emit_nvtx | torch.profiler.profile) -> None:
    _check_inactive()
    try:
        stack.enter_context(context)
    except RuntimeError as error:
        why = str(error).splitlines()[0]
        raise CaptureError(f"PyTorch's profiler cannot start: {why}; {_NO_OTHER}") from error


def _path_of_rank(path: Path, rank: int, world: int) -> Path:
    if world <= 1:
        return path
    suffix = next(suffix for suffix in reversed(_SUFFIXES) if path.name.endswith(suffix))
    return path.with_name(f"{path.name.removesuffix(suffix)}.rank{rank}{suffix}")


def _add_graph_annotations(profile: torch.profiler.profile) -> None:
    """Add the annotations of CUDA graphs that the program has made so far to its trace."""
    modules = (sys.modules.get(name) for name in MODULES_OF_TORCH)
    for module in filter(None, modules):
        try:
            annotations = module.get_kernel_annotations()
            text = json.dumps({str(node): each for node, each in annotations.items()}, default=repr)
        except Exception:  # the program's own values; the trace is worth more than these
            continue
        if annotations:
            profile.add_metadata_json(GRAPH_ANNOTATIONS, text)
            return


def save(profile: torch.profiler.profile, path: Path) -> None:
    """Write the trace to a .json or .json.gz file: temporary files in its folder, then renamed.

    Raises
    ------
    CaptureError
        It cannot be written.
    """
    plain = path.with_name(f".{path.name}.{os.getpid()}.json")
    packed = path.with_name(f".{path.name}.{os.getpid()}.gz")
    partial = plain.with_name(f"{plain.name}.tmp")  # torch renames it when it is complete
    try:
        open(plain, "wb").close()  # torch prints errors instead of raising them
        with unwarned():
            profile.export_chrome_trace(str(plain))
        _check_complete(plain)
        if path.suffix == ".gz":
            with open(plain, "rb") as text, gzip.open(packed, "wb", _COMPRESSION) as out:
                shutil.copyfileobj(text, out, 1 << 20)
        os.replace(packed if path.suffix == ".gz" else plain, path)
    except OSError as error:
        raise CaptureError(f"{path}: cannot save the trace: {words_of(error)}") from error
    finally:
        for left in (plain, packed, partial):
            with suppress(OSError):
                left.unlink(missing_ok=True)


def _check_complete(plain: Path) -> None:
    """Raise the error that torch met when it wrote a file, since torch does not."""
    with open(plain, "rb") as file:
        file.seek(-min(_END, plain.stat().st_size), os.SEEK_END)
        if file.read().rstrip().endswith(b"}"):
            return
    with open(plain, "ab", buffering=0) as file:
        for _ in range(2):  # the first may be written in part
            file.write(bytes(_END))
    raise OSError(errno.EIO, "torch.profiler wrote it incompletely")
