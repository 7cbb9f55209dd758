"""The time line of a step on small captures."""

from pathlib import Path

import numpy as np
import pytest
from bench import generate

import fastprof
from fastprof.analysis.timeline.build import StepTimelines
from fastprof.analysis.timeline.lanes import LEVELS, TimeWindow, merged, pixel_for, single
from fastprof.model.arrays import Int32
from fastprof.page.section import PageSource, Section
from fastprof.page.sections.timeline import LONGEST, arrays_of, planes, section
from support.commands import run
from support.exports import Export
from support.kineto_files import KinetoFile
from support.step_timelines import check_merged, numbers, read_back, rows

US = 1000


def trained(n_steps: int = 3, slow: int = 1) -> KinetoFile:
    """Steps of 100 us: a forward and a backward kernel each; one step is 50 us longer."""
    trace, at = KinetoFile(), 0
    for step in range(n_steps):
        late = 50 if step == slow else 0
        us = [(at + each) * US for each in range(151)]
        trace.annotation(us[0], us[99 + late], f"ProfilerStep#{step}")
        trace.op(us[5], us[20], "aten::mm", dims=[[2, 3], [3, 4]], types=["float"] * 2, seq=step)
        trace.launch(us[8], us[12], corr=10 * step + 1)
        trace.kernel(us[30], us[50], corr=10 * step + 1, name="sgemm_nn")
        name = "autograd::engine::evaluate_function: MmBackward0"
        trace.op(us[40], us[70], name, 2, seq=step)
        trace.op(us[42], us[68], "MmBackward0", 2, seq=step)
        trace.launch(us[45], us[47], corr=10 * step + 2, tid=2)
        trace.kernel(us[60], us[90 + late], corr=10 * step + 2, name="sgemm_tn")
        at += 100 + late
    return trace


def opened(trace: KinetoFile | Export, tmp_path: Path) -> StepTimelines:
    name = "x.json" if isinstance(trace, KinetoFile) else "x.sqlite"
    return StepTimelines(fastprof.open(trace.write(tmp_path / name), copies=True))


def test_choices_are_the_median_the_slowest_and_the_first_step(tmp_path):
    choices = opened(trained(), tmp_path).choices()
    assert [choice.title for choice in choices] == [
        "step 2 (median)",
        "step 1 (slowest)",
        "step 0 (first)",
    ]
    assert all(choice.is_step for choice in choices)
    assert choices[1].window == TimeWindow(90 * US, 249 * US)
    assert choices[1].gpu == TimeWindow(90 * US, 240 * US)


def test_a_step_has_its_work_ranges_and_calls(tmp_path):
    timelines = opened(trained(), tmp_path)
    timeline = timelines.between(timelines.choices()[2].window)
    assert [row[:2] + row[3:] for row in rows(timeline, "work")] == [
        (30 * US, 20 * US, "gemm"),
        (60 * US, 30 * US, "gemm"),
    ]
    assert [row.name for row in rows(timeline, "ranges", tid=1, level=1)] == ["aten::mm"]
    assert [row.name for row in rows(timeline, "ranges", tid=2, level=1)] == ["MmBackward0"]
    assert [row[:2] for row in rows(timeline, "calls")] == [(8 * US, 4 * US), (45 * US, 2 * US)]
    assert sum(row.length for row in rows(timeline, "idle")) == (10 + 40) * US


def test_of_many_lanes_the_busiest_threads_are_kept(tmp_path, monkeypatch):
    export = Export()
    for tid in range(1, 8):  # threads 3 and 6 are the busiest, and equally busy
        length = (tid % 3 * -1 + 3) * US
        export.push_pop(0, length, "outer", tid=tid)
        export.push_pop(100, length - 100, "inner", tid=tid)
        export.launch(200, 400, corr=tid, tid=tid)
        export.kernel(10 * tid * US, 10 * tid * US + US, corr=tid)
    timelines = opened(export, tmp_path)
    window = TimeWindow(0, 100 * US)
    complete = timelines.between(window)
    n_threads = sum(lane.kind in ("ranges", "calls") for lane in complete.lanes)
    assert (n_threads, complete.n_omitted) == (21, 0)
    monkeypatch.setattr("fastprof.analysis.timeline.lanes.LANES", 4)
    cut = timelines.between(window)
    assert cut.lanes == complete.lanes[: len(complete.lanes) - n_threads + 4]
    assert [lane.tid for lane in cut.lanes[-4:]] == [3, 3, 3, 6]
    assert cut.n_omitted == n_threads - 4


