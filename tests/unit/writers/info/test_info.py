"""`fastprof info`: counts, and advice on what to record."""

import json

import pytest

import fastprof
from fastprof.cli import main
from fastprof.writers.info import describe, info_text
from support.exports import Export
from support.kineto_files import KinetoFile
from support.nvprof_files import NvprofFile
from support.sqlite_files import execute

EMIT = "torch.autograd.profiler.emit_nvtx(record_shapes=True)"
MM = {"Input Dims": [[2, 3], [3, 4]]}
FLOATS = {"Input type": ["float", "float"]}


@pytest.fixture
def info(tmp_path):
    """The summary of a file built by a test."""

    def read(file, **options):
        path = tmp_path / "net"
        if isinstance(file, str):
            path.write_text(file)
        else:
            file.write(path, **options)
        return describe(fastprof.open(path, copies=True))

    return read


def nsys(*ranges, **kernel):
    """One kernel of 10 ns launched inside the ranges."""
    export = Export()
    for text in ranges:
        export.push_pop(0, 100, text, tid=1)
    return export.launch(10, 20, corr=1, tid=1).kernel(30, 40, corr=1, **kernel)


def launched():
    return KinetoFile().launch(10_000, 15_000, corr=1).kernel(30_000, 40_000, corr=1)


def kineto(name="aten::mm", **args):
    return launched().op(0, 100_000, name, **args)


def depths(info):
    return {each["depth"]: each["time"] for each in info["coverage"]}


def test_work_is_counted_by_kind_and_launches_once(info):
    export = nsys().graph_trace(50, 70, 2).launch(45, 46, corr=2, tid=1).launch(47, 48, 3, tid=1)
    export.kernel(80, 81, corr=2).kernel(90, 95, corr=99, device=1)
    result = info(export, schema="2022")
    assert result["work"] == {
        "kernel": {"count": 3, "time": 16},
        "graph": {"count": 1, "time": 20},
    }
    assert result["launches"] == 2
    assert result["span"] == {"start": 30, "end": 95}
    assert [(gpu["device"], gpu["rows"]) for gpu in result["gpus"]] == [(0, 3), (1, 1)]
    assert result["gpu_time"] == 36


def test_copies_are_counted_and_in_no_share(info):
    file = NvprofFile().launch(10, 20, corr=7, tid=1).kernel(30, 42, corr=7)
    file.copy(50, 60, 8, kind=1, n_bytes=4).set(70, 75, 9, n_bytes=4)
    result = info(file)
    assert [(kind, each["count"]) for kind, each in result["work"].items()] == [
        ("kernel", 1),
        ("memcpy", 1),
        ("memset", 1),
    ]
    assert (result["gpu_time"], depths(result)["launch"]) == (12, 12)
    assert result["span"] == {"start": 30, "end": 75}


def test_ranges_are_counted_by_what_they_are(info):
    marker = "{'mod': 'torch', 'op': 'mm', 'args': []}"
    names = ["layer:a", "mine", "aten::mm, seq = 4", marker, "{'traceMarker': ['a.py:1']}", "mine"]
    export = nsys(*names).start_end(0, 50, "phase", tid=1, end_tid=2)
    result = info(export)
    assert result["ranges"] == {
        "layers": 1, "user": 2, "operators": 1, "annotations": 2, "phases": 1,
    }  # fmt: skip
    assert result["has"] == {
        "shapes": False, "types": False, "stacks": True, "layers": True, "sequence_numbers": True,
        "memory": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("trace", "has"),
    [
        (kineto(), set()),
        (kineto(**MM), {"shapes"}),
        (kineto(**MM, **FLOATS), {"shapes", "types"}),
        (kineto(**{"Input Dims": [[[2], [3]]], "Input type": ["TensorList"]}), {"shapes"}),
        (kineto(**{"Sequence number": 4}), {"sequence_numbers"}),
        (kineto(**{"Call stack": "a.py(7): f"}), {"stacks"}),
        (kineto("nn.Module: Net_0", cat="python_function"), {"layers"}),
        (kineto("train.py(62): step", cat="python_function"), {"stacks"}),
        (kineto().memory(3_000, 512), {"memory"}),
    ],
)
def test_what_the_calls_of_a_trace_say_is_told(info, trace, has):
    assert {name for name, there in info(trace)["has"].items() if there} == has


# Advice.


