"""Synchronisations, calls of the operating system, CPU samples and switches of threads."""

import pytest

import fastprof
from fastprof.errors import BadInputError
from support.exports import PID, Export, global_tid
from support.kineto_files import KinetoFile
from support.nvprof_files import NvprofFile

NO_STREAM = 0xFFFFFFFF
SYNCS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"


def rows(events, *columns):
    values = [getattr(events, name) for name in columns]
    arrays = [value.array() if hasattr(value, "array") else value for value in values]
    return list(zip(*(array.tolist() for array in arrays), strict=True))


def synced(export, start, end, corr, kind, stream=NO_STREAM, pid=PID):
    return export.row(
        SYNCS, start=start, end=end, deviceId=1, contextId=1, streamId=stream,
        correlationId=corr, globalPid=global_tid(pid, 0), syncType=kind,
    )  # fmt: skip


def nsys(kind=0):
    """Synchronisations of two processes with one correlation id, and one without its call."""
    export = Export().kernel(40, 70, corr=7).launch(20, 30, corr=7, tid=1)
    export.launch(60, 90, corr=9, tid=2, name="cudaStreamSynchronize_v3020")
    export.launch(65, 99, corr=9, tid=3, name="cuCtxSynchronize", pid=200)
    export.launch(100, 101, corr=10, tid=2, name="cudaStreamWaitEvent_v3020")
    export.launch(102, 103, corr=11, tid=2, name="cudaEventQuery_v3020")
    synced(export, 66, 98, 9, kind, pid=200)
    synced(export, 61, 89, 9, kind, stream=7)
    synced(export, 100, 101, 10, kind, stream=8)
    synced(export, 102, 103, 11, kind)
    return synced(export, 200, 190, 12, kind)


SYNC = ("start", "end", "tid", "pid", "kind", "device", "stream", "correlation", "call")


@pytest.mark.parametrize(("schema", "unmatched"), [("2024", "unknown"), ("2025", "context")])
def test_synchronisations_have_the_thread_and_kind_of_their_call(tmp_path, schema, unmatched):
    """Exports before 2025 number the kinds in several ways, so the names of calls decide."""
    profile = fastprof.open(nsys(kind=4).write(tmp_path / "net.sqlite", schema=schema))
    assert rows(profile.synchronisations, *SYNC) == [
        (61, 89, 2, 100, "stream", 1, 7, 9, 1),
        (66, 98, 3, 200, "context", 1, -1, 9, 2),
        (100, 101, 2, 100, "stream wait", 1, 8, 10, 3),
        (102, 103, 2, 100, "event", 1, -1, 11, 4),
        (200, 200, -1, -1, unmatched, 1, -1, 12, -1),
    ]
    assert profile.synchronisations.threads is profile.api.threads


def test_unknown_numbers_of_kinds_are_unknown(tmp_path):
    for place, kind in enumerate((-1, 5, 1 << 40)):
        export = synced(Export().kernel(1, 2, corr=3), 10, 20, 4, kind)
        profile = fastprof.open(export.write(tmp_path / f"{place}.sqlite", schema="2025"))
        assert profile.synchronisations.kind.array().tolist() == ["unknown"]


def test_torch_records_synchronisations_on_request(tmp_path):
    trace = KinetoFile().launch(10, 20, corr=7).kernel(30, 40, corr=7)
    trace.launch(50, 60, corr=8, tid=2, name="cudaDeviceSynchronize")
    for start, end, name, stream, corr in (
        (51, 59, "Context Sync", -1, 8),
        (70, 75, "Stream Wait Event", 20, 9),
        (80, 85, "Event Sync", -1, 10),
        (90, 95, "Stream Sync", 7, 11),
        (97, 98, "Unknown Sync", 7, 12),
    ):
        args = {"cuda_sync_kind": name, "stream": stream, "correlation": corr, "device": 0}
        trace._span("cuda_sync", start, end, name, stream, 0, args)
    profile = fastprof.open(trace.write(tmp_path / "net.json.gz"))
    assert rows(profile.synchronisations, *SYNC) == [
        (51, 59, 2, 100, "context", 0, -1, 8, 1),
        (70, 75, -1, -1, "stream wait", 0, 20, 9, -1),
        (80, 85, -1, -1, "event", 0, -1, 10, -1),
        (90, 95, -1, -1, "stream", 0, 7, 11, -1),
        (97, 98, -1, -1, "unknown", 0, 7, 12, -1),
    ]


def test_nvprof_records_synchronisations(tmp_path):
    file = NvprofFile().launch(10, 20, corr=7, tid=1).kernel(40, 50, corr=7)
    file.launch(60, 90, corr=8, tid=2, cbid=131)
    columns = ["type", "start", "end", "correlationId", "contextId", "streamId"]
    file.add_table(SYNCS, columns)
    file.add_table("CUPTI_ACTIVITY_KIND_CONTEXT", ["contextId", "deviceId"])
    file.row("CUPTI_ACTIVITY_KIND_CONTEXT", contextId=5, deviceId=3)
    for values in ((3, 61, 89, 8, 5, 20), (1, 95, 96, 9, 6, -1)):
        file.row(SYNCS, **dict(zip(columns, values, strict=True)))
    profile = fastprof.open(file.write(tmp_path / "net.sql"))
    assert rows(profile.synchronisations, *SYNC) == [
        (61, 89, 2, 100, "stream", 3, 20, 8, 1),
        (95, 96, -1, -1, "event", -1, -1, 9, -1),
    ]