def test_work_links_to_its_launch_and_its_forward_call(tmp_path):
    timelines = opened(trained(), tmp_path)
    timeline = timelines.between(timelines.choices()[2].window)
    events = timeline.events
    (work,) = (
        o for lane, o in zip(timeline.lanes, timeline.rows, strict=True) if lane.kind == "work"
    )
    forward, backward = range(work.start, work.stop)
    assert events.start[timeline.link[work]].tolist() == [8 * US, 45 * US]
    assert timeline.forward[work].tolist() == [-1, forward]
    idle = timeline.rows[[lane.kind for lane in timeline.lanes].index("idle")]
    assert set(timeline.link[idle].tolist()) == {backward, -1}  # the next step is not included


def test_without_steps_a_long_capture_begins_with_its_first_stretch(tmp_path):
    trace = KinetoFile()
    for i in range(100):
        trace.launch(i * 1000, i * 1000 + 100, corr=i + 1)
        trace.kernel(i * 1000 + 200, i * 1000 + 700 + i, corr=i + 1, name=f"k{i}")
    timelines = opened(trace, tmp_path)
    (everything,) = timelines.choices("none")
    assert (everything.title, everything.is_step) == ("entire capture", False)
    start, everything = timelines.choices("none", most=40)
    assert start.title == "start of the capture"
    assert everything.window == TimeWindow(0, 99_799)
    timeline = timelines.between(start.window, 40)
    assert timeline.pixel == 0
    assert 0 < len(rows(timeline, "work")) <= 10


def test_ranges_below_the_deepest_level_are_counted(tmp_path):
    trace = KinetoFile()
    for i in range(LEVELS + 6):
        trace.op(i, 1000 - i, f"r{i}")
    timelines = opened(trace, tmp_path)
    timeline = timelines.between(TimeWindow(0, 1000))
    assert [len(rows(timeline, "ranges", level=i)) for i in range(LEVELS)] == [1] * LEVELS
    assert timeline.n_deep == 6


def events_of(start: list[int], length: list[int], what: list[int]) -> tuple[Int32, object]:
    begin = np.array(start, np.int64)
    return single(begin, begin + np.array(length), np.array(what, np.int32), np.arange(len(start)))


def test_neighbours_in_a_pixel_are_merged():
    events = events_of([0, 3, 5, 8, 20, 22, 40], [2, 2, 2, 9, 1, 3, 4], [0, 1, 1, 0, 0, 1, 1])
    runs = merged(events, 8, np.array([0, 1], np.int32))
    assert runs.events.start.tolist() == [0, 8, 20, 40]
    assert runs.events.end.tolist() == [7, 17, 25, 44]
    assert runs.events.busy.tolist() == [6, 9, 4, 4]
    assert runs.events.counts.tolist() == [3, 1, 2, 1]
    assert runs.events.what.tolist() == [1, 0, 1, 1]  # of the kind with most time
    assert runs.events.row.tolist() == [1, 3, 5, 6]  # its longest event
    assert runs.place.tolist() == [0, 0, 0, 1, 2, 2, 3]


def test_a_gap_of_a_pixel_is_kept():
    events = events_of([0, 9, 11], [1, 1, 1], [0, 0, 0])
    assert merged(events, 16, np.zeros(1, np.int32)).events.counts.tolist() == [3]
    assert merged(events, 8, np.zeros(1, np.int32)).events.counts.tolist() == [1, 2]
    wide = events_of([0, 15], [1, 1], [0, 0])
    assert merged(wide, 8, np.zeros(1, np.int32)).events.counts.tolist() == [1, 1]


@pytest.mark.parametrize("seed", range(20))
def test_runs_of_random_events_keep_time_and_gaps(seed):
    random = np.random.default_rng(seed)
    n = 20_000
    gap = random.integers(0, 40, n) * (random.random(n) < 0.3) + (random.random(n) < 0.01) * 5000
    length = random.integers(0, 50, n) + (random.random(n) < 0.01) * random.integers(0, 9000, n)
    end = np.cumsum(gap + length)
    what = random.integers(0, 30, n).astype(np.int32)
    events = single(end - length, end, what, np.arange(n))
    kinds = (np.arange(30) % 4).astype(np.int32)
    pixel = pixel_for([events], int(end[-1]), 3000)
    runs = merged(events, pixel, kinds).events
    assert len(runs.start) <= 3000
    assert runs.busy.sum() == length.sum()
    assert runs.counts.sum() == n
    first = np.cumsum(runs.counts) - runs.counts
    for begin, count, what_of_run in zip(first[:300], runs.counts, runs.what, strict=False):
        own = slice(begin, begin + count)
        ns = [int((length[own] + 1)[kinds[what[own]] == kind].sum()) for kind in range(4)]
        assert ns[kinds[what_of_run]] == max(ns)
        inside = gap[begin + 1 : begin + count]
        assert inside.max(initial=0) < pixel
        assert length[own].max() < pixel or count == 1