def test_without_ranges_the_advice_is_to_record_them(info):
    told = info(nsys())["advice"]
    assert list(told) == ["range", "source line"]
    assert EMIT in told["range"][0]
    assert "-t cuda,nvtx" in told["range"][0]


@pytest.mark.parametrize(
    ("ranges", "depth"),
    [(["mine"], "op"), (["aten::frobnicate"], "shapes"), (["aten::mm, seq = 4"], "shapes")],
)
def test_the_next_depth_that_is_missing_has_the_advice(info, ranges, depth):
    told = info(nsys(*ranges))["advice"]
    assert list(told) == [depth, "source line"]
    assert EMIT in told[depth][0]


def test_shapes_without_types_have_advice_of_their_own(info):
    told = info(nsys("aten::mm, seq = 4, op_id = 1, sizes = [[2, 3], [3, 4]]"))["advice"]
    assert list(told) == ["source line", "types"]
    assert "bytes" in told["types"][0]


def test_operators_without_a_formula_are_named_with_their_share(info):
    export = nsys("aten::frobnicate, op_id = 1, sizes = [[2, 3]]")
    export.push_pop(200, 300, "aten::mm, op_id = 2, sizes = [[2, 3], [3, 4]]", tid=1)
    export.launch(210, 220, corr=2, tid=1).kernel(230, 260, corr=2)
    (told,) = info(export)["advice"]["cost"]
    assert "aten.frobnicate 25.0 %;" in told
    assert "aten.mm" not in told
    assert "fastprof.op" in told


def test_a_part_that_lacks_what_others_have_has_other_advice(info):
    export = nsys("aten::frobnicate").kernel(200, 201, corr=9)
    export.launch(300, 301, corr=3, tid=1).kernel(310, 320, corr=3)
    told = info(export)["advice"]
    assert "launches not in the file" in told["launch"][0]
    assert "outside all ranges" in told["range"][0]


def test_whole_graphs_are_to_be_recorded_node_by_node(info):
    export = nsys().graph_trace(50, 80, 2).launch(45, 46, corr=2, tid=1)
    told = info(export)["advice"]["range"]
    assert "no ranges" in told[0]
    assert told[1].startswith("75.0 % in CUDA graphs")
    assert "--cuda-graph-trace=node" in told[1]


@pytest.mark.parametrize(
    ("trace", "depth", "words"),
    [
        (launched(), "range", "ProfilerActivity"),
        (kineto("mine", cat="user_annotation"), "op", "ProfilerActivity.CPU"),
        (kineto(), "shapes", "profile(record_shapes=True)"),
        (kineto(**MM, **FLOATS), "source line", "profile(with_stack=True)"),
        (KinetoFile().kernel(30_000, 40_000, corr=1), "launch", "warmup"),
        (KinetoFile().op(0, 9_000, "aten::mm"), "kernels", "ProfilerActivity.CUDA"),
    ],
)
def test_advice_for_a_trace_of_torch_profiler_is_in_its_words(info, trace, depth, words):
    told = info(trace)["advice"]
    assert words in told[depth][0]
    assert next(iter(told)) == depth


def test_a_file_without_gaps_has_no_advice(info):
    marker = (
        "{'mod': 'torch', 'op': 'mm', 'args': ["
        "{'name': '', 'type': 'tensor', 'shape': (2, 3), 'dtype': 'float32'}, "
        "{'name': '', 'type': 'tensor', 'shape': (3, 4), 'dtype': 'float32'}]}"
    )
    result = info(nsys("{'traceMarker': ['net.py:7']}", marker))
    assert result["advice"] == {}
    assert [each["share"] for each in result["coverage"]] == [1.0] * 6


def test_a_file_without_kernels_says_how_to_record_them(info):
    result = info(Export().push_pop(0, 1, "mine", tid=1))
    assert list(result["advice"]) == ["kernels"]
    assert "-t cuda,nvtx" in result["advice"]["kernels"][0]
    assert result["span"] is None
    text = info_text(result)
    assert "GPU work    none" in text
    assert "known share of" not in text


def test_dict_lines_send_to_their_trace(info):
    result = info("{'kShortName': 'sgemm', 'kDuration': 7, 'tid': 3, 'device': 0}\n")
    assert result["advice"] == {
        "range": ["not in dict lines: run fastprof info on the original trace"]
    }
    assert (result["processes"], result["ranges"], result["launches"]) == (None, None, None)
    assert (result["threads"], result["work"]) == (1, {"kernel": {"count": 1, "time": 7}})


