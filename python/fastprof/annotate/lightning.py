"""A Lightning profiler that captures a few batches: `Trainer(profiler=FastprofProfiler())`.

Counts and times named actions, in any thread.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastprof._core._layers import enter, leave
from fastprof._core._ranges import Marker
from fastprof.annotate import text as channels
from fastprof.annotate.capture import Capture, capture
from fastprof.annotate.layers import annotate_layers
from fastprof.annotate.session import init
from fastprof.annotate.timings import Timing, Timings
from fastprof.errors import CaptureError, FastprofError, MissingDependencyError

if TYPE_CHECKING:
    from lightning.pytorch.profilers import Profiler


# Lightning's two distributions.
_PACKAGES: Final = ("lightning.pytorch", "pytorch_lightning")


def _profiler_class() -> Any:
    """Lightning's base class; if both distributions are installed, from the imported one."""
    for package in sorted(_PACKAGES, key=lambda name: name not in sys.modules):
        try:
            return import_module(f"{package}.profilers").Profiler
        except ModuleNotFoundError as error:
            if error.name is None or not package.startswith(error.name.partition(".")[0]):
                raise
    raise MissingDependencyError(
        "FastprofProfiler needs Lightning, which is not installed; run: pip install "
        "'fastprof[lightning]'"
    )


if not TYPE_CHECKING:
    Profiler = _profiler_class()

# The actions at which a batch of a stage begins and ends: fetching it, or the first hook if the
# step fetches the batch itself; and the last hook.
_BATCHES: Final = {
    "train": ((".train_dataloader_next", ".on_train_batch_start"), ".on_train_batch_end"),
    "validate": ((".val_next", ".on_validation_batch_start"), ".on_validation_batch_end"),
    "test": ((".test_next", ".on_test_batch_start"), ".on_test_batch_end"),
    "predict": ((".predict_next", ".on_predict_batch_start"), ".on_predict_batch_end"),
}
_BEGINNINGS: Final = tuple(name for names, _ in _BATCHES.values() for name in names)
_OF_MODULE: Final = "[LightningModule]"  # hooks are also called for callbacks
# Encloses batches, and so would overlap a capture's ranges, which begin and end with batches.
_WITHOUT_RANGE: Final = "run_training_epoch"
_MOST_ROWS: Final = 20