def test_arrays_of_a_page_are_the_events(tmp_path):
    timelines = opened(trained(), tmp_path)
    lines = [timelines.between(choice.window) for choice in timelines.choices()]
    lines.append(timelines.between(TimeWindow(0, 400 * US), 5))
    assert lines[-1].pixel > 0
    data, arrays = arrays_of(lines)
    for i, line in enumerate(lines):
        result = read_back(data, arrays, i)
        assert result["start"].tolist() == (line.events.start - line.window.start).tolist()
        assert result["end"].tolist() == (line.events.end - line.window.start).tolist()
        assert result["link"].tolist() == line.link.tolist()
        assert result["forward"].tolist() == line.forward.tolist()
        assert ("count" in result) == (line.pixel > 0)
    assert result["count"].tolist() == line.events.counts.tolist()
    titles = [row.name for kind in ("idle", "work") for row in rows(lines[0], kind)]
    assert [each for each in read_back(data, arrays, 0)["title"] if each in titles] == titles


@pytest.mark.parametrize("values", [[], [0], [255, 256], [2**40 + 7, 3, 0], [65535]])
def test_planes_hold_large_numbers(values):
    raw = planes(np.array(values, np.int64))
    assert numbers(raw, len(values)).tolist() == values


def test_long_names_are_cut_in_the_middle(tmp_path):
    trace = KinetoFile().launch(0, 5, corr=1).kernel(10, 20, corr=1, name="k" * 100_000 + "end")
    data, _ = arrays_of([opened(trace, tmp_path).between(TimeWindow(0, 20))])
    (name,) = (text for text in data["texts"] if text.startswith("kk"))
    assert len(name) <= LONGEST + 2
    assert name.endswith("end")


def test_a_long_step_is_merged_to_the_limit(tmp_path):
    generate.generate(tmp_path / "x.sqlite", 20_000)
    timelines = StepTimelines(fastprof.open(tmp_path / "x.sqlite", copies=True))
    window = timelines.choices("none")[-1].window
    exact = timelines.between(window, 1 << 40)
    assert exact.n_recorded > 100_000
    for most in (1000, 10_000):
        merged = timelines.between(window, most)
        check_merged(merged, exact, most)
        assert most / 4 < len(merged.events.start) <= 3 * most


def section_of(path: Path, copies: bool = True) -> Section:
    return section(PageSource(fastprof.open(path, copies=copies)))


def test_the_table_has_the_time_of_each_lane_inside_the_step(tmp_path):
    made = section_of(trained().write(tmp_path / "x.json"))
    caption, table = made.folded[0]
    assert caption == "Time of step 2 (median) by lane"
    result = {(row["lane"], row["kind"]): (row["events"], row["ns"]) for row in table.rows()}
    assert result["GPU 0, stream 7, process 100", "gemm"] == (2, 50 * US)
    idle = sum(ns for (lane, _), (_, ns) in result.items() if lane == "GPU 0, idle")
    assert idle == 50 * US  # from the end of the work of the step before
    assert not made.missing


def test_the_section_tells_what_is_missing(tmp_path):
    host = section_of(KinetoFile().op(0, 100, "aten::mm").write(tmp_path / "host.json"))
    assert any("No GPU work" in each for each in host.missing)
    gpu = section_of(KinetoFile().kernel(0, 100, corr=1).write(tmp_path / "gpu.json"))
    assert any("No API calls" in each for each in gpu.missing)
    assert any("No ranges" in each for each in gpu.missing)
    assert any("no steps" in each for each in gpu.lead)
    empty = section_of(Export().write(tmp_path / "empty.sqlite"))
    assert not empty.charts
    assert any("neither GPU work nor ranges" in each for each in empty.missing)


def test_dict_lines_have_no_time_line(tmp_path):
    trace = trained().write(tmp_path / "x.json")
    (tmp_path / "net.dict").write_bytes(run("parse", trace).stdout)
    made = section_of(tmp_path / "net.dict", copies=False)
    assert not made.charts
    assert any("Dict lines" in each for each in made.missing)
