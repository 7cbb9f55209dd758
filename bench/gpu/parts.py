"""The parts of a measurement: what each runs, and what it keeps in the folder of results."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.gpu import counters, forks, overhead, peaks, plan


class Results:
    """`results.json` of a folder: the results of parts by name, written after each of them."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder = folder
        self._path = folder / "results.json"
        self._end = time.perf_counter() + seconds
        self.parts = json.loads(self._path.read_text()) if self._path.exists() else {}

    def seconds(self, most: float) -> float:
        """What a case may take that should take `most` seconds."""
        return min(most, self._end - time.perf_counter())

    def add(self, part: str, name: str, measure: Callable[[], dict]) -> None:
        """Measure one case, unless a result without an error is there or no time is left."""
        cases = self.parts.setdefault(part, {})
        if (name in cases and "error" not in cases[name]) or self.seconds(1e9) < 5:
            return
        start = time.perf_counter()
        try:
            result = measure()
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        cases[name] = result
        self._path.write_text(json.dumps(self.parts, indent=1))
        short = str(result.get("error") or result.get("ms") or "")[:150]
        print(f"{part:9} {name:40} {time.perf_counter() - start:6.1f} s  {short}", flush=True)


def _peaks(results: Results) -> None:
    results.add("peaks", "gpu", lambda: forks.run_forked(peaks.measure, results.seconds(60)))


def _steps(results: Results) -> None:
    _measure_steps(results, plan.STEPS)


def _compiled(results: Results) -> None:
    _record_runs(results, plan.RECORDED_COMPILED)
    _measure_steps(results, plan.COMPILED)


def _measure_steps(results: Results, cases: list[plan.Case]) -> None:
    for case in cases:

        def measure(case: plan.Case = case) -> dict:
            run = forks.program(case.path, case.arguments, PLAIN="1")
            return forks.run_forked(run, results.seconds(case.seconds))

        results.add("steps", case.name, measure)


def _overhead(results: Results) -> None:
    for mode in plan.RECORDERS:

        def measure(mode: str = mode) -> dict:
            return forks.run_forked(lambda: overhead.measure(mode), results.seconds(40))

        results.add("overhead", mode, measure)


def _command(words: list[str], seconds: float) -> dict:
    """Run a command; returns what it printed, and `error` if it failed or took too long."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        return {"error": f"killed after {seconds:.0f} s", "output": str(error.stderr)[-2000:]}
    result = {"output": (done.stdout + done.stderr)[-6000:]}
    return result | ({"error": f"exit code {done.returncode}"} if done.returncode else {})


def _recorded(results: Results, case: plan.Case, steps: str, backend: str, limit: float) -> dict:
    """Record steps A:B of a program; keeps the trace, and the lengths of all steps."""
    runs = results.folder / "runs" / backend
    name = plan.file_name(case.name)
    last = str(int(steps.split(":")[1]) + 3)
    words = [
        sys.executable, "-m", "fastprof", "run", "--backend", backend, "--steps", steps,
        "--runs", str(runs), "--name", name, "--", sys.executable, str(case.path),
        *case.arguments, "--steps", last,
    ]  # fmt: skip
    result = _command(words, results.seconds(limit))
    folders = sorted(runs.glob(f"{name}-2*"))
    if "error" in result or not folders:
        return result
    if backend == "torch":
        traces = results.folder / "traces"
        traces.mkdir(exist_ok=True)
        shutil.copy(folders[-1] / "trace.json.gz", traces / f"{name}.json.gz")
    return facts_of_run(json.loads((folders[-1] / "run.json").read_text()))


def facts_of_run(run: dict) -> dict:
    """What the page needs of a run's facts: lengths of all steps, which were recorded, versions."""
    process = run["processes"][0]
    recording = process["recordings"][0]
    kept = {key: recording[key] for key in ("first", "n_steps", "unrecorded", "after")}
    return {"step_ns": process["step_lengths"]["ns"], **kept, "versions": process["versions"]}


def _record(results: Results) -> None:
    _record_runs(results, plan.RECORDED)


def _record_runs(results: Results, cases: dict[plan.Case, str]) -> None:
    for case, steps in cases.items():
        results.add(
            "runs", case.name,
            lambda case=case, steps=steps: _recorded(results, case, steps, "torch", 120),
        )  # fmt: skip


def _nsys(results: Results) -> None:
    for case, steps in list(plan.RECORDED.items())[:2]:
        results.add(
            "nsys", case.name,
            lambda case=case, steps=steps: _recorded(results, case, steps, "nsys", 180),
        )  # fmt: skip


def _operators(results: Results) -> None:
    def compress(path: Path) -> None:
        with path.open("rb") as source, gzip.open(f"{path}.gz", "wb") as file:
            shutil.copyfileobj(source, file)
        path.unlink()

    def record() -> dict:
        trace = results.folder / "operators.json"
        program = str(plan.PROGRAMS / "operators.py")
        words = ["env", f"RECORD={trace}", sys.executable, program]
        result = _command(words, results.seconds(120))
        if trace.exists():
            compress(trace)
        return result

    def count() -> dict:
        table = results.folder / "counters.csv"
        error = counters.record(table, results.seconds(300))
        compress(table)
        return {"error": error} if error else {}

    results.add("operators", "recorded", record)
    results.add("operators", "counters", count)


PARTS = {
    "peaks": _peaks, "record": _record, "operators": _operators, "steps": _steps,
    "overhead": _overhead, "compiled": _compiled, "nsys": _nsys,
}  # fmt: skip
FORKED = {"peaks", "steps", "compiled", "overhead"}
HELP = {
    "peaks": "FLOP/s of products, bytes/s of copies, launches (5 s)",
    "record": "recordings of the programs by `fastprof run` (2 min)",
    "operators": "FLOPs and bytes of operators by ncu's counters (4 min)",
    "steps": f"milliseconds per step of {len(plan.STEPS)} programs with options (4 min)",
    "overhead": f"{len(plan.RECORDERS)} ways to record a launch-bound step (1 min)",
    "compiled": "recordings and steps of compiled programs (6 min)",
    "nsys": "recordings by Nsight Systems, where it is installed (3 min)",
}
NEEDS = {"operators": "ncu", "nsys": "nsys"}  # a tool on the PATH


def measure(names: list[str], folder: Path, seconds: float) -> Results:
    """Measure parts, and keep what comes out in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    results = Results(folder, seconds)
    if FORKED & set(names):
        start = time.perf_counter()
        missing = forks.import_packages()
        print(f"imports {time.perf_counter() - start:.1f} s", flush=True)
        if missing:
            print(f"not installed: {', '.join(missing)}; their programs fail", flush=True)
    for name in names:
        tool = NEEDS.get(name)
        if tool and not shutil.which(tool):
            print(f"{name}: left out: {tool} is not on the PATH", flush=True)
            continue
        PARTS[name](results)
    return results
