"""Ranges and API calls with their times, and the call-path tree."""

import os

import pytest

import fastprof
from fastprof.cli import main
from fastprof.errors import BadInputError
from fastprof.model.trace import NEVER
from fastprof.profile.api_classes import class_of
from support.exports import Export
from support.kineto_files import KinetoFile
from support.nvprof_files import NvprofFile


def nsys():
    """An export in which the ranges of two threads, and calls in and outside of them, differ."""
    export = Export().push_pop(0, 100, "step 1", tid=1).push_pop(10, 90, "layer:a", tid=1)
    export.push_pop(5, 50, "DataLoader", tid=2, registered=True)
    export.push_pop(95, None, "open", tid=1).push_pop(120, 130, "step 2", tid=1)
    export.launch(20, 30, corr=7, tid=1).launch(22, 28, corr=8, tid=1, name="cuLaunchKernel")
    export.launch(60, 80, corr=9, tid=1, name="cudaDeviceSynchronize_v3020")
    export.launch(6, 9, corr=10, tid=3, name="cudaMalloc_v3020")
    return export.kernel(40, 70, corr=7).kernel(200, 210, corr=99)


def rows(table, *columns):
    values = [getattr(table, name) for name in columns]
    arrays = [value.array() if hasattr(value, "array") else value for value in values]
    return list(zip(*(array.tolist() for array in arrays), strict=True))


def test_ranges_have_times_and_nesting(tmp_path):
    profile = fastprof.open(nsys().write(tmp_path / "net.sqlite"))
    assert rows(profile.ranges, "start", "end", "tid", "pid", "text", "level", "parent") == [
        (0, 100, 1, 100, "step 1", 0, -1),
        (5, 50, 2, 100, "DataLoader", 0, -1),
        (10, 90, 1, 100, "layer:a", 1, 0),
        (95, NEVER, 1, 100, "open", 1, 0),
        (120, 130, 1, 100, "step 2", 1, 3),
    ]
    assert len(profile.ranges) == profile.ranges.n_own == 5


def test_all_api_calls_have_times_and_classes(tmp_path):
    profile = fastprof.open(nsys().write(tmp_path / "net.sqlite"))
    api = profile.api
    assert rows(api, "start", "end", "tid", "pid", "name", "call_class", "correlation") == [
        (6, 9, 3, 100, "cudaMalloc_v3020", "alloc", 10),
        (20, 30, 1, 100, "cudaLaunchKernel_v7000", "launch", 7),
        (22, 28, 1, 100, "cuLaunchKernel", "launch", 8),
        (60, 80, 1, 100, "cudaDeviceSynchronize_v3020", "sync", 9),
    ]
    assert profile.kernels["launch_end"].tolist() == [30, None]
    assert api.threads is profile.ranges.threads


def test_the_frames_of_kernels_index_the_ranges(tmp_path):
    profile = fastprof.open(nsys().write(tmp_path / "net.sqlite"))
    attribution = profile.source._attribution
    frame = attribution.frame_of_kernel[0]
    assert profile.ranges.text.at(attribution.frame_range[frame]) == "layer:a"


def test_traces_of_torch_have_them(tmp_path):
    trace = KinetoFile().op(0, 50, "aten::mm", dims=[[2, 3], [3, 4]], seq=4)
    trace.launch(10, 20, corr=7, cat="cuda_driver", name="cuLaunchKernel")
    trace.launch(8, 25, corr=7).kernel(30, 40, corr=7)
    trace.launch(60, 70, corr=8, name="cudaStreamSynchronize", tid=2)
    profile = fastprof.open(trace.write(tmp_path / "net.json.gz"))
    assert rows(profile.ranges, "start", "end", "name", "seq") == [(0, 50, "aten::mm", 4)]
    assert rows(profile.api, "start", "end", "tid", "call_class") == [
        (8, 25, 1, "launch"),
        (10, 20, 1, "launch"),
        (60, 70, 2, "sync"),
    ]
    assert profile.kernels["launch_end"].tolist() == [25]


