"""`fastprof info` on real files of all formats agrees with SQL and JSON."""

import json
from collections import Counter

import pytest

from fastprof.cli import main
from fastprof.writers.info import describe, info_text
from real.open_traces import events, json_of, kept, profile
from support.real_data import open_read_only, real, traces

NSYS = traces("nsys/*.sqlite", "pyprof/*.sqlite")
NVPROF = traces("nvprof/*", "pyprof/*.sql")
KINETO = traces("kineto/*.json.gz")
DICT = "pyprof/lm_v100_nvprof.author.dict"
RANGES = ("operator", "cpu_op", "user_annotation", "python_function")
# Version, schema and names of the GPUs with work, copied from the files by hand.
TOLD = {
    "nsys/cudagraph_a100_nsys2024.sqlite": ("2024.6.2.225", "3.16.1", {"NVIDIA A100-SXM4-80GB"}),
    "nsys/emit_nvtx_2gpu_nsys2026.sqlite": ("2026.2.1.210", "3.25.0", {None}),
    "nsys/emit_nvtx_2gpu_after_nsys2026.sqlite": ("2026.2.1.210", "3.25.0", {None}),
    "nsys/fsdp_upload_2gpu_h100.sqlite": ("2026.2.1.210", "3.25.0", {None}),
    "nsys/ranges_lm_a100_nsys2024.sqlite": ("2024.6.2.225", "3.16.1", {"NVIDIA A100-SXM4-80GB"}),
    "nsys/no_cuda_tables_nsys2025.sqlite": ("2025.6.1.190", "3.24.7", set()),
    "nsys/no_nvtx_rtx3090_nsys2025.sqlite": ("2025.5.1.121", "3.23.3", {"NVIDIA GeForce RTX 3090"}),
    "nsys/no_nvtx_rtx6000_nsys2021.sqlite": (None, None, {"Quadro RTX 6000"}),
    "nsys/nvtx_only_startend_nsys2022.sqlite": ("2022.4.2.1", "3.0.0", set()),
    "nsys/ranges_rtx3070_nsys2025.sqlite": (
        "2025.1.3.140",
        "3.17.2",
        {"NVIDIA GeForce RTX 3070 Ti"},
    ),
    "pyprof/vsr_a100_nsys2024.sqlite": ("2024.2.1.106", "3.11.1", {"NVIDIA A100-SXM4-40GB"}),
    "nvprof/nccl_4gpu.nvvp": (None, "16", {"Tesla V100-SXM2-32GB"}),
    "pyprof/lm_v100_nvprof.sql": (None, "12", {"Tesla V100-SXM2-16GB"}),
}

every_database = pytest.mark.parametrize("path", [*NSYS, *NVPROF])
every_trace = pytest.mark.parametrize("path", KINETO)
every_file = pytest.mark.parametrize("path", [*NSYS, *NVPROF, *KINETO, DICT])


@kept
def describe_real(path):
    return describe(profile(path, copies=True))


@every_database
def test_versions_and_gpus_are_those_in_the_file(path):
    info = describe_real(path)
    names = {gpu["name"] for gpu in info["gpus"] if gpu["rows"]}
    assert (info["tool_version"], info["schema_version"], names) == TOLD[path]


@pytest.mark.parametrize("path", NSYS)
def test_ranges_are_what_sql_counts(path):
    connection = open_read_only(real(path))
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    sql = (
        "SELECT count(*) FROM NVTX_EVENTS WHERE eventType IN (59, 60, 70, 71) "
        "AND (text IS NOT NULL OR textId IS NOT NULL)"
    )
    n = connection.execute(sql).fetchone()[0] if "NVTX_EVENTS" in present else 0
    connection.close()
    assert sum(describe_real(path)["ranges"].values()) == n


@every_trace
def test_ranges_are_what_the_events_count(path):
    ranges = describe_real(path)["ranges"]
    counts = Counter(str(event.get("cat", "")) for event in events(path) if event.get("ph") == "X")
    of_ranges = {
        name: n
        for name, n in counts.items()
        if name != "gpu_user_annotation" and name.lower().removeprefix("gpu_") in RANGES
    }
    operators = sum(n for name, n in counts.items() if name.lower() in ("operator", "cpu_op"))
    assert ranges["operators"] <= operators + ranges.get("user", 0)
    assert sum(ranges.values()) == sum(of_ranges.values())


@every_trace
def test_gpus_and_ranks_are_those_beside_the_events(path):
    info, root = describe_real(path), json_of(path)
    names = {each["id"]: each["name"] for each in root.get("deviceProperties", ())}
    alike = names.popitem()[1] if len(set(names.values())) == 1 else None
    for gpu in info["gpus"]:
        assert gpu["name"] == names.get(gpu["device"], alike)
    told = root.get("distributedInfo")
    keys = ("backend", "rank", "world_size")
    assert info["rank"] == (None if told is None else {key: told[key] for key in keys})
    schema = root.get("schemaVersion")
    assert info["schema_version"] == (None if schema is None else str(schema))


@every_trace
def test_steps_and_memory_events_are_those_of_the_trace(path):
    info = describe_real(path)
    steps = sorted(
        int(event["name"].partition("#")[2])
        for event in events(path)
        if str(event.get("name", "")).startswith("ProfilerStep#")
        and event["ph"] == "X"
        and event["cat"] != "gpu_user_annotation"
    )
    assert [step["number"] for step in info["steps"]] == steps
    assert all(step["end"] > step["start"] for step in info["steps"])
    assert info["memory_events"] == sum(event.get("name") == "[memory]" for event in events(path))
    assert info["has"]["memory"] == (info["memory_events"] > 0)


@every_file
def test_coverage_is_that_of_the_report_and_each_gap_has_advice(path):
    coverage = profile(path).coverage
    info = describe_real(path)
    assert info["gpu_time"] == coverage.total
    known = {each["depth"]: each["time"] for each in info["coverage"]}
    assert known == coverage.known
    if info["gpu_time"] == 0:
        assert list(info["advice"]) == ["kernels"]
    elif any(each["share"] < 0.999 for each in info["coverage"]):
        assert set(info["advice"]) & {*known}


@every_file
def test_the_text_is_one_screen(path):
    lines = info_text(describe_real(path)).splitlines()
    assert lines[0] == str(real(path))
    assert max(map(len, lines[1:])) <= 100
    assert len(lines) <= 40


@every_file
def test_the_command_prints_json(path, capfd):
    assert main(["info", "--json", str(real(path))]) == 0
    assert json.loads(capfd.readouterr().out) == describe_real(path)
