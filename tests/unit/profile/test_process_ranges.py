"""Ranges that end on another thread are phases of the process, found by the interval tree."""

import fastprof
from support.exports import Export


def launched_at(export: Export, *times: int, tid: int = 1, pid: int = 100) -> Export:
    for number, time in enumerate(times, start=1):
        export.launch(time, time + 1, number, tid, pid=pid)
        export.kernel(time + 5, time + 8, number, pid=pid)
    return export


def test_a_kernel_has_the_phases_that_were_open_at_its_launch(tmp_path):
    export = Export().push_pop(5, 40, "mine", tid=1)
    export.start_end(0, 100, "load", tid=1, end_tid=2).start_end(
        50, 200, "warm up", tid=2, end_tid=1
    )
    path = launched_at(export, 10, 60, 150, 300).write(tmp_path / "x.sqlite")
    kernels = fastprof.open(path).kernels
    assert list(kernels["phases"]) == [("load",), ("load", "warm up"), ("warm up",), ()]
    assert list(kernels["ranges"]) == [("mine",), (), (), ()]


def test_a_phase_is_of_its_own_process_only(tmp_path):
    export = Export().start_end(0, 100, "load", tid=1, end_tid=2, pid=7)
    launched_at(export, 10, pid=7)
    path = launched_at(export, 20, pid=8).write(tmp_path / "x.sqlite")
    assert list(fastprof.open(path).kernels["phases"]) == [("load",), ()]