def test_nvprof_files_have_them(tmp_path):
    file = NvprofFile().push_pop(0, 100, "mine", tid=1)
    file.launch(16, 18, corr=7, tid=1, cbid=307, driver=True).launch(10, 20, corr=7, tid=1)
    file.launch(30, 45, corr=8, tid=2, cbid=165).launch(50, 51, corr=9, tid=2, cbid=9999)
    profile = fastprof.open(file.kernel(40, 50, corr=7).write(tmp_path / "net.sql"))
    assert rows(profile.ranges, "start", "end", "text") == [(0, 100, "mine")]
    assert rows(profile.api, "start", "end", "tid", "name", "call_class") == [
        (10, 20, 1, "cudaLaunchKernel", "launch"),
        (16, 18, 1, "cuLaunchKernel", "launch"),
        (30, 45, 2, "cudaDeviceSynchronize", "sync"),
        (50, 51, 2, "cbid 9999", "other"),
    ]
    assert profile.kernels["launch_end"].tolist() == [20]


def test_ranges_of_capture_files_come_last(tmp_path):
    trace = KinetoFile().annotation(0, 500, "replay").launch(10, 20, 9, name="hipGraphLaunch")
    trace.kernel(100, 110, 9, "gather")
    lender = KinetoFile().annotation(0, 90, "capture", tid=5)
    lender.launch(1, 2, 1, tid=5, name="hipStreamBeginCapture")
    lender.launch(10, 20, 2, tid=5, name="hipLaunchKernel", kernel="gather")
    lender.launch(30, 31, 3, tid=5, name="hipStreamEndCapture")
    profile = fastprof.open(
        trace.write(tmp_path / "net.json"), graph_capture=lender.write(tmp_path / "capture.json")
    )
    (own, other) = rows(profile.ranges, "start", "end", "tid", "text")
    assert own == (0, 500, 1, "replay")
    assert other[1] - other[0] == 90 and other[2:] == (5, "capture")
    assert other[0] > own[0]
    assert profile.ranges.n_own == 1
    assert rows(profile.api, "start", "end", "tid", "name") == [(10, 20, 1, "hipGraphLaunch")]


def test_the_file_is_read_again_once_and_only_on_request(tmp_path):
    path = nsys().write(tmp_path / "net.sqlite")
    profile, other = fastprof.open(path), fastprof.open(path)
    assert profile.ranges is profile.ranges
    path.unlink()
    assert "launch_end" not in other.names and len(list(other.rows())) == 2
    assert profile.column("launch_end").at(0) == 30
    with pytest.raises(BadInputError, match="was changed since it was read; read it again"):
        _ = other.api


def test_a_changed_file_is_not_read_again(tmp_path):
    path = nsys().write(tmp_path / "net.sqlite")
    profile = fastprof.open(path)
    os.utime(path, ns=(1, 1))
    with pytest.raises(BadInputError, match="was changed since it was read"):
        _ = profile.ranges


def test_another_file_of_the_same_state_is_noticed(tmp_path):
    """Inode, size and modification time may be those of the file before."""
    for change in ("range", "launch"):
        path = nsys().write(tmp_path / f"{change}.json")
        profile = fastprof.open(path)
        other = nsys()
        if change == "range":
            other.push_pop(300, 310, "new", tid=1)
        else:
            other._rows["CUPTI_ACTIVITY_KIND_RUNTIME"][0]["start"] += 1
        other.write(tmp_path / "other.sqlite")
        source = profile.source
        file = source._readers[0].__closure__
        assert file is not None
        same = next(c.cell_contents for c in file if hasattr(c.cell_contents, "check"))
        same.path = str(tmp_path / "other.sqlite")
        same._before = same._now()
        with pytest.raises(BadInputError, match="was changed since it was read"):
            _ = profile.ranges
        (tmp_path / "other.sqlite").unlink()


def test_dict_lines_have_neither(tmp_path):
    path = tmp_path / "net.dict"
    profile = fastprof.open(nsys().write(tmp_path / "net.sqlite"))
    assert main(["parse", str(tmp_path / "net.sqlite"), "-o", str(path)]) == 0
    lines = fastprof.open(path)
    for name, contents in (
        ("ranges", "ranges and API calls"),
        ("api", "ranges and API calls"),
        ("paths", "call paths"),
    ):
        assert len(getattr(profile, name))
        with pytest.raises(BadInputError, match=f"which do not contain {contents}"):
            getattr(lines, name)


