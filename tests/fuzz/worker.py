"""Runs mutants in worker processes; reports those that kill or stall a worker, and replaces it."""

import faulthandler
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from fuzz.corpus import Seed
from fuzz.mutant import Mutant

SECONDS = 20.0  # for all commands on one mutant
MEMORY = 3 << 30  # bytes of address space; an idle worker uses about 700 MB
_FAULTS = "faults"


@dataclass(frozen=True)
class Outcome:
    """The result of a mutant: "rows", "refused" or "wrong", and its description."""

    mutant: Mutant
    what: str
    detail: str
    seconds: float
    memory: int  # peak memory of the worker so far, in bytes


def outcomes(
    mutants: Sequence[Mutant], seeds: Mapping[str, Seed], jobs: int = 1, seconds: float = SECONDS
) -> Iterator[Outcome]:
    """The result of each mutant, in order of completion."""
    left = iter(mutants)
    with tempfile.TemporaryDirectory() as folder:
        workers = [_Worker(Path(folder) / str(i), seeds, seconds) for i in range(jobs)]
        busy = {worker.connection: worker for worker in workers if worker.give(next(left, None))}
        try:
            while busy:
                first = min(worker.until for worker in busy.values())
                ready = wait(list(busy), max(0.0, first - time.monotonic()))
                late = [each for each in busy if busy[each].until <= time.monotonic()]
                for connection in {*ready, *late}:
                    worker = busy.pop(connection)
                    yield worker.outcome(connection in ready)
                    if worker.give(next(left, None)):
                        busy[worker.connection] = worker
        finally:
            for worker in workers:
                worker.stop()


class _Worker:
    """The parent's side of a worker."""

    def __init__(self, folder: Path, seeds: Mapping[str, Seed], seconds: float) -> None:
        folder.mkdir()
        self._folder, self._seeds, self._seconds = folder, seeds, seconds
        self._process: Any = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        arguments = (other, str(self._folder), self._seconds)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        other.close()
        self.connection.send(dict(self._seeds))
        self.connection.recv()

    def give(self, mutant: Mutant | None) -> bool:
        """Send the next mutant; False if there is none."""
        if mutant is None:
            return False
        if self._process is None:
            self._start()
        self._mutant = mutant
        self.until = time.monotonic() + self._seconds + 1
        self.connection.send(mutant)
        return True

    def outcome(self, is_ready: bool) -> Outcome:
        try:
            if is_ready:
                return Outcome(self._mutant, *self.connection.recv())
            how = f"no end within {self._seconds:.0f} s"
        except EOFError:
            self._process.join()
            how = f"the process ended with {self._process.exitcode}"
        self.stop()
        faults = self._folder / _FAULTS
        trace = faults.read_text(errors="replace") if faults.exists() else ""
        return Outcome(self._mutant, "wrong", f"{how}\n{trace}", self._seconds, 0)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self.connection.close()
        self._process = None


def _serve(connection: Connection, folder: str, seconds: float) -> None:
    """The main loop of a worker: receives mutants and returns results until the pipe closes."""
    from fuzz.check import WrongError, check, check_shape

    faults = open(Path(folder) / _FAULTS, "w+")  # noqa: SIM115, for as long as the process lives
    os.dup2(faults.fileno(), 2)
    faulthandler.enable(faults)
    if "libasan" not in os.environ.get(
        "LD_PRELOAD", ""
    ):  # which reserves terabytes of address space
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    seeds = connection.recv()
    connection.send("ready")
    path = Path(folder) / "in" / "x.trace"
    path.parent.mkdir(exist_ok=True)
    while True:
        try:
            mutant = connection.recv()
        except EOFError:
            return
        faulthandler.dump_traceback_later(seconds, file=faults)
        began = time.perf_counter()
        try:
            path.write_bytes(mutant.content(seeds))
            if mutant.is_shape:
                ended = check_shape(path)
            else:
                ended = check(path, seeds[mutant.seed].format, mutant.number)
            what, detail = ("refused", "rows")[ended.code == 0], ended.stderr
        except WrongError as error:
            what, detail = "wrong", str(error)
        except BaseException as error:
            what, detail = "wrong", f"the check itself: {error!r}"
        faulthandler.cancel_dump_traceback_later()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        memory *= 1 if sys.platform == "darwin" else 1024
        connection.send((what, detail, time.perf_counter() - began, memory))
