"""The recorder's own time: measured before the recording, or estimated from its events."""

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.analysis.recorder import recorder_time, unrecorded_step, without_recorder
from fastprof.api.profile import Profile
from fastprof.model.metadata import UNRECORDED, Unrecorded
from fastprof.model.numbers import quantity
from support import torch_server
from support.commands import run
from support.exports import Export
from support.kineto_files import KinetoFile
from unit.analysis.simulated_gpu import with_gpu

PROGRAM = Path(__file__).with_name("recorder_loop.py")
HOST_FINDINGS = ("host-bound", "launch-bound")
US = 1000
STEPS, LAUNCHES, EVERY = 5, 20, 100 * US
KERNEL = 10 * US
STEP = LAUNCHES * EVERY
FRAMES = 30  # calls of Python functions before each launch
# bench/recorder_cost.py: the least cost of an event, ns, and how many times that it may be.
FUNCTION, OPERATOR, MOST = 150, 300, 3


def training(
    path: Path, frames: int = FRAMES, kernel: int = KERNEL, name: str = "trace.json", **root: Any
) -> Profile:
    """Steps of launches every 100 us, behind calls of Python functions."""
    trace = KinetoFile(**root)
    corr = 0
    for step in range(STEPS):
        begin = step * STEP
        trace.annotation(begin, begin + STEP - 1, f"ProfilerStep#{step + 10}")
        for launch in range(LAUNCHES):
            at, corr = begin + launch * EVERY, corr + 1
            for frame in range(frames):
                start = at + 60 * US + frame * US
                trace.python(start, start + US // 2, f"train.py({frame}): step")
            trace.python(at + 91 * US, at + 92 * US - 1, "nn.Module: Net_0")
            trace.op(at + 92 * US, at + 98 * US, "aten::mul")
            trace.launch(at + 94 * US, at + 97 * US, corr)
            trace.kernel(at + 99 * US, at + 99 * US + kernel, corr)
    return fastprof.open(trace.write(path / name))


def measured(median_ns: int, steps: int = 4) -> dict[str, Any]:
    return {UNRECORDED: {"steps": steps, "median_ns": median_ns}}


def test_the_steps_before_the_recording_are_told_beside_the_recorded_ones(tmp_path):
    profile = training(tmp_path, **measured(1_400_000))
    assert profile.about.unrecorded == Unrecorded(4, 1_400_000)
    line = (
        "recorded 2 ms, without the recorder 1.4 ms a step (medians, of 4 steps before it on the "
        "host)"
    )
    assert line in profile.report("overview").lead
    assert line in profile.steps().lead
    assert line in profile.report("whatif").lead
    assert line in profile.report("idle").notes
    assert profile.report("overview").facts["step_unrecorded_ns"] == 1_400_000


def test_info_says_by_how_much_recording_stretched_a_step(tmp_path):
    training(tmp_path, **measured(1_400_000))
    path = tmp_path / "trace.json"
    info = json.loads(run("info", "--json", path).stdout)
    assert info["unrecorded"] == {"steps": 4, "median_ns": 1_400_000}
    words = " ".join(run("info", path).stdout.decode().split())
    assert (
        "recorder a step took 1.400 ms before the recording (median of 4), 2.000 ms in it (median "
        "of 5): 1.4 times as long"
    ) in words
    after = {"fastprof_after": {"steps": 2, "median_ns": 1_500_000}}
    training(tmp_path, **measured(1_400_000), **after)
    info = json.loads(run("info", "--json", path).stdout)
    assert info["unrecorded"]["after"] == {"steps": 2, "median_ns": 1_500_000}
    later = "of 5): 1.4 times as long, 1.500 ms after it (median of 2)"
    assert later in " ".join(run("info", path).stdout.decode().split())
    training(tmp_path, name="other.json")
    other = tmp_path / "other.json"
    assert json.loads(run("info", "--json", other).stdout)["unrecorded"] is None
    assert b"recorder " not in run("info", other).stdout


def test_a_replay_starts_from_the_unrecorded_step(tmp_path):
    profile = training(tmp_path, **measured(1_400_000))
    result = profile.report("whatif", scale="host:0.5")
    assert result.facts["without_recorder_ns"] == pytest.approx(1_400_000, rel=0.005)
    rows = {row["name"]: row for row in result.rows()}
    assert rows["without the recorder"]["wall_ns"] == result.facts["without_recorder_ns"]
    # Changes save of the unrecorded step: half of its host time, not of the recorded one.
    half = rows["scale host:0.5"]
    assert half["wall_ns"] + half["saved_ns"] == pytest.approx(1_400_000, rel=0.005)
    as_recorded = training(tmp_path).report("whatif", scale="host:0.5").rows()
    assert half["saved_ns"] < 0.75 * next(
        row["saved_ns"] for row in as_recorded if row["name"] == "scale host:0.5"
    )
    assert result.facts["host_factor"] == pytest.approx(0.7, abs=0.03)


def test_savings_are_parts_of_a_step_without_the_recorder(tmp_path):
    profile = training(tmp_path, **measured(1_400_000))
    table, screen = profile.advise(), profile.report("overview")
    length = table.facts["without_recorder_ns"]
    assert length == pytest.approx(1_400_000, rel=0.005) and table.facts["step_ns"] == 2_000_000
    for row in (row for row in table.rows() if row["saving_ns"]):
        assert row["share"] == pytest.approx(row["saving_ns"] / length, abs=1e-6)
    assert table.total["share"] == pytest.approx(table.total["saving_ns"] / length, abs=1e-6)
    assert table.total["saving_ns"] <= length
    assert "of 1.40 ms a step (without the recorder)" in table.facts["answer"]
    text = table.text()
    shown = quantity(length, "ns")
    assert f"step 2 ms, without the recorder {shown}: all findings together save" in text
    assert "each saving is replayed without the recorder, after the findings above it" in text
    assert screen.facts["findings_of_ns"] == length
    assert f"of a step of {shown} without the recorder" in screen.text()
    idle = "idle times are as recorded; without the recorder, the GPU is idle 1.2 ms a step"
    assert idle in screen.lead and idle in profile.report("idle").notes
    assert idle not in profile.report("whatif").lead
    page = profile.report().html
    assert f"{shown} without the recorder" in page
    assert f"{table.total['share']:.0%} of the {shown} without the recorder" in page


def test_savings_are_parts_of_the_recorded_step_where_nothing_else_is_known(tmp_path):
    for facts in ({}, measured(2_000_000)):  # or the recorder makes no difference
        table = training(tmp_path, **facts).advise()
        assert table.facts["without_recorder_ns"] is None
        assert table.total["share"] == pytest.approx(table.total["saving_ns"] / 2e6, abs=1e-6)
        assert "of 2.00 ms a step for" in table.facts["answer"]


def loading(path: Path, loader: str, **root: Any) -> Profile:
    """Steps of 1000 us: 350 of a loader, a kernel from 400 on, and a wait for it."""
    trace = KinetoFile(**root)
    for step in range(STEPS):
        at, corr = step * 1000 * US, 2 * step + 1
        trace.annotation(at, at + 999 * US, f"ProfilerStep#{step + 10}")
        trace.annotation(at, at + 350 * US, f"enumerate(DataLoader)#{loader}.__next__")
        trace.launch(at + 380 * US, at + 390 * US, corr)
        trace.kernel(at + 400 * US, at + 990 * US, corr)
        trace.launch(at + 395 * US, at + 999 * US, corr + 1, name="cudaDeviceSynchronize")
    return fastprof.open(trace.write(path / "trace.json"))


def test_the_recorder_slows_down_a_loader_in_the_process_only(tmp_path):
    profile = loading(tmp_path, "_SingleProcessDataLoaderIter", **measured(800_000))
    within = profile.advise()
    line = "replayed without the recorder: the host's own time and data loading times 0."
    assert any(each.startswith(line) for each in profile.report("whatif").lead)
    (row,) = [row for row in within.rows() if row["id"] == "data-loading"]
    assert within.facts["without_recorder_ns"] == pytest.approx(800_000, rel=0.01)
    assert row["saving_ns"] == pytest.approx(350_000 * 0.5, rel=0.05)  # 200 of 400 us remain
    assert "350 us idle per step" in row["evidence"]
    assert "without the recorder 175 us" in row["evidence"]
    # Worker processes are not recorded: their batches come as late without the recorder.
    workers = loading(tmp_path, "_MultiProcessingDataLoaderIter", **measured(800_000)).advise()
    (row,) = [row for row in workers.rows() if row["id"] == "data-loading"]
    assert workers.facts["without_recorder_ns"] is None  # the rest of the host cannot explain it
    assert row["saving_ns"] == pytest.approx(350_000, rel=0.05)


def test_a_slow_step_is_not_the_recorders(tmp_path):
    """The host of the last step sleeps for 5 ms."""
    trace = training(tmp_path, **measured(1_400_000))
    slow = json.loads((tmp_path / "trace.json").read_text())
    last = (STEPS - 1) * STEP / US
    for event in slow["traceEvents"]:
        if event["ts"] > last + 1000:
            event["ts"] += 5000
        elif event["name"] == f"ProfilerStep#{STEPS + 9}":
            event["dur"] += 5000
    (tmp_path / "slow.json").write_text(json.dumps(slow))
    profile = fastprof.open(tmp_path / "slow.json")
    factors = [each.report("whatif").facts["host_factor"] for each in (trace, profile)]
    assert factors[0] == pytest.approx(factors[1], abs=0.02)


def test_findings_on_the_host_state_both_values(tmp_path):
    assert "without the recorder" not in evidence(training(tmp_path, frames=0))
    # Of 2 ms, 1.8 ms are idle, the last 0.1 ms in calls and their latency: of the recorder's
    # 0.6 ms, Python has 1.7 / 1.8.
    result = evidence(training(tmp_path, **measured(1_400_000)))
    assert "1.7 ms idle per step" in result
    assert "without the recorder 1.133 ms" in result and "estimate" not in result
    estimated = evidence(training(tmp_path))
    assert "1.7 ms idle per step" in estimated and "(estimate)" in estimated


def evidence(profile: Profile) -> str:
    rows = {row["id"]: row for row in profile.advise().rows()}
    return "; ".join(str(rows[name]["evidence"]) for name in HOST_FINDINGS if name in rows)


def test_the_estimate_counts_the_events_before_each_late_launch(tmp_path):
    profile = training(tmp_path)
    result = recorder_time(profile, profile.find_steps())
    assert result is not None and not result.is_measured
    least = LAUNCHES * ((FRAMES + 1) * FUNCTION + OPERATOR)
    assert sum(result.least.values()) == pytest.approx(least, rel=0.02)
    assert sum(result.most.values()) == pytest.approx(MOST * least, rel=0.02)
    assert result.least["host-bound"] > 0.9 * least  # the rest is in calls and their latency


def test_shapes_and_stacks_cost_more_and_no_more_than_the_wait(tmp_path):
    options = {"record_shapes": 1, "with_stack": 1}
    least, more = (
        recorder_time(profile, profile.find_steps()).least["host-bound"]
        for profile in (training(tmp_path, 0), training(tmp_path, 0, name="more.json", **options))
    )
    assert more > least > 0
    # Kernels take nearly all of the time: what is saved is at most what is idle.
    busy = training(tmp_path, kernel=EVERY - 2 * US, name="busy.json")
    idle = {row["cause"]: row["ns"] / STEPS for row in busy.report("idle").rows()}
    result = recorder_time(busy, busy.find_steps())
    assert sum(result.most.values()) <= 1.25 * sum(idle.values())  # the first gap has no step


def test_a_host_that_ran_ahead_tells_nothing(tmp_path):
    # The GPU alone needs 1.8 ms a step: steps that end every 1 ms on the host are not its steps.
    profile = training(tmp_path, kernel=90 * US, **measured(1_000_000))
    assert unrecorded_step(profile, profile.find_steps()) is None
    assert not any("without the recorder" in line for line in profile.steps().lead)
    assert profile.report("whatif").facts["without_recorder_ns"] is None


def test_unrecorded_steps_that_are_not_shorter_change_no_replay(tmp_path):
    profile = training(tmp_path, **measured(2_300_000))
    assert profile.report("whatif").facts["host_factor"] is None
    assert any("without the recorder 2.3 ms a step" in line for line in profile.steps().lead)
    assert without_recorder(profile, profile.find_steps(), {"host-bound": 1e6}) == (
        "without the recorder 1 ms"
    )


def test_other_steps_than_the_recorded_ones_are_not_compared(tmp_path):
    profile = training(tmp_path, **measured(1_400_000))
    assert unrecorded_step(profile, profile.find_steps("none")) is None


@pytest.mark.parametrize(
    "facts", [3, [], {}, {"steps": 0, "median_ns": 5}, {"steps": 4, "median_ns": "x"}]
)
def test_damaged_facts_are_ignored(facts, tmp_path):
    assert training(tmp_path, **{UNRECORDED: facts}).about.unrecorded is None


def test_a_trace_with_stacks_says_that_host_times_are_inflated(tmp_path):
    line = "recorded with call stacks (with_stack): host times are inflated, GPU times are not"
    stacks = training(tmp_path, record_shapes=1, with_stack=1)
    assert line in stacks.report("overview").lead and line in stacks.report("idle").notes
    plain = training(tmp_path, record_shapes=1, name="plain.json")
    assert line not in plain.report("overview").lead


def test_facts_beside_a_trace_of_nsys(tmp_path):
    export = Export().push_pop(0, 100, "a", 1).launch(10, 20, 1, 1).kernel(30, 60, 1)
    path = export.write(tmp_path / "trace.sqlite")
    assert fastprof.open(path).about.unrecorded is None
    recordings = [[{"unrecorded": {"steps": 4, "median_ns": ns}}] for ns in (10, 20, 40)]
    recordings += [[], [{"path": None}]]
    facts = {"processes": [{"recordings": recording} for recording in recordings]}
    (tmp_path / "run.json").write_text(json.dumps(facts))
    assert fastprof.open(path).about.unrecorded == Unrecorded(4, 20)
    (tmp_path / "other.sqlite").write_bytes(path.read_bytes())
    assert fastprof.open(tmp_path / "other.sqlite").about.unrecorded is None
    (tmp_path / "run.json").write_text("{")
    assert fastprof.open(path).about.unrecorded is None


def test_steps_of_a_real_loop_are_measured_and_calibrate_its_replay(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
    torch_server.run(PROGRAM, tmp_path, check=True)
    profile = fastprof.open(
        with_gpu(tmp_path / "recorded.json", tmp_path / "gpu.json", kernel_us=1.0)
    )
    before = profile.about.unrecorded
    assert before is not None and before.steps == 6  # the later half of 12
    lengths = [row["wall_ns"] for row in profile.steps().rows() if row["is_counted"]]
    assert before.median_ns < statistics.median(lengths)  # 4000 calls a step are recorded
    result = profile.report("whatif")
    if result.facts["host_factor"] is not None:  # a busy machine may stretch the steps tenfold
        assert result.facts["host_factor"] < 0.9
    assert any("recorded with call stacks" in line for line in result.lead)
    assert "without the recorder" in evidence(profile)


def test_a_recording_with_nvtx_keeps_the_steps_before_it(record_nvtx):
    pytest.importorskip("torch")
    recording = record_nvtx("""
        from fastprof.annotate.recorders import RangesRecorder

        recorder = RangesRecorder()
        for median_ns in (1500, 2500, "damaged"):  # recordings of three processes
            recorder.prepare(0, 1)
            recorder.unrecorded = {"steps": 5, "median_ns": median_ns}
            recorder.enter(3, True, True)
            recorder.enter(4, True, True)
            recorder.end(True)
    """)
    profile = fastprof.open(recording.path)
    assert profile.about.unrecorded == Unrecorded(5, 1500)
    # The mark is no range of the program's.
    assert [range_.text for range_ in recording.ranges if range_.domain is None] == [
        "ProfilerStep#3", "ProfilerStep#4"
    ] * 3  # fmt: skip