class FastprofProfiler(Profiler):  # type: ignore[misc]  # Lightning is untyped
    """Captures a few batches of a stage, with annotations, layers and Lightning's actions.

    Parameters
    ----------
    dirpath : path, optional
        Local directory for the trace; default: the logger's directory.
    filename : str, optional
        Name of the trace without suffix: `fit-NAME.json.gz`, plus the rank if there are several.
        The summary is written to `fit-NAME.txt`; without a name it is logged.
    stage : {"train", "validate", "test", "predict"}
        The stage to count and capture. Validation batches of `fit` count; those of its sanity check
        do not.
    wait, warmup, active : int
        Batches to skip, to warm up and to capture: see `fastprof.capture`.
    backend : {"torch", "nvtx"}
        The recorder: torch.profiler, or Nsight Systems if the program runs under it.
    path : path, optional
        Path of the trace; overrides `dirpath` and `filename`.
    layers : bool
        Give every submodule of the LightningModule a layer range.
    with_stack : bool
        Let torch.profiler record all Python calls. Not needed for source lines.

    Attributes
    ----------
    trace : Path or None
        The last saved trace.

    Raises
    ------
    CaptureError
        An argument is invalid, or the backend is not available.

    Notes
    -----
    torch is annotated (`fastprof.init`) from setup to teardown. An exception ends the annotation
    and saves the incomplete recording. If saving fails, a warning is issued and training continues.

    >>> Trainer(profiler=FastprofProfiler(wait=20, active=2), max_steps=30)   # doctest: +SKIP
    """

    def __init__(
        self,
        dirpath: str | os.PathLike[str] | None = None,
        filename: str | None = None,
        *,
        stage: str = "train",
        wait: int = 10,
        warmup: int = 2,
        active: int = 1,
        backend: str = "torch",
        path: str | os.PathLike[str] | None = None,
        layers: bool = True,
        with_stack: bool = False,
    ) -> None:
        super().__init__(dirpath=None if dirpath is None else os.fspath(dirpath), filename=filename)
        self.trace: Path | None = None
        self._captures = stage
        self._path = path
        self._layers = layers
        self._schedule: dict[str, Any] = {"wait": wait, "warmup": warmup, "active": active}
        self._options: dict[str, Any] = {"backend": backend, "with_stack": with_stack}
        self._lightning_module: Any = None  # Lightning sets it
        self._on: ExitStack | None = None
        self._is_model_annotated = False
        self._capture: Capture | None = None  # the running one
        self._was_started = False
        self._n_batches = 0  # of the stage, since the start of the capture
        self._depth = 0
        self._timings = ActionTimes()
        if stage not in _BATCHES:
            raise CaptureError(f"stage={stage!r}: expected one of {', '.join(map(repr, _BATCHES))}")
        self._new_capture(path)  # raises early, not at the first batch

    # Called by Lightning, in this order.

    def setup(self, stage: str, local_rank: int | None = None, log_dir: str | None = None) -> None:
        """Annotate torch. Called before a run."""
        self._end_all()
        super().setup(stage, local_rank, log_dir)
        self.trace, self._was_started, self._n_batches = None, False, 0
        self._timings = ActionTimes()
        self._on = ExitStack()
        self._on.enter_context(init())

    def start(self, action_name: str) -> None:
        """Begin a batch if the action is its first, then open the action's range."""
        if action_name.endswith(_BEGINNINGS):
            self._annotate_model()
            self._begin_batch(action_name)
        elif action_name.endswith(".on_exception"):
            self._end_all()
        if action_name != _WITHOUT_RANGE:
            marker = _marker(action_name)
            enter(marker, marker)
        self._timings.start(action_name)

    def stop(self, action_name: str) -> None:
        """Close an action's range and open ranges inside it; no effect if it is not open."""
        self._timings.stop(action_name)
        leave(_marker(action_name))
        if action_name.startswith(_OF_MODULE) and action_name.endswith(_BATCHES[self._captures][1]):
            self._end_batch()

    @contextmanager
    def profile(self, action_name: str) -> Iterator[str]:
        """Run an action. End all on an exception, because Lightning then skips teardown."""
        self._depth += 1
        try:
            with super().profile(action_name):
                yield action_name
        except BaseException:
            if self._depth == 1:
                self._end_all()
            raise
        finally:
            self._depth -= 1

    def describe(self) -> None:
        """Write or log the summary. Called after a run."""
        self._end_capture()
        super().describe()

    def summary(self) -> str:
        """The captured batches, and wall-clock times of the longest actions."""
        stage = "" if self._stage is None else f"{self._stage.upper()} "
        rows = self._timings.rows()
        table = str(Timings(tuple(rows[:_MOST_ROWS])))
        more = f"\n... and {len(rows) - _MOST_ROWS} more" if len(rows) > _MOST_ROWS else ""
        return f"{stage}Profiler Report\n\n{self._captured()}\n\n{table}{more}\n"

    def teardown(self, stage: str | None) -> None:
        """End the annotation. Called after `describe`."""
        self._end_all()
        super().teardown(stage)

    # The capture.

    def _new_capture(self, path: str | os.PathLike[str] | None) -> Capture:
        return capture(path=path, **self._schedule, **self._options)

    def _begin_batch(self, action_name: str) -> None:
        """Start the capture at the first batch of its stage."""
        if self._was_started or not action_name.endswith(_BATCHES[self._captures][0]):
            return
        if self._on is None or self._is_sanity_check():
            return
        self._capture = self._new_capture(self._trace_path())
        self._was_started = True
        self._capture.start()

    def _end_batch(self) -> None:
        if not self._was_started or self._is_sanity_check():
            return
        self._n_batches += 1
        if self._capture is not None:
            with _as_warning():
                self._capture.step()
            if self._n_batches == sum(self._schedule.values()):
                self._end_capture()

    def _end_capture(self) -> None:
        """End the capture, if it is running, and save it."""
        if self._capture is None:
            return
        ended, self._capture = self._capture, None
        with _as_warning(), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # our warning counts batches
            ended.stop()
        self.trace = ended.path
        if self._n_batches < sum(self._schedule.values()):
            warnings.warn(f"FastprofProfiler: {self._captured()}", RuntimeWarning, stacklevel=2)

    def _end_all(self) -> None:
        self._end_capture()
        self._is_model_annotated = False
        if self._on is not None:
            self._on.close()
            self._on = None

    def _trace_path(self) -> str | os.PathLike[str] | None:
        """Path of the trace, by Lightning's conventions. Nsight Systems writes its own file."""
        if self._options["backend"] == "nvtx" or self._path is not None:
            return self._path
        folder = os.fspath(self.dirpath or "")
        if folder and "://" not in folder:
            os.makedirs(folder, exist_ok=True)
        else:
            folder = ""
        name = None if self.filename else "fastprof"
        return os.path.join(folder, self._prepare_filename(name, ".json.gz"))

    def _captured(self) -> str:
        """A sentence on what is captured so far."""
        numbers = ", ".join(f"{name}={number}" for name, number in self._schedule.items())
        wait, warmup, active = self._schedule.values()
        n_done = min(max(self._n_batches - wait - warmup, 0), active)
        counted = f"captured {n_done} of {active} {self._captures} batches"
        if not n_done and self.trace is None:
            return (
                f"nothing was captured: expected {wait + warmup + active} {self._captures} "
                f"batches, found {self._n_batches} ({numbers})"
            )
        if self._options["backend"] == "nvtx":
            return f"{counted}, if the program ran under Nsight Systems"
        if self.trace is None:
            return f"{counted}, but their trace was not saved (see the warning)"
        return f"{counted}: {self.trace}\n  fastprof info {self.trace}"

    # The model.

    def _annotate_model(self) -> None:
        """Annotate layers at the first batch of any stage: the model is complete by then."""
        if self._is_model_annotated or not self._layers or self._on is None:
            return
        self._is_model_annotated = True
        if self._lightning_module is not None:
            self._on.enter_context(annotate_layers(self._lightning_module))

    def _is_sanity_check(self) -> bool:
        trainer = getattr(self._lightning_module, "_trainer", None)
        return bool(getattr(trainer, "sanity_checking", False))


