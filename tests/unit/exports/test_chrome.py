"""Chrome JSON of built captures: the events of torch.profiler, read again by fastprof."""

import json

import pytest

import fastprof
from fastprof.exports.chrome.host import quoted
from support.exports import Export
from support.kineto_files import KinetoFile

SECOND = 1_000_000_000


def events(file, tmp_path, **options):
    out = tmp_path / "out.json"
    fastprof.open(file, copies=True).export(out, to="chrome", **options)
    return json.loads(out.read_bytes().decode("ascii"))["traceEvents"]


def of(found, category):
    return [event for event in found if event.get("cat") == category]


def one_kernel():
    export = Export().gpu()
    export.push_pop(0, 100, "layer:one", tid=1)
    export.push_pop(5, 90, "aten::mm, seq = 4, sizes = [[2, 3], [3, 4]]", tid=1)
    export.launch(10, 20, corr=7, tid=1)
    export.kernel(1030, 2045, corr=7, name="sgemm", grid=(2, 3, 4))
    return export


def test_a_kernel_has_the_arguments_of_torch_profiler(tmp_path):
    result = events(one_kernel().write(tmp_path / "x.sqlite"), tmp_path)
    (kernel,) = of(result, "kernel")
    assert (kernel["ph"], kernel["name"], kernel["ts"], kernel["dur"]) == (
        "X",
        "sgemm",
        1.03,
        1.015,
    )
    assert (kernel["pid"], kernel["tid"]) == (0, 7)
    args = kernel["args"]
    assert args["grid"] == [2, 3, 4] and args["block"] == [128, 1, 1]
    assert args["correlation"] == 7 and args["registers per thread"] == 32
    assert (args["op"], args["layer"], args["FLOPs"]) == ("mm", "one", 48)
    (op,) = of(result, "cpu_op")
    assert op["name"] == "aten::mm" and op["args"]["External id"] == args["External id"]
    assert op["args"]["Input Dims"] == [[2, 3], [3, 4]]
    assert op["args"]["Sequence number"] == 4
    assert [each["name"] for each in of(result, "user_annotation")] == ["layer:one"]
    (call,) = of(result, "cuda_runtime")
    assert call["args"]["correlation"] == 7 and call["dur"] == 0.01
    assert call["name"] == "cudaLaunchKernel"
    assert [event["ph"] for event in of(result, "ac2g")] == ["s", "f"]


def test_processes_have_ids_of_their_own(tmp_path):
    """One process per file in torch.profiler: its reader joins by correlation alone."""
    export = Export()
    for pid, start in ((1, 0), (2, 1000)):
        export.launch(start, start + 5, corr=9, tid=1, pid=pid)
        export.kernel(start + 10, start + 20, corr=9, pid=pid)
    file = export.write(tmp_path / "x.sqlite")
    result = events(file, tmp_path)
    assert len({event["args"]["correlation"] for event in of(result, "kernel")}) == 2
    profile = fastprof.open(tmp_path / "out.json")
    assert profile.kernels["pid"].tolist() == [1, 2]
    assert profile.kernels["launch_start"].tolist() == [0, 1000]


def test_calls_of_unknown_threads(tmp_path):
    export = Export().launch(0, 5, corr=1, tid=1, globalTid=None).kernel(9, 12, corr=1)
    export.push_pop(0, 20, "lost", tid=1, globalTid=None)
    result = events(export.write(tmp_path / "x.sqlite"), tmp_path)
    assert len(of(result, "kernel")) == 1


def test_threads_without_numbers_remain_distinct(tmp_path):
    file = KinetoFile().op(0, 10, "aten::mul", tid="one").op(5, 15, "aten::add", tid="two")
    result = events(file.write(tmp_path / "x.json"), tmp_path)
    assert len({event["tid"] for event in of(result, "cpu_op")}) == 2


@pytest.mark.parametrize("corr", [2**31 - 1, 2**32, 2**62, 2**63 - 1])
def test_ids_of_any_size(corr, tmp_path):
    export = Export()
    for pid in (1, 2):
        export.launch(0, 5, corr=corr, tid=1, pid=pid).kernel(10, 20, corr=corr, pid=pid)
    result = events(export.write(tmp_path / "x.sqlite"), tmp_path)
    assert len({event["args"]["correlation"] for event in of(result, "kernel")}) == 2


