"""What a process of the program reports to `fastprof run`, in a file of the run's directory."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any, Final

import torch

from fastprof.annotate.program.recording import StepRecording
from fastprof.annotate.recorders import rank_and_world
from fastprof.runs.facts import STATUS

_BLOCK: Final = 4096  # bytes; spaces fill the last block


class Status:
    """The report of a process.

    The file is written over in place: on a full disk, a report still fits into its blocks, without
    the lengths of steps.

    Attributes
    ----------
    problem : str or None
        Why nothing more is recorded.
    notes : list of str
        What else the user should know.
    """

    def __init__(self, directory: str, pid: int) -> None:
        self.problem: str | None = None
        self.notes: list[str] = []
        self._path = Path(directory, f"{STATUS}-{pid}.json")
        self._recordings: list[dict[str, Any]] = []
        self._rank: tuple[int, int] | None = None  # that of the recordings

    def recorded(self, recording: StepRecording) -> None:
        """Add a recording that has ended."""
        self._rank = rank_and_world()
        self._recordings.append(
            {
                "path": recording.path and str(recording.path),
                "first": recording.first,
                "n_steps": recording.n_recorded,
                "has_begun": recording.has_begun,
                "is_stopped": recording.is_stopped,
                "unrecorded": recording.unrecorded,
                "after": None,
                "cause": recording.cause,
            }
        )

    def followed(self, after: dict[str, Any] | None) -> None:
        """Add the steps after the latest recording, see `UnrecordedSteps.facts`."""
        if self._recordings:
            self._recordings[-1]["after"] = after

    def discard(self) -> None:
        """Remove the recordings that have ended, and their files."""
        for recording in self._recordings:
            if recording["path"]:
                Path(recording["path"]).unlink(missing_ok=True)
        self._recordings.clear()

    def write(self, **facts: Any) -> None:
        """Write the file, with further facts.

        Raises
        ------
        OSError
            It cannot be written.
        """
        # At the end of the program, torch.distributed may be closed.
        rank, world = self._rank or rank_and_world()
        report = {
            "pid": os.getpid(),
            "arguments": list(getattr(sys, "orig_argv", sys.argv)),
            "rank": rank,
            "world": world,
            **facts,
            "recordings": self._recordings,
            "problem": self.problem,
            "notes": self.notes,
            "versions": _versions(),
            "gpus": _gpus(),
        }
        try:
            self._put(report)
        except OSError:
            self._put({**report, "step_lengths": None})

    def _put(self, report: dict[str, Any]) -> None:
        text = json.dumps(report).encode("utf-8", "surrogateescape")
        text = text.ljust(-(-len(text) // _BLOCK) * _BLOCK)
        with open(os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o666), "wb", buffering=0) as file:
            file.write(text)
            file.truncate()


def _versions() -> dict[str, str | None]:
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
    }


def _gpus() -> list[str]:
    """The names of the GPUs that this process may use; empty before it uses any."""
    if not torch.cuda.is_initialized():
        return []
    return [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