def test_launch_end_is_a_column_of_reports(tmp_path, capsysbinary):
    path = nsys().write(tmp_path / "net.sqlite")
    assert main(["prof", str(path), "--csv", "-c", "idx,launch_start,launch_end"]) == 0
    assert capsysbinary.readouterr().out.decode().splitlines()[1:] == [
        '"1","20","30"',
        '"2","na","na"',
    ]


def test_data_frames(tmp_path):
    pytest.importorskip("pandas")
    profile = fastprof.open(nsys().write(tmp_path / "net.sqlite"))
    frame = profile.ranges.to_pandas()
    assert list(frame) == ["start", "end", "tid", "pid", "text", "seq", "level", "parent"]
    assert frame["end"].isna().tolist() == [False, False, False, True, False]
    frame = profile.api.to_pandas()
    assert list(frame) == ["start", "end", "tid", "pid", "name", "class", "correlation"]
    assert frame["class"].tolist() == ["alloc", "launch", "launch", "sync"]
    assert profile.paths.to_pandas()["folded"].tolist() == profile.paths.folded.array().tolist()


def test_paths_are_the_tree_of_the_column(tmp_path):
    export = Export().push_pop(0, 100, "step 1", tid=1).push_pop(10, 90, "layer:a", tid=1)
    export.push_pop(15, 60, "aten::mm, seq = 3, sizes = [[2, 3], [3, 4]]", tid=1)
    export.launch(20, 30, corr=7, tid=1).kernel(40, 70, corr=7)
    profile = fastprof.open(export.write(tmp_path / "net.sqlite"))
    paths = profile.paths
    path = profile.column("path").at(0)
    chain = []
    while path >= 0:
        chain.append(path)
        path = paths.parent[path]
    assert [
        (paths.label.at(i), paths.folded.at(i), paths.kind.at(i), paths.level[i]) for i in chain
    ] == [
        ("aten::mm, sizes = [[2, 3], [3, 4]]", "aten::mm", "operator", 2),
        ("layer:a", "a", "layer", 1),
        ("step 1", "step *", "user", 0),
    ]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("launch", "cudaLaunchKernel_v7000 cuLaunchKernelEx hipExtModuleLaunchKernel"),
        ("launch", "cudaGraphLaunch_v10000 cudaLaunchKernelExC_v11060 cudaLaunchKernel_ptsz"),
        ("sync", "cudaDeviceSynchronize_v3020 cuCtxSynchronize hipStreamSynchronize"),
        ("sync", "cudaEventSynchronize hipEventSynchronize"),
        ("other", "cudaStreamWaitEvent_v3020 cuStreamWaitValue32_v2 hipStreamWaitEvent"),
        ("sync", "cudaMemcpy_v3020 cudaMemcpyToSymbol cuMemcpyDtoH_v2 hipMemcpyWithStream"),
        ("copy", "cudaMemcpyAsync_v3020 cuMemcpyDtoHAsync_v2 hipMemset cudaMemsetAsync_ptsz"),
        ("alloc", "cudaMalloc cuMemAlloc_v2 hipFree cudaHostAlloc cuMemHostRegister_v2 cuMemMap"),
        ("alloc", "cudaMallocAsync_v11020 hipHostMalloc hipExtMallocWithFlags cudaFreeHost"),
        ("load", "cuModuleLoadData cuLibraryLoadData cudaGraphInstantiateWithFlags_v11040"),
        ("other", "cudaGetDevice cudaEventRecord cuMemGetInfo_v2 cudaStreamGetPriority cbid 7"),
        ("create", "cudaStreamCreateWithFlags cuCtxCreate_v2 hipEventCreate cuInit cudaSetDevice"),
        ("load", "cuLinkAddData_v2 cuLinkComplete nvrtcCompileProgram hiprtcCompileProgram"),
    ],
)
def test_classes_of_calls(kind, names):
    assert {class_of(name) for name in names.split(" ") if name} == {kind}