def test_forward_and_backward_are_linked(tmp_path):
    file = KinetoFile().op(0, 10, "aten::mul", tid=1, seq=5)
    file.op(20, 40, "autograd::engine::evaluate_function: MulBackward0", tid=2, seq=5)
    file.arrow(1, (0, 1), (20, 2))
    file.launch(22, 25, corr=1, tid=2).kernel(30, 35, corr=1)
    result = events(file.write(tmp_path / "x.json"), tmp_path)
    times = [(event["ph"], event["tid"], event["ts"]) for event in of(result, "fwdbwd")]
    assert times == [("s", 1, 0.0), ("f", 2, 0.02)]


def test_times_are_exact_to_the_nanosecond(tmp_path):
    start = 1_700_000_000 * SECOND + 123_456_789
    file = Export().kernel(start, start + 987_654_321, corr=1).write(tmp_path / "x.sqlite")
    events(file, tmp_path)
    profile = fastprof.open(tmp_path / "out.json")
    assert profile.kernels["start"].tolist() == [start]
    assert profile.kernels["sil"].tolist() == [987_654_321]


def test_times_before_zero_shift_all(tmp_path):
    file = Export().kernel(-50, -20, corr=1).kernel(10, 20, corr=2).write(tmp_path / "x.sqlite")
    assert [event["ts"] for event in of(events(file, tmp_path), "kernel")] == [0.0, 0.06]


@pytest.mark.parametrize("name", ["", 'a"b\\', "a\x00b", "</script>", "\ud800", "😀ü"])
def test_names_of_any_text(name, tmp_path):
    file = KinetoFile().annotation(0, 9, name).kernel(1, 2, 1, name=name)
    file.named("thread_name", name, tid=1).launch(0, 1, 1)
    result = events(file.write(tmp_path / "x.json"), tmp_path)
    expected = name.replace("\ud800", "\ufffd")  # by the reader
    assert [each["name"] for each in of(result, "kernel")] == [expected]


def test_lone_surrogates_become_question_marks():
    assert quoted("a\ud800") == '"a?"'
    assert json.loads(quoted({"\udfff": ["\ud800", 1, "😀"]})) == {"?": ["?", 1, "😀"]}


def test_ranges_never_closed_have_no_duration(tmp_path):
    export = one_kernel().push_pop(50, None, "open", tid=1)
    result = events(export.write(tmp_path / "x.sqlite"), tmp_path)
    durations = [event.get("dur") for event in of(result, "user_annotation")]
    assert durations == [0.1, None]


def test_empty_captures_are_valid(tmp_path):
    empty = Export().write(tmp_path / "x.sqlite", with_tables=["CUPTI_ACTIVITY_KIND_KERNEL"])
    assert [event["name"] for event in events(empty, tmp_path)] == ["Record Window End"]
    assert len(fastprof.open(tmp_path / "out.json")) == 0


def test_where_selects_work_and_the_host_during_it(tmp_path):
    export = one_kernel().kernel(5000, 6000, corr=8, stream=9).push_pop(9000, 9100, "later", tid=1)
    result = events(export.write(tmp_path / "x.sqlite"), tmp_path, where=["stream=7"])
    assert len(of(result, "kernel")) == 1
    assert [each["name"] for each in of(result, "user_annotation")] == ["layer:one"]


def test_steps_are_annotations_of_torch_profiler(tmp_path):
    export = Export()
    for i in range(4):
        export.push_pop(i * 100, i * 100 + 90, f"step {i}", tid=1)
        export.launch(i * 100 + 5, i * 100 + 9, corr=i, tid=1)
        export.kernel(i * 100 + 20, i * 100 + 60, corr=i)
    file = export.write(tmp_path / "x.sqlite")
    result = events(file, tmp_path, steps="range:step")
    names = [event["name"] for event in of(result, "user_annotation") if event["tid"] == "steps"]
    assert names == [f"ProfilerStep#{i}" for i in range(4)]
    profile = fastprof.open(tmp_path / "out.json")
    assert profile.find_steps().source == "ProfilerStep"
    assert profile.kernels["step"].tolist() == [0, 1, 2, 3]
    assert not any(
        event["tid"] == "steps" for event in of(events(file, tmp_path), "user_annotation")
    )