@functools.cache
def _marker(name: str) -> Marker:
    """The range of an action. One object per name; it also owns its open ranges."""
    channels.connect()
    return Marker(name)


@contextmanager
def _as_warning() -> Iterator[None]:
    """Turn an error into a warning: a lost trace must not end the training."""
    try:
        yield
    except FastprofError as error:
        warnings.warn(f"FastprofProfiler: {error}", RuntimeWarning, stacklevel=3)


class ActionTimes:
    """Wall-clock times of actions. An action may overlap itself, in one thread or in several."""

    def __init__(self) -> None:
        self._started: dict[tuple[int, str], list[int]] = {}  # by thread and name
        self._rows: dict[str, Timing] = {}

    def start(self, name: str) -> None:
        """Begin an action."""
        key = threading.get_ident(), name
        self._started.setdefault(key, []).append(time.perf_counter_ns())

    def stop(self, name: str) -> None:
        """End the action of this name begun last in this thread; no effect if there is none."""
        started = self._started.get((threading.get_ident(), name))
        if not started:
            return
        took = time.perf_counter_ns() - started.pop()
        row = self._rows.get(name, Timing(name, "wall", 0, 0, took, took))
        self._rows[name] = Timing(
            name, "wall", row.calls + 1, row.total + took, min(row.min, took), max(row.max, took)
        )

    def rows(self) -> list[Timing]:
        """One Timing per action, by descending total."""
        return sorted(self._rows.values(), key=lambda row: (-row.total, row.name))
