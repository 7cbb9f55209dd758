"""Open profiles: each is read once, kept while memory allows, and read again when it changes."""

from __future__ import annotations

import gc
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Final

from fastprof._system.classes import NamedTuple
from fastprof._system.file_state import FileState, state_of
from fastprof._system.memory import give_back
from fastprof.api.open import open_trace
from fastprof.api.profile import Profile
from fastprof.errors import BadInputError, FastprofError
from fastprof.mcp.paths import AllowedFiles

if TYPE_CHECKING:
    from fastprof.api.ranks import Ranks

_PERIOD: Final = 0.2  # seconds between looks whether a waiting call is stopped
_MOST_PARTS: Final = 4  # of `Profile.trim`, kept for each profile
_MOST_RUNS: Final = 2  # of several ranks, whose records are small


class StoppedError(FastprofError):
    """The client has cancelled the call, or it took too long."""


class SessionState(NamedTuple):
    """How far a call is: what is read, the rows so far and their estimated total."""

    what: str
    done: int
    total: int


class Job:
    """A call in progress, which another thread may stop while it reads a file."""

    def __init__(self) -> None:
        self.state = SessionState("", 0, 0)
        self._stopped = Event()

    def stop(self) -> None:
        """Let the call end when it next reports how far it is."""
        self._stopped.set()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Report how far the reading of a file is.

        Raises
        ------
        StoppedError
            `stop` was called.
        """
        self.check()
        self.state = SessionState(what, done, total)

    def check(self) -> None:
        """Raise StoppedError if `stop` was called."""
        if self._stopped.is_set():
            raise StoppedError("stopped")


class _Entry:
    """A profile, the state of its file, and its parts; `lock` lets one call at a time use it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.state: FileState | None = None
        self.profile: Profile | None = None
        self.parts: OrderedDict[str, Profile] = OrderedDict()

    def close(self) -> None:
        self.state, self.profile = None, None
        self.parts.clear()


class OpenProfiles:
    """The profiles of files, least recently used first.

    Parameters
    ----------
    files : what may be read
    budget : bytes of memory of the process above which profiles are closed
    used : returns the bytes that the process uses
    """

    def __init__(
        self, files: AllowedFiles, budget: float, used: Callable[[], float] | None = None
    ) -> None:
        self.files = files
        self._budget, self._used = budget, used or resident
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = Lock()
        self._runs: OrderedDict[object, Ranks] = OrderedDict()
        self._lock_of_runs = Lock()

    @contextmanager
    def using(self, names: Sequence[str], work: Job) -> Iterator[list[Profile]]:
        """The profiles of some files, for one call at a time.

        Raises
        ------
        BadInputError
            A file may not be read, is missing, or no trace.
        """
        paths = [self.files.file(name) for name in names]
        with ExitStack() as stack:
            for path in sorted(set(paths)):  # in one order, so that two calls do not wait in a ring
                stack.callback(self._locked(path, work).release)
            yield [self._opened(path, work) for path in paths]
        self._shrink()

    def part(self, profile: Profile, trim: str | None) -> Profile:
        """A profile of which a part counts, see `Profile.trim`; None for all."""
        if trim is None:
            return profile
        parts = self._entries[os.path.realpath(profile.name)].parts
        if trim not in parts:
            parts[trim] = profile.trim(trim)
        parts.move_to_end(trim)
        while len(parts) > _MOST_PARTS:
            parts.popitem(last=False)
        return parts[trim]

    def ranks(self, names: Sequence[str], steps: str | None, work: Job) -> Ranks:
        """The ranks of a run; the last runs are kept until a file changes.

        Raises
        ------
        BadInputError
            A path may not be read, or has no traces.
        RanksError
            The files are not those of one run.
        """
        from fastprof.api.ranks import open_ranks

        paths = self.files.files(names)
        key = (steps, tuple((path, state_of(path)) for path in paths))
        with self._lock_of_runs:
            if key not in self._runs:
                self._runs[key] = open_ranks(
                    paths, steps=steps, progress=lambda done: work("ranks", done.n, done.total)
                )
            self._runs.move_to_end(key)
            while len(self._runs) > _MOST_RUNS:
                self._runs.popitem(last=False)
            return self._runs[key]

    def open_files(self) -> list[str]:
        """The files of the open profiles, the last used one last."""
        with self._lock:
            return [path for path, entry in self._entries.items() if entry.profile is not None]

    def _locked(self, path: str, work: Job) -> Lock:
        """The lock of a file, acquired; a call that is stopped does not wait for it any longer."""
        lock = self._entry(path).lock
        while not lock.acquire(timeout=_PERIOD):
            work.check()
        return lock

    def _entry(self, path: str) -> _Entry:
        with self._lock:
            entry = self._entries.setdefault(path, _Entry())
            self._entries.move_to_end(path)
            return entry

    def _opened(self, path: str, work: Job) -> Profile:
        """The profile of a file, read again if the file has changed. Its lock is held."""
        entry = self._entry(path)
        try:
            state = state_of(path)
        except OSError as error:
            entry.close()
            raise BadInputError(f"{path}: {error.strerror}") from error
        if entry.profile is None or state != entry.state:
            entry.close()
            self._shrink()
            entry.profile = open_trace(path, work, host=True)
            entry.profile.source.replays = {}
            entry.state = state
        return entry.profile

    def _shrink(self) -> None:
        """Close profiles that no call uses until the process is within its budget."""
        with self._lock:
            entries = list(self._entries.values())
        for entry in entries[:-1]:
            if self._used() <= self._budget:
                return
            if entry.profile is not None and entry.lock.acquire(blocking=False):
                entry.close()
                entry.lock.release()
                gc.collect()  # profiles are parts of cycles
                give_back()


def resident() -> float:
    """The bytes of memory that this process occupies; 0 if the system does not tell."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0.0
    return float(pages) * os.sysconf("SC_PAGESIZE")
