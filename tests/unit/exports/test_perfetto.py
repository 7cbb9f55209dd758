"""Perfetto traces of built captures: tracks, nesting, flows, arguments, hostile input."""

import gzip

import pytest

import fastprof
from fastprof.errors import ReportError, StepsError
from fastprof.exports.perfetto import packets as proto
from support import perfetto_traces
from support.exports import Export
from support.kineto_files import KinetoFile


def written(file, tmp_path, **options):
    out = tmp_path / "x.pftrace"
    fastprof.open(file, copies=True).export(out, to="perfetto", **options)
    return perfetto_traces.read(out)


def two_kernels():
    export = Export().gpu()
    export.push_pop(0, 100, "layer:one", tid=1)
    export.push_pop(5, 90, "mm, seq = 4, sizes = [[2, 3], [3, 4]]", tid=1)
    export.launch(10, 20, corr=7, tid=1)
    export.launch(30, 40, corr=8, tid=1).kernel(30, 45, corr=7, name="sgemm", stream=7)
    export.kernel(50, 52, corr=8, name="sgemm", stream=9)
    return export


def test_tracks_slices_flows_and_arguments(tmp_path):
    trace = written(two_kernels().write(tmp_path / "x.sqlite"), tmp_path)
    first, second = trace.on("GPU")
    assert trace.path(first.track)[1:] == ("GPU 0 (NVIDIA A100-SXM4-80GB)", "stream 7")
    assert trace.path(second.track)[-1] == "stream 9"
    assert (first.start, first.end, first.name, first.category) == (30, 45, "sgemm", "kernel")
    expected = {"op": "mm", "layer": "one", "shapes": "M=4,N=2,K=3,na,", "class": "gemm",
                "grid": "1, 1, 1", "correlation": 7, "launch latency (ns)": 20}  # fmt: skip
    result = {name: value for name, value in first.args.items() if name in expected}
    assert result == expected
    assert first.args["FLOPs"] + second.args["FLOPs"] == 48
    host = [(each.name, each.category, each.depth) for each in trace.on("thread")]
    assert host == [
        ("one", "layer", 0),
        ("mm", "operator", 1),
        ("cudaLaunchKernel_v7000", "api", 2),
        ("cudaLaunchKernel_v7000", "api", 2),
    ]
    assert [(start.start, end.start) for start, end in trace.flows.values()] == [(10, 30), (30, 50)]


def test_overlapping_kernels_of_a_stream_get_their_own_track(tmp_path):
    export = Export()
    for i, (start, end) in enumerate([(0, 100), (50, 60), (70, 200), (100, 110), (110, 110)]):
        export.kernel(start, end, corr=i, stream=7)
    trace = written(export.write(tmp_path / "x.sqlite"), tmp_path)
    names = {slice_.start: trace.path(slice_.track)[-1] for slice_ in trace.slices}
    assert names == {0: "stream 7", 50: "stream 7 (overlap 1)", 70: "stream 7 (overlap 1)",
                     100: "stream 7", 110: "stream 7"}  # fmt: skip
    assert {slice_.depth for slice_ in trace.slices} == {0}
    assert sum(slice_.end - slice_.start for slice_ in trace.slices) == 250


def test_ranges_that_cross_get_their_own_track(tmp_path):
    export = two_kernels().start_end(50, 150, "across", tid=1)
    trace = written(export.write(tmp_path / "x.sqlite"), tmp_path)
    (across,) = (slice_ for slice_ in trace.slices if slice_.name == "across")
    assert (across.start, across.end) == (50, 150)
    assert trace.path(across.track)[-1].endswith("(overlap 1)")


def test_ranges_never_closed_and_on_two_threads(tmp_path):
    export = two_kernels().push_pop(60, None, "open", tid=1).start_end(1, 99, "handed", 1, 2)
    trace = written(export.write(tmp_path / "x.sqlite"), tmp_path)
    ends = {slice_.name: slice_.end for slice_ in trace.slices}
    assert ends["open"] is None
    assert ends["handed"] == 99
    assert [each.name for each in trace.on("ranges across threads")] == ["handed"]


def test_times_before_zero_shift_the_clock(tmp_path):
    export = Export().kernel(-50, -20, corr=1).kernel(10, 20, corr=2)
    trace = written(export.write(tmp_path / "x.sqlite"), tmp_path)
    assert [(slice_.start, slice_.end) for slice_ in trace.slices] == [(0, 30), (60, 70)]


@pytest.mark.parametrize("name", ["", "a\x00b", "</script>", "\x01\x02", "ü" * 5000])
def test_names_of_any_text(name, tmp_path):
    export = Export().kernel(0, 5, corr=1, name=name).launch(0, 1, corr=1, tid=1)
    export.push_pop(0, 9, name, tid=1)
    trace = written(export.write(tmp_path / "x.sqlite"), tmp_path)
    assert len(trace.slices) == 3