def with_host_events():
    """Calls and samples of a thread with API calls, and of one without any."""
    export = Export().kernel(40, 70, corr=7).launch(20, 30, corr=7, tid=1)
    for start, end, tid, name in ((5, 50, 8, "poll"), (1, 2, 1, "read"), (5, 60, 8, "futex")):
        export.row(
            "OSRT_API", start=start, end=end, eventClass=27, globalTid=global_tid(PID, tid),
            nameId=export.string(name), returnValue=0, nestingLevel=0, callchainId=0,
        )  # fmt: skip
    export.row(
        "OSRT_API", start=0, end=0, eventClass=31, globalTid=global_tid(PID, 0), returnValue=0,
        nameId=export.string("OS runtime libraries profiling started"), callchainId=0,
    )  # fmt: skip
    for number, start, tid in ((1, 10, 8), (2, 12, 1), (3, 14, None)):
        thread = None if tid is None else global_tid(PID, tid)
        export.row("COMPOSITE_EVENTS", id=number, start=start, globalTid=thread, cpuCycles=1)
    for number, depth, symbol in ((1, 1, "main"), (1, 0, "memcpy"), (3, 0, "free"), (3, 1, "main")):
        export.row(
            "SAMPLING_CALLCHAINS", id=number, symbol=export.string(symbol), module=1,
            stackDepth=depth,
        )  # fmt: skip
    for start, is_in, tid in ((11, 1, 8), (19, 0, 8)):
        export.row(
            "SCHED_EVENTS", start=start, cpu=0, isSchedIn=is_in, globalTid=global_tid(PID, tid)
        )
    return export


@pytest.mark.parametrize("scan", ["pages", "sqlite"])
def test_events_that_nsys_records_of_the_host(tmp_path, scan, monkeypatch):
    monkeypatch.setenv("FASTPROF_SCAN", scan)
    profile = fastprof.open(with_host_events().write(tmp_path / "net.sqlite", schema="2025"))
    columns = ("start", "end", "tid", "pid", "name")
    assert rows(profile.os_calls, *columns) == [
        (1, 2, 1, 100, "read"),
        (5, 60, 8, 100, "futex"),
        (5, 50, 8, 100, "poll"),
    ]
    assert rows(profile.cpu_samples, *columns) == [
        (10, 10, 8, 100, "memcpy"),
        (12, 12, 1, 100, None),
        (14, 14, -1, -1, "free"),
    ]
    assert rows(profile.cpu_switches, *columns) == [
        (11, 11, 8, 100, "in"),
        (19, 19, 8, 100, "out"),
    ]


def test_threads_without_api_calls_come_after_the_others(tmp_path):
    profile = fastprof.open(with_host_events().write(tmp_path / "net.sqlite"))
    assert profile.api.threads.tid.tolist() == [1]
    assert profile.os_calls.threads.tid.tolist()[0] == 1
    assert profile.os_calls.thread.tolist() == [0, *[profile.os_calls.thread[1]] * 2]


def test_they_are_read_once_and_empty_where_not_recorded(tmp_path):
    profile = fastprof.open(Export().kernel(1, 2, corr=3).write(tmp_path / "net.sqlite"))
    trace = KinetoFile().launch(10, 20, corr=7).kernel(30, 40, corr=7)
    for opened in (profile, fastprof.open(trace.write(tmp_path / "net.json"))):
        for name in ("synchronisations", "os_calls", "cpu_samples", "cpu_switches"):
            events = getattr(opened, name)
            assert len(events) == 0
            assert getattr(opened, name) is events


def test_a_changed_file_is_reported(tmp_path):
    path = with_host_events().write(tmp_path / "net.sqlite")
    profile = fastprof.open(path)
    assert len(profile.api) == 1
    path.unlink()
    with pytest.raises(BadInputError, match="was changed"):
        _ = profile.os_calls


def test_dict_lines_contain_none(tmp_path):
    lines = tmp_path / "net.dict"
    lines.write_text("{'kShortName': 'k', 'kDuration': 5}\n")
    with pytest.raises(BadInputError, match="os calls"):
        _ = fastprof.open(lines).os_calls


def test_they_become_data_frames(tmp_path):
    pytest.importorskip("pandas")
    profile = fastprof.open(nsys().write(tmp_path / "net.sqlite"))
    frame = profile.synchronisations.to_pandas()
    assert list(frame) == ["start", "end", "tid", "pid", "kind", "device", "stream", "correlation"]
    assert frame["kind"].tolist()[0] == "stream"
    events = fastprof.open(with_host_events().write(tmp_path / "other.sqlite"))
    assert events.os_calls.to_pandas()["name"].tolist() == ["read", "futex", "poll"]
