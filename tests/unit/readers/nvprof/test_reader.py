"""NVProf files: differences from Nsight Systems exports."""

import os
import shutil

import pytest

import fastprof
from fastprof.cli import main
from fastprof.readers.nvprof import call_names as demangle
from support import processes
from support.nvprof_files import MARK, NvprofFile
from support.sqlite_files import execute

RELU = "_ZN2at6native4reluILi4EEEvPfi"
BIG_THREAD = 3940300608  # as a signed 32-bit number it is negative


@pytest.fixture
def rows(tmp_path):
    def read(file, *keys, copies=False, **options):
        path = file.write(tmp_path / "run.sql", **options)
        profile = fastprof.open(path, copies=copies)
        return [tuple(row[key] for key in keys) for row in profile.rows()]

    return read


def test_a_kernel_is_launched_inside_of_the_ranges_of_its_thread(rows):
    file = NvprofFile().push_pop(0, 100, "layer:net", tid=BIG_THREAD)
    file.push_pop(5, 50, "aten::relu, seq = 4", tid=BIG_THREAD).push_pop(0, 100, "layer:no", tid=2)
    file.launch(10, 20, corr=7, tid=BIG_THREAD).kernel(30, 42, corr=7, name=RELU, device=3)
    assert rows(file, "layer", "op", "seq", "tid", "sil", "device", "kernel", "pid", "launch") == [
        (("net",), "relu", 4, BIG_THREAD, 12, 3, "relu", 100, "cudaLaunchKernel")
    ]


@pytest.mark.parametrize("year", [2016, 2021])
@pytest.mark.parametrize("serialised", [False, True])
def test_kernels_of_all_versions_are_read(rows, year, serialised):
    file = NvprofFile(year=year, serialised=serialised)
    file.launch(10, 20, corr=7, tid=1)
    file.kernel(30, 42, corr=7, grid=(2, 3, 4), staticSharedMemory=8, dynamicSharedMemory=16)
    keys = ("grid", "block", "shared_memory", "registers", "graph_id", "graph_node")
    assert rows(file, *keys) == [((2, 3, 4), (128, 1, 1), 24, 32, None, None)]


def test_both_kinds_of_kernels_in_one_file_are_rows(rows, tmp_path):
    file = NvprofFile().kernel(30, 42, corr=1)
    other = "CUPTI_ACTIVITY_KIND_KERNEL"
    file._columns[other] = file._columns[file._kernels]
    file.row(other, start=10, end=12, correlationId=2, name=file.string("first"))
    assert rows(file, "kernel", "sil") == [("first", 2), ("sgemm", 12)]


def test_of_a_runtime_and_a_driver_call_the_runtime_call_is_the_launch(rows):
    file = NvprofFile().push_pop(0, 15, "in runtime", tid=1).push_pop(15, 50, "in driver", tid=1)
    file.launch(16, 18, corr=7, tid=1, cbid=307, driver=True).launch(10, 20, corr=7, tid=1)
    file.launch(30, 31, corr=8, tid=1, cbid=307, driver=True)
    file.kernel(60, 70, corr=7).kernel(80, 90, corr=8)
    assert rows(file, "launch", "ranges") == [
        ("cudaLaunchKernel", ("in runtime",)),
        ("cuLaunchKernel", ("in driver",)),
    ]


def test_a_kernel_whose_launch_is_in_neither_table_keeps_its_row(rows):
    file = NvprofFile().launch(10, 20, corr=7, tid=1).kernel(30, 42, corr=8)
    assert rows(file, "launch", "tid", "sil") == [(None, None, 12)]


@pytest.mark.parametrize("missing", ["RUNTIME", "DRIVER", "MARKER", "MEMCPY"])
def test_tables_may_be_missing(rows, missing):
    file = NvprofFile().kernel(30, 42, corr=7)
    assert rows(file, "sil", without=(f"CUPTI_ACTIVITY_KIND_{missing}",)) == [(12,)]


@pytest.mark.parametrize("without", [(), ("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",)])
def test_a_file_without_kernels_has_no_rows(rows, without):
    assert rows(NvprofFile(), "sil", without=without) == []


def test_marks_are_no_ranges_and_what_never_ended_goes_on(rows):
    file = NvprofFile().marker(1, MARK, 900, "a mark", tid=1).push_pop(2, None, "open", tid=1)
    file.push_pop(3, 4, "over", tid=1)
    file.marker(5, 4, 901, None, tid=1)  # its start was not captured
    file.launch(10, 20, corr=7, tid=1).kernel(30, 42, corr=7)
    assert rows(file, "ranges") == [(("open",),)]


def test_ranges_of_a_stream_or_a_process_are_of_no_thread(rows):
    file = NvprofFile().marker(1, 2, 1, "of the process", tid=1, kind=1)
    file.launch(10, 20, corr=7, tid=1).kernel(30, 42, corr=7)
    assert rows(file, "ranges") == [((),)]