def test_lone_surrogates_become_question_marks():
    assert proto.text(2, "k\udfff") == b"\x12\x02k?"


def test_empty_captures_and_those_without_a_host(tmp_path):
    empty = Export().write(tmp_path / "x.sqlite", with_tables=["CUPTI_ACTIVITY_KIND_KERNEL"])
    trace = written(empty, tmp_path)
    assert trace.slices == []
    export = Export().kernel(5, 9, corr=None).copy(10, 12, None, 1, 64)
    trace = written(export.write(tmp_path / "y.sqlite"), tmp_path)
    assert [slice_.category for slice_ in trace.slices] == ["kernel", "memcpy"]
    assert trace.flows == {}


def test_where_selects_work_and_the_host_during_it(tmp_path):
    export = two_kernels().push_pop(1000, 1100, "later", tid=1)
    file = export.write(tmp_path / "x.sqlite")
    trace = written(file, tmp_path, where=["stream=9"])
    assert [each.start for each in trace.on("GPU")] == [50]
    assert [(start.start, end.start) for start, end in trace.flows.values()] == [(30, 50)]
    assert {slice_.name for slice_ in trace.slices} == {
        "one",
        "mm",
        "sgemm",
        "cudaLaunchKernel_v7000",
    }
    assert [each.start for each in trace.on("thread") if each.category == "api"] == [30]
    assert written(file, tmp_path, where=["op=none"]).slices == []


def test_steps_are_a_track_of_each_process(tmp_path):
    export = Export()
    for i in range(4):
        export.push_pop(i * 100, i * 100 + 90, f"step {i}", tid=1)
        export.launch(i * 100 + 5, i * 100 + 9, corr=i, tid=1)
        export.kernel(i * 100 + 20, i * 100 + 60, corr=i)
    file = export.write(tmp_path / "x.sqlite")
    trace = written(file, tmp_path, steps="range:step")
    steps = trace.on("steps")
    assert [(step.name, step.start, step.end) for step in steps] == [
        (f"step {i}", i * 100, i * 100 + 90) for i in range(4)
    ]
    assert [each.args["step"] for each in trace.on("GPU")] == [0, 1, 2, 3]
    assert written(file, tmp_path, steps="none").on("steps") == []
    with pytest.raises(StepsError):
        written(file, tmp_path, steps="range:nowhere")


def test_memory_is_a_counter(tmp_path):
    file = KinetoFile().op(0, 100, "aten::empty").kernel(1, 2, 1)
    for time, total in ((10, 512), (20, 1024), (30, 0)):
        args = {"Device Type": 1, "Device Id": 0, "Total Allocated": total, "Total Reserved": 2048}
        file.memory(time, 512, Addr=1, **args)
    trace = written(file.write(tmp_path / "x.json"), tmp_path)
    result = {trace.path(uuid)[-1]: values for uuid, values in trace.counters.items()}
    assert result == {
        "GPU 0 memory allocated": [(10, 512), (20, 1024), (30, 0)],
        "GPU 0 memory reserved": [(10, 2048), (20, 2048), (30, 2048)],
    }


def test_a_graph_launch_has_a_flow_to_each_of_its_kernels(tmp_path):
    export = Export().launch(0, 5, corr=1, tid=1, name="cudaGraphLaunch_v10000")
    for i in range(3):
        export.kernel(10 * i + 10, 10 * i + 15, corr=1, graph_node=i)
    trace = written(export.write(tmp_path / "x.sqlite"), tmp_path)
    assert sorted(end.start for _, end in trace.flows.values()) == [10, 20, 30]
    assert len({id(start) for start, _ in trace.flows.values()}) == 1


def test_files_are_compressed_by_name(tmp_path):
    profile = fastprof.open(two_kernels().write(tmp_path / "x.sqlite"))
    for name in ("x.pftrace", "x.pftrace.gz"):
        profile.export(tmp_path / name, to="perfetto")
    plain, packed = ((tmp_path / name).read_bytes() for name in ("x.pftrace", "x.pftrace.gz"))
    assert gzip.decompress(packed) == plain


def test_unknown_formats_and_options_are_rejected(tmp_path):
    profile = fastprof.open(two_kernels().write(tmp_path / "x.sqlite"))
    with pytest.raises(ReportError, match="unknown export format 'perfeto'; did you mean perfetto"):
        profile.export(tmp_path / "x", to="perfeto")
    with pytest.raises(ReportError, match="perfetto has no option 'weight'; its options: steps"):
        profile.export(tmp_path / "x", to="perfetto", weight="ns")
    assert not (tmp_path / "x").exists()