# As text and as JSON.


def everything():
    trace = KinetoFile(
        schemaVersion=1,
        deviceProperties=[{"id": device, "name": "NVIDIA H100"} for device in range(8)],
        distributedInfo={"backend": "nccl", "rank": 3, "world_size": 8},
    )
    trace.op(0, 100_000, "aten::mm", **MM).launch(10_000, 15_000, corr=1).kernel(
        30_000, 40_000, corr=1, device=3
    )
    trace.op(0, 1_000_000, "ProfilerStep#7", cat="user_annotation")
    trace.op(2_000_000, 5_000_000, "ProfilerStep#8", cat="user_annotation")
    trace.named("process_name", "py\x1b[31mthon").memory(3_000, 512)
    return trace


def test_the_text_says_all_of_it(info):
    text = info_text(info(everything()))
    for line in [
        "  format      torch.profiler trace, schema 1",
        "  GPUs        3: NVIDIA H100; 7 idle: NVIDIA H100",
        "  rank        3 of 8, nccl",
        "  processes   100 py [31mthon",
        "  span        10.000 us from the first start to the last end of GPU work",
        "  steps       2: ProfilerStep#7 to #8, 1.000 ms to 3.000 ms, 2.000 ms on average",
        "  GPU work    1 kernels (10.000 us)",
        "  ranges      3: 1 operators, 2 user",
        "  memory      1 allocations and frees",
        "  has         shapes, memory",
        "  launch        100.0 %",
    ]:
        assert line in text.splitlines()


def test_the_text_fits_a_terminal_of_100_columns(info):
    names = [f"aten::frobnicate_{i:060}, op_id = {i}, sizes = [[2]]" for i in range(9)]
    export = Export()
    for i, name in enumerate(names):
        export.push_pop(100 * i, 100 * i + 99, name, tid=i, pid=1000 + i)
        export.launch(100 * i + 1, 100 * i + 2, i, tid=i, pid=1000 + i)
        export.kernel(100 * i + 3, 100 * i + 4, i, pid=1000 + i, device=i)
    lines = info_text(info(export)).splitlines()[1:]
    assert max(map(len, lines)) <= 100
    assert len(lines) < 40
    assert any(line.endswith("1002, 1003 and 5 more") for line in lines)


def test_the_command_prints_the_text_and_with_json_the_same_as_json(tmp_path, capfd):
    path = str(everything().write(tmp_path / "net.json"))
    expected = describe(fastprof.open(path, copies=True))
    assert main(["info", path]) == 0
    assert capfd.readouterr().out == info_text(expected)
    assert main(["info", "--json", path]) == 0
    printed = capfd.readouterr()
    assert json.loads(printed.out) == expected
    assert printed.err == ""


def test_numbers_that_json_does_not_have_are_left_out(tmp_path, capfd):
    path = tmp_path / "net.json"
    path.write_text('{"a": NaN, "b": 1e999, "c": 2, "traceEvents": []}')
    assert main(["info", "--json", str(path)]) == 0
    printed = json.loads(capfd.readouterr().out, parse_constant=pytest.fail)
    assert printed["settings"] == {"c": 2}


def test_warnings_go_to_stderr(tmp_path, capfd):
    path = nsys().write(tmp_path / "net.sqlite")
    execute(path, "DELETE FROM StringIds")
    assert main(["info", str(path)]) == 0
    printed = capfd.readouterr()
    assert "warning: " in printed.err
    assert "kernel names are not in StringIds" in printed.err
    assert "not in StringIds" not in printed.out


def test_how_the_tables_were_read_is_told(tmp_path, monkeypatch):
    path = tmp_path / "x.sqlite"
    export = Export().kernel(10, 20, corr=1).launch(0, 5, corr=1, tid=1)
    export.write(path)
    info = describe(fastprof.open(path))
    assert info["read_by"]["StringIds"] == {"way": "pages", "why": None}
    assert "3 tables from the file's pages" in info_text(info)
    monkeypatch.setenv("FASTPROF_SCAN", "sqlite")
    info = describe(fastprof.open(path))
    assert info["read_by"]["StringIds"] == {"way": "sqlite", "why": "FASTPROF_SCAN=sqlite"}
    assert " through SQLite: FASTPROF_SCAN=sqlite" in " ".join(info_text(info).split())