def test_a_range_that_ends_on_another_thread_is_a_phase(rows):
    file = NvprofFile().push_pop(0, 90, "epoch", tid=1, end_tid=2)
    file.launch(10, 20, corr=7, tid=3).kernel(30, 42, corr=7)
    assert rows(file, "ranges", "phases") == [((), ("epoch",))]


def test_ranges_with_a_mended_clock_enclose_nothing(rows):
    file = NvprofFile().push_pop(50, 5, "backwards", tid=1)
    file.launch(10, 20, corr=7, tid=1).kernel(30, 42, corr=7)
    assert rows(file, "ranges") == [((),)]


def test_two_processes_are_told_apart_by_their_launches(rows):
    file = NvprofFile().push_pop(0, 90, "one", tid=5, pid=1).push_pop(0, 90, "two", tid=5, pid=2)
    file.launch(10, 11, corr=7, tid=5, pid=1).launch(12, 13, corr=8, tid=5, pid=2)
    file.kernel(30, 40, corr=8).kernel(50, 60, corr=7)
    assert rows(file, "pid", "tid", "ranges") == [(2, 5, ("two",)), (1, 5, ("one",))]


def test_copies_have_rows_when_they_are_asked_for(rows):
    file = NvprofFile().push_pop(0, 90, "aten::copy_, seq = 1", tid=1)
    for corr in (1, 2, 3):
        file.launch(corr, corr + 1, corr, tid=1)
    file.kernel(10, 11, corr=1).copy(20, 24, 2, kind=1, n_bytes=4096).set(30, 31, 3, n_bytes=512)
    keys = ("kind", "kernel", "sil", "copied", "copy_direction", "op")
    assert rows(file, *keys, copies=True) == [
        ("kernel", "sgemm", 1, None, None, "copy_"),
        ("memcpy", "[CUDA_memcpy_HtoD]", 4, 4096, "HtoD", "copy_"),
        ("memset", "[CUDA_memset]", 1, 512, None, "copy_"),
    ]


@pytest.mark.parametrize("year", [2016, 2021])
@pytest.mark.parametrize("copies", [False, True])
def test_tables_without_any_work_are_no_rows(rows, year, copies):
    assert rows(NvprofFile(year=year).launch(10, 20, corr=7, tid=1), "kind", copies=copies) == []


def test_copies_are_left_out_when_they_are_not(rows):
    file = NvprofFile().kernel(10, 11, corr=1).copy(20, 24, 2, kind=1, n_bytes=4096)
    assert rows(file, "kind", "copied", "copy_direction") == [("kernel", None, None)]


@pytest.mark.parametrize("name", ["_Znonsense", "_Z" + "1a" * 40000, "plain", "_Z5sgemmPf.kd"])
def test_a_name_that_does_not_demangle_stays(rows, name):
    ((result,),) = rows(NvprofFile().kernel(10, 11, corr=1, name=name), "name")
    assert result == name or result == "sgemm(float*) [clone .kd]"


def test_without_a_c_plus_plus_library_names_stay_mangled_and_a_warning_says_so(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(demangle, "LIBRARIES", ("no-such-library.so",))
    demangle._demangler.cache_clear()
    profile = fastprof.open(NvprofFile().kernel(1, 2, corr=1, name=RELU).write(tmp_path / "x"))
    assert profile.column("name").at(0) == RELU
    assert "kernel names stay mangled" in profile.warnings[0]
    demangle._demangler.cache_clear()


def test_names_are_demangled_under_an_allocator_that_was_preloaded(tmp_path):
    result = ""
    if shutil.which("gcc"):
        command = ["gcc", "-print-file-name=libasan.so"]
        result = processes.ran(command).stdout.strip()
    if not os.path.isabs(result):
        pytest.skip("no libasan.so, whose malloc is not that of libc")
    path = NvprofFile().kernel(1, 2, corr=1, name=RELU).write(tmp_path / "run.sql")
    code = "import sys, fastprof; print(fastprof.open(sys.argv[1]).column('name').at(0))"
    variables = {"LD_PRELOAD": result, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    done = processes.python("-c", code, path, env=os.environ | variables, text=False)
    assert done.stdout == b"void at::native::relu<4>(float*, int)\n", done.stderr.decode()


def test_a_name_id_without_a_string_prints_as_na_and_is_told(tmp_path, capsys):
    file = NvprofFile().row("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", start=1, end=2, name=77)
    assert main(["prof", "-c", "kernel", str(file.write(tmp_path / "run.sql"))]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == ["Kernel", "na"]
    assert "1 kernel names are not in StringTable (ids 77)" in printed.err


def test_a_database_of_something_else_is_refused_in_one_line(tmp_path, capsys):
    execute(tmp_path / "other.db", "CREATE TABLE people(name TEXT)")
    assert main(["prof", str(tmp_path / "other.db")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "no table StringIds" in line and "no table StringTable" in line and "people" in line
