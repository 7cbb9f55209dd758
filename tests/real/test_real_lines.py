"""Source lines and layers of real traces, against their JSON."""

import re
import sys

import pytest

import fastprof
from real.open_traces import events, profile
from support.real_data import real

# Traces with stacks, and the folders of the program's own files.
STACKS = {
    "kineto/owlv2_h100.json.gz": "moca/",
    "kineto/resnet18_mi300_full.json.gz": "train_single_gpu.py",
    "kineto/resnet_checkpoint_mi300.json.gz": "train_ddp.py",
    "kineto/sd35_compile_mi300.json.gz": "/app/xDiT/",
    "kineto/resnet50_2021_stack_memory.json.gz": "resnet50_profiler_api.py",
    "kineto/sglang_graph_decode.json.gz": "/sgl-workspace/sglang/",
    "pyprof/lm_v100_nvprof.sql": "language-model.py",
    "pyprof/vsr_a100_nsys2024.sqlite": "/workspace/mmagic/",
}
# Path components that no stack may end in.
NOT_AT_THE_END = re.compile(
    r"(?:^|/)(?:torch|triton)/|torchinductor|^<(?:frozen|eval_with_key)|"
    rf"^(?:{'|'.join(sys.stdlib_module_names)})(?:/|\.py:)"
)


every_stack = pytest.mark.parametrize("path", sorted(STACKS))


@every_stack
def test_no_stack_ends_in_a_library_of_torch_or_python(path: str) -> None:
    traces = profile(path).column("trace").values
    assert sum(map(bool, traces)) > 0
    assert [trace for trace in traces if trace and NOT_AT_THE_END.search(trace[-1])] == []


@every_stack
def test_the_line_is_the_last_of_the_author_s_files(path: str) -> None:
    opened = profile(path)
    columns = [opened.column(key) for key in ("trace", "line", "library_line")]
    distinct = {tuple(column.at(row) for column in columns) for row in range(len(opened))}
    n_lines = 0
    for trace, line, library_line in distinct:
        assert library_line == (trace[-1] if trace else None)
        own = [frame for frame in trace if frame.startswith(STACKS[path])]
        assert line == (own[-1] if own else None)
        n_lines += line is not None
    assert n_lines > 0


@every_stack
def test_a_glob_of_the_author_s_files_says_the_same(path: str) -> None:
    name = STACKS[path].strip("/").split("/")[-1]
    again = fastprof.open(real(path), copies=False, mine=name).column("line")
    opened = profile(path)
    line = opened.column("line")
    for row in range(0, len(opened), 7):
        assert again.at(row) == line.at(row)


@pytest.mark.parametrize("path", ["kineto/resnet18_mi300_full.json.gz"])
def test_functions_are_named_and_numbered_as_the_trace_does(path: str) -> None:
    told = {e["name"] for e in events(path) if e.get("cat") == "python_function"}
    shown = {frame for trace in profile(path).column("trace").values for frame in trace}
    assert shown
    for frame in shown:
        file_name, number, function = re.fullmatch(r"(.+):(\d+) (.+)", frame).groups()
        assert f"{file_name}({number}): {function}" in told
