"""Backends of a capture: NVTX ranges and a window for Nsight Systems, or torch.profiler."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Protocol

import torch
from torch.autograd.profiler import emit_nvtx
from torch.cuda import nvtx, profiler

from fastprof.annotate.channels import tool_domain
from fastprof.annotate.session import is_on
from fastprof.errors import CaptureError
from fastprof.model.metadata import UNRECORDED
from fastprof.runs.settings import CAPTURE_DOMAIN, CAPTURE_RANGE

DEFAULT_PATH: Final = "fastprof_trace.json.gz"
_SUFFIXES: Final = (".json", ".json.gz")
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
        self,
        schedule: tuple[int, int, int],
        path: str | os.PathLike[str] | None,
        with_stack: bool | None,
    ) -> None:
        """Check the arguments; `schedule` is (wait, warmup, active) iterations.

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
        self,
        schedule: tuple[int, int, int],
        path: str | os.PathLike[str] | None,
        with_stack: bool | None,
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
        # nsys keeps no such facts: `fastprof run` keeps them beside the trace.
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

    def end(self, keep: bool) -> None:
        self._on.close()


class RangesRecorder:
    """fastprof's ranges, and a window for `nsys --capture-range=nvtx`; works without CUDA."""

    def __init__(
        self,
        schedule: tuple[int, int, int],
        path: str | os.PathLike[str] | None,
        with_stack: bool | None,
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

    def end(self, keep: bool) -> None:
        self._on.close()


class TorchRecorder:
    """torch.profiler and the trace it exports."""

    def __init__(
        self,
        schedule: tuple[int, int, int],
        path: str | os.PathLike[str] | None,
        with_stack: bool | None,
    ) -> None:
        self.unrecorded: dict[str, Any] | None = None
        self._asked = Path(DEFAULT_PATH if path is None else os.fsdecode(path))
        if not self._asked.name.endswith(_SUFFIXES):
            raise CaptureError(f"{self._asked}: expected a name ending in .json or .json.gz")
        self._schedule = schedule
        self._with_stack = with_stack
        self._on = ExitStack()

    def prepare(self, rank: int, world: int) -> None:
        self._path = _path_of_rank(self._asked, rank, world).absolute()
        folder = self._path.parent
        if self._path.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            why = "it is a directory" if self._path.is_dir() else f"{folder} is not writable"
            raise CaptureError(f"{self._path}: cannot save the trace: {why}; set path=")
        self._on = ExitStack()
        with_stack = not is_on() if self._with_stack is None else bool(self._with_stack)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "won't be using warmup"
            schedule = torch.profiler.schedule(
                wait=self._schedule[0], warmup=self._schedule[1], active=self._schedule[2], repeat=1
            )
        self._profile = torch.profiler.profile(
            activities=activities(),
            schedule=schedule,
            record_shapes=True,
            with_stack=with_stack,
            with_modules=with_stack,
        )
        self._is_started = self._is_recorded = False

    def enter(self, iteration: int, is_on: bool, is_recorded: bool) -> None:
        if is_recorded and not self._is_recorded:
            synchronize()
        if self._is_started:
            self._profile.step()
        else:
            self._profile.step_num = iteration
            _turned_on(self._on, self._profile)
            self._is_started = True
        if is_recorded and not self._is_recorded:
            if self.unrecorded is not None:
                self._profile.add_metadata_json(UNRECORDED, json.dumps(self.unrecorded))
            self._on.callback(synchronize)
            self._is_recorded = True

    def end(self, keep: bool) -> Path | None:
        self._on.close()
        if keep:
            save(self._profile, self._path)
        del self._profile  # frees the recorded events
        return self._path if keep else None


RECORDERS: Final[dict[str, type[Recorder]]] = {"nvtx": NvtxRecorder, "torch": TorchRecorder}


def activities() -> list[torch.profiler.ProfilerActivity]:
    """What torch.profiler records: the CPU, and GPUs if there are any."""
    kinds = torch.profiler.ProfilerActivity
    return [kinds.CPU, kinds.CUDA] if torch.cuda.is_available() else [kinds.CPU]


def synchronize() -> None:
    """Wait for the GPUs in use by this process, without creating contexts on others."""
    if not torch.cuda.is_available() or not torch.cuda.is_initialized():
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


def _turned_on(stack: ExitStack, context: emit_nvtx | torch.profiler.profile) -> None:
    why = "is already active" if torch.autograd._profiler_enabled() else None
    try:
        if why is None:
            stack.enter_context(context)
    except RuntimeError as error:
        why = f"cannot start: {str(error).splitlines()[0]}"
    if why is not None:
        raise CaptureError(
            f"PyTorch's profiler {why}; do not use emit_nvtx or torch.profiler around "
            "fastprof.capture"
        )


def _path_of_rank(path: Path, rank: int, world: int) -> Path:
    if world <= 1:
        return path
    suffix = next(suffix for suffix in reversed(_SUFFIXES) if path.name.endswith(suffix))
    return path.with_name(f"{path.name.removesuffix(suffix)}.rank{rank}{suffix}")


def save(profile: torch.profiler.profile, path: Path) -> None:
    """Write the trace to a .json or .json.gz file: temporary files in its folder, then renamed.

    Raises
    ------
    CaptureError
        It cannot be written.
    """
    plain = path.with_name(f".{path.name}.{os.getpid()}.json")
    packed = path.with_name(f".{path.name}.{os.getpid()}.gz")
    try:
        profile.export_chrome_trace(str(plain))
        if path.suffix == ".gz":
            with open(plain, "rb") as text, gzip.open(packed, "wb", _COMPRESSION) as out:
                shutil.copyfileobj(text, out, 1 << 20)
        os.replace(packed if path.suffix == ".gz" else plain, path)
    except OSError as error:
        raise CaptureError(f"{path}: cannot save the trace: {error.strerror}") from error
    finally:
        for left in (plain, packed):
            left.unlink(missing_ok=True)
