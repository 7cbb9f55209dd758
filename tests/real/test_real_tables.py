"""Every table of every real trace has the sums of the rows of `fastprof prof`, by any key."""

from collections import defaultdict
from functools import lru_cache
from itertools import combinations

import numpy as np
import pytest

from fastprof.analysis.stacks.tree import TREES, stacks
from real import open_traces
from real.raw_work import union
from real.table_sums import KEYS, Rows, sums_of, windows
from support.hypothesis_profiles import IS_FULL
from support.real_data import traces

pytestmark = pytest.mark.every_trace
TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql", "pyprof/*.dict")
# Keys in which kernels of equal configuration, path and cost differ in many traces, with others.
PAIRS = [("range", "kind"), ("process", "device"), ("range", "dir", "op"), ("step", "kernel")]
every_trace = pytest.mark.parametrize("path", TRACES)


def profile_of(path):
    return open_traces.profile(path, copies=True)


@lru_cache(maxsize=1)
def rows_of(path):
    return Rows(profile_of(path))


def keys_of(path):
    """All keys and pairs; in the fast profile a third of them, other ones for the next trace."""
    keys = [*((name,) for name in KEYS), *PAIRS]
    more = combinations(("dir", "layer", "op", "shape", "kernel", "kind", "phase", "line"), 2)
    return [*keys, *more] if IS_FULL else keys[TRACES.index(path) % 3 :: 3]


@every_trace
def test_summary_by_any_key_has_the_sums_of_the_rows(path):
    trace, rows = profile_of(path), rows_of(path)
    if not len(trace):
        return
    counted, n = windows(trace)
    work = {name: int(trace.column(name).array().compressed().sum()) for name in ("flops", "bytes")}
    for by in keys_of(path):
        table = trace.summary(by)
        assert sums_of(table, by) == rows.sums(by), by
        assert sum(row["gpu_ns"] for row in table.rows()) == table.total["gpu_ns"] == rows.total
        for name, total in work.items():
            assert sum(row.get(name) or 0 for row in table.rows()) == total, (by, name)
            assert (table.total.get(name) or 0) == total, (by, name)
        shares = [row["share"] for row in table.rows() if row.get("share") is not None]
        assert sum(shares) == pytest.approx(1 if rows.total else 0)
        if n:
            in_steps = rows.sums(by, counted)
            for row in table.rows():
                _, time = in_steps.get(tuple(row[name] for name in by), (0, 0))
                assert row["step_ns"] == pytest.approx(time / n), by
            shares = [row["step_share"] for row in table.rows()]
            assert sum(shares) == pytest.approx(1 if any(in_steps.values()) else 0)


@every_trace
def test_the_first_tables_have_the_sums_of_the_rows(path):
    trace, rows = profile_of(path), rows_of(path)
    if not len(trace):
        return
    for table in (open_traces.report(path, "summary"), open_traces.report(path, "overview")["ops"]):
        by = [heading.key for heading in table.headings if heading.key in KEYS]
        assert sums_of(table, by) == rows.sums(by)
    result = open_traces.report(path, "overview")
    for name in ("layers", "lines"):
        if result[name].n_rows:
            assert int(np.sum(result[name]["gpu_ns"])) == rows.total


@every_trace
def test_other_tables_have_the_sums_of_the_rows(path):
    trace, rows = profile_of(path), rows_of(path)
    if not len(trace):
        return
    for by in (("range",), ("thread", "kind"), ("process", "op"), ("step",)):
        assert sums_of(trace.roofline(by), by) == rows.sums(by)
    if "start" not in trace.names:
        return
    is_copy = [row["kind"] in ("memcpy", "memset") for row in rows.rows]
    if any(is_copy):
        for name in ("range", "process", "step", "thread", "size_class"):
            result = {row[name]: (row["copies"], row["time_ns"])
                     for row in trace.copies(by=name).rows()}  # fmt: skip
            assert result == {key: sums for (key,), sums in rows.sums((name,), is_copy).items()}
    time = defaultdict(int)
    for row, ns in zip(rows.rows, rows.time, strict=True):
        if row["kind"] == "kernel":
            time[row["name"]] += ns
    if any(time.values()):
        table = trace.report("stats", names=["cuda_gpu_kern_sum"])
        assert int(np.sum(table["Total Time (ns)"])) == sum(time.values())


@every_trace
def test_a_part_of_the_work_has_the_sums_of_its_rows(path):
    """By keys that vary within cells: the largest value of each."""
    trace, rows = profile_of(path), rows_of(path)
    for name in ("range", "thread", "process", "step", "launch"):
        sums = rows.sums((name,))
        if not sums:
            continue
        (value,), (n, time) = max(sums.items(), key=lambda each: (each[1], str(each[0])))
        text = "na" if value is None else str(value)
        if set("*?[").intersection(text):
            continue
        where = [f"{name}={text}"]
        for table in (trace.report("summary", where=where), trace.layers(where=where),
                      trace.lines(where=where)):  # fmt: skip
            assert (table.total["kernels"], table.total["gpu_ns"]) == (n, time), name


@every_trace
def test_trees_have_the_sums_of_the_rows(path):
    trace, rows = profile_of(path), rows_of(path)
    if not len(trace):
        return
    for kind in TREES:
        for leaf in ("launch", "thread", "kernel") if kind == "path" else ("range", "thread"):
            tree = stacks(trace, kind, (leaf,))
            result = defaultdict(int)
            own = tree.own("ns").tolist()
            for i, time in enumerate(own):
                is_leaf = tree.type.at(i) == leaf
                result[tree.name.at(i) if is_leaf else None] += time
            expected = defaultdict(int)
            for (value,), (_, time) in rows.sums((leaf,)).items():
                expected[None if value is None else str(value)] += time
            assert {k: v for k, v in result.items() if v} == {
                k: v for k, v in expected.items() if v
            }, (kind, leaf)


@every_trace
def test_ranges_and_idle_times_add_up(path):
    trace, rows = profile_of(path), rows_of(path)
    if not len(trace) or "start" not in trace.names:
        return
    table = open_traces.report(path, "ranges")
    if table.n_rows and trace.contents.ranges:
        assert sum(table["own_ns"].tolist()) == table.total["gpu_ns"] == rows.total
    sums = {by: int(np.ma.filled(trace.idle(by=by)["ns"], 0).sum())
            for by in ("cause", "range", "line", "layer")}  # fmt: skip
    assert len(set(sums.values())) == 1, sums


@every_trace
def test_a_sum_over_the_busy_time_is_explained(path):
    trace, rows = profile_of(path), rows_of(path)
    if not len(trace) or "start" not in trace.names:
        return
    intervals = defaultdict(list)
    for row in rows.rows:
        start = row["start"]
        intervals[row["pid"], row["device"]].append((start, start + max(row["sil"] or 0, 0)))
    busy = sum(map(union, intervals.values()))
    twice = rows.total - busy > 0.001 * rows.total
    for table in (open_traces.report(path, name) for name in ("layers", "lines")):
        notes = [note for note in table.notes if note.startswith("kernels overlap on streams")]
        assert len(notes) == twice


def test_r50_has_the_times_that_tensorboard_shows():
    """Kineto's TensorBoard plugin on this file: ms a step by kind of work, of six steps."""
    trace = profile_of("kineto/resnet50_2021_stack_memory.json.gz")
    ns: dict[str, float] = {}
    for row in trace.summary(("kind", "step")).rows():
        if row["step"] is not None:
            ns[row["kind"]] = ns.get(row["kind"], 0) + row["gpu_ns"] / 6
    copies = ns.pop("memcpy"), ns.pop("memset")
    assert [round(each / 1000) for each in (sum(ns.values()), *copies)] == [98_589, 1_915, 89]
    phases = {row["phase"]: row["step_ns"] / 1e6 for row in trace.summary("phase").rows()}
    expected = {"backward": 64.4, "forward": 32.7, "optimizer": 1.3, "zero_grad": 0.2, "copy": 2.0}
    assert phases == pytest.approx(expected, abs=0.06)
    kernels = {row["phase"]: row["kernels"] / 6 for row in trace.summary("phase").rows()}
    assert kernels == {
        "backward": 538, "forward": 280, "optimizer": 483, "zero_grad": 161, "copy": 54,
    }  # fmt: skip
