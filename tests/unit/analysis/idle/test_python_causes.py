"""Idle time of Python's own making: garbage collections, waits for the interpreter lock."""

from pathlib import Path

import pytest

import fastprof
from fastprof import cli
from fastprof.profile.data import ProfileData
from support.exports import PID, Export, global_tid
from support.kineto_files import KinetoFile

US = 1000


def causes(profile: ProfileData) -> dict[str, int]:
    table = profile.report("idle")
    return dict(zip(table["cause"].tolist(), table["ns"].tolist(), strict=True))


def collecting(name: str, steps: int = 4) -> KinetoFile:
    """Steps of 1 ms, in each of which Python collects garbage for 400 us before the next launch."""
    trace = KinetoFile()
    for step in range(steps):
        at = step * 1000 * US
        trace.annotation(at, at + 1000 * US, f"ProfilerStep#{step}")
        for half in (0, 1):
            start, corr = at + half * 500 * US, 2 * step + half + 1
            trace.launch(start + 1 * US, start + 5 * US, corr)
            trace.kernel(start + 10 * US, start + 80 * US, corr, f"sgemm_{half}")
            trace.python(start + 90 * US, start + 490 * US, name)
    return trace


@pytest.mark.parametrize("name", ["Python GC", "<built-in function collect>"])
def test_the_gpu_waits_for_a_garbage_collection(opened, name):
    profile = opened(collecting(name))
    result = causes(profile)
    assert result["garbage collection"] == pytest.approx(7 * 400 * US, rel=0.02)
    assert result.get("host-bound", 0) < 200 * US


def test_advice_names_the_collector(opened):
    table = opened(collecting("Python GC")).report("advise")
    row = next(row for row in table.rows() if row["id"] == "garbage-collection")
    assert "gc.freeze()" in row["remedy"]
    assert row["saving_ns"] == pytest.approx(800 * US, rel=0.1)
    assert table.facts["answer"].startswith("The GPU waits")


def holding(path: Path, steps: int = 4) -> Path:
    """Steps of 1 ms, in which the launching thread waits 400 us for the lock that thread 2 holds.

    As nsys profile --trace=cuda,python-gil writes it: ranges of the domain GIL Trace.
    """
    export = Export()
    for step in range(steps):
        at = step * 1000 * US
        export.push_pop(at, at + 999 * US, f"step {step}", 1)
        export.push_pop(at + 10 * US, at + 500 * US, "Holding GIL", 1)
        export.launch(at + 20 * US, at + 25 * US, 2 * step + 1, 1)
        export.kernel(at + 30 * US, at + 100 * US, 2 * step + 1, name="first")
        export.push_pop(at + 510 * US, at + 910 * US, "Waiting for GIL", 1)
        export.push_pop(at + 505 * US, at + 905 * US, "Holding GIL", 2)
        export.push_pop(at + 911 * US, at + 990 * US, "Holding GIL", 1)
        export.launch(at + 920 * US, at + 925 * US, 2 * step + 2, 1)
        export.kernel(at + 930 * US, at + 980 * US, 2 * step + 2, name="second")
    return export.write(path)


def test_the_gpu_waits_for_the_interpreter_lock(tmp_path):
    result = causes(fastprof.open(holding(tmp_path / "gil.sqlite")))
    assert result["GIL"] == pytest.approx(4 * 400 * US, rel=0.02)


def test_the_lock_s_ranges_are_no_ranges_of_the_user(tmp_path, capsys):
    path = holding(tmp_path / "gil.sqlite")
    profile = fastprof.open(path)
    assert profile.find_steps().source == "range step *"
    assert profile.report("summary", by="range")["range"].tolist() == ["step *"]
    assert profile.contents.ranges == {"user": 4, "python": 16}
    assert cli.main(["advise", str(path)]) == 0
    assert "interpreter lock" in capsys.readouterr().out


def test_cpu_samples_name_what_the_host_runs_in_a_gap(tmp_path):
    export = Export()
    encode, other = export.string("tokenizers::encode"), export.string("PyEval_EvalFrame")
    number = 0
    for i in range(4):
        at = i * 1000 * US
        export.push_pop(at, at + 999 * US, f"step {i}", 1)
        export.work(at + 10 * US, duration=100 * US)
        functions = [encode, other, encode, encode, other]
        for k, function in enumerate(functions):
            number += 1
            time, thread = at + (200 + 100 * k) * US, global_tid(PID, 1)
            export.row("COMPOSITE_EVENTS", id=number, start=time, globalTid=thread)
            export.row("SAMPLING_CALLCHAINS", id=number, symbol=function, module=1, stackDepth=0)
            # Another thread is sampled more often.
            export.row(
                "COMPOSITE_EVENTS", id=number + 1000, start=time, globalTid=global_tid(PID, 2)
            )
            export.row("SAMPLING_CALLCHAINS", id=number + 1000, symbol=other, module=1,
                       stackDepth=0)  # fmt: skip
    profile = fastprof.open(export.write(tmp_path / "samples.sqlite"))
    assert len(profile.cpu_samples) == 40
    table = profile.report("idle", gaps=3)
    assert table["cause"].tolist() == ["host-bound"] * 3
    assert table["call"].tolist() == ["tokenizers::encode"] * 3


def test_advice_on_a_thread_that_does_not_run(tmp_path):
    export = Export()
    for step in range(4):
        at = step * 1000 * US
        export.push_pop(at, at + 999 * US, f"step {step}", 1)
        export.work(at + 10 * US, duration=100 * US)
        for time, scheduled_in in ((300, 0), (900, 1)):
            export.row("SCHED_EVENTS", start=at + time * US, cpu=1, isSchedIn=scheduled_in,
                       globalTid=global_tid(PID, 1))  # fmt: skip
    table = fastprof.open(export.write(tmp_path / "off.sqlite")).report("advise")
    row = next(row for row in table.rows() if row["id"] == "off-cpu")
    assert "OMP_NUM_THREADS" in row["remedy"]
    assert row["saving_ns"] == pytest.approx(600 * US, rel=0.1)
    assert row["confidence"] == "medium"
