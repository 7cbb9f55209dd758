"""`prof --unknown`: reasons for unknown costs, and remedies."""

import re

import pytest

import fastprof
from fastprof import CannotModel, Unknown, ops
from fastprof.cli import main
from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops.parameters import convert, members
from fastprof.profile.coverage import NEVER_HAS_SHAPES, NO_SHAPES, SHAPES_MISSING, Without
from fastprof.writers.info import describe, info_text
from support.exports import Export
from support.kineto_files import KinetoFile

MM = {"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]}


def reasons(path, **options):
    result = fastprof.open(path, **options).coverage.unknown()
    return {(call.op, call.direction, call.kernels): call.reason for call in result}


def without_operator(tmp_path):
    """One kernel for each reason for an unknown operator."""
    export = Export().push_pop(0, 30, "mine", tid=1)
    for corr, time in ((1, 10), (2, 40), (3, 50)):
        name = "cudaGraphLaunch_v10000" if corr == 3 else "cudaLaunchKernel_v7000"
        export.launch(time, time + 2, corr, tid=1, name=name).kernel(
            100 * corr, 100 * corr + 9, corr
        )
    export.kernel(350, 359, corr=3).kernel(900, 909, corr=99)
    return export.graph_trace(500, 580, 4).launch(60, 62, 4, tid=1).write(tmp_path / "x.sqlite")


def test_kernels_without_an_operator_are_told_apart(tmp_path):
    result = fastprof.open(without_operator(tmp_path)).coverage
    assert [(each.kernels, each.time, each.reason) for each in result.unknown()] == [
        (1, 80, Without.NODES.value),
        (2, 18, Without.CAPTURE.value),
        (1, 9, Without.LAUNCH.value),
        (1, 9, Without.OPERATOR.value),
        (1, 9, Without.RANGE.value),
    ]
    assert {each.direction for each in result.unknown()} == {"na"}
    assert "--unknown" not in str(result)  # no operator to list


def test_a_replayed_graph_points_to_its_capture_and_not_to_custom_op(tmp_path):
    trace = KinetoFile().python(0, 900, "runner.py(5): replay")
    trace.launch(10, 20, corr=1, name="hipGraphLaunch").kernel(30, 40, corr=1).kernel(
        40, 50, corr=1
    )
    path = trace.write(tmp_path / "x.json")
    (reason,) = reasons(path).values()
    assert "--graph-capture TRACE" in reason
    (told,) = describe(fastprof.open(path, copies=True))["advice"]["op"]
    assert told.startswith("100.0 % in kernels of graphs captured before")
    assert "custom_op" not in info_text(describe(fastprof.open(path, copies=True)))


def test_what_is_no_replay_keeps_its_own_advice(tmp_path):
    trace = KinetoFile().python(0, 900, "runner.py(5): replay")
    trace.launch(10, 20, corr=1, name="hipGraphLaunch").kernel(30, 40, corr=1)
    trace.launch(50, 60, corr=2).kernel(70, 80, corr=2)
    trace.op(100, 200, "aten::mm", **MM).launch(110, 120, corr=3).kernel(130, 150, corr=3)
    told = describe(fastprof.open(trace.write(tmp_path / "x.json"), copies=True))["advice"]["op"]
    assert told[0].startswith("25.0 % in kernels of graphs")
    assert "custom_op" in told[1]


def test_a_graph_whose_capture_is_in_the_file_lacks_nothing(tmp_path):
    export = Export().push_pop(0, 30, "aten::mm, op_id = 1, sizes = [[2, 3], [3, 4]]", tid=1)
    export.launch(40, 50, corr=1, tid=1, name="cudaGraphLaunch_v10000")
    export.push_pop(35, 60, "aten::mm, op_id = 2, sizes = [[2, 3], [3, 4]]", tid=1)
    export.kernel(60, 70, corr=1)
    assert reasons(export.write(tmp_path / "x.sqlite")) == {}


@pytest.mark.parametrize(("args", "reason"), [(MM, SHAPES_MISSING), ({}, NO_SHAPES)])
def test_record_shapes_is_advised_only_where_it_was_off(tmp_path, args, reason):
    trace = KinetoFile().op(0, 100, "aten::mm", **args).op(200, 300, "aten::bmm")
    trace.annotation(400, 500, "Optimizer.step#SGD.step")
    for corr, start in ((1, 10), (2, 210), (3, 410)):
        trace.launch(start, start + 5, corr).kernel(start + 10, start + 20, corr)
    result = reasons(trace.write(tmp_path / "x.json"))
    assert result["aten.bmm", "fprop", 1] == reason
    assert ("record_shapes=True" in reason) == (not args)
    assert result["Optimizer.step#SGD.step", "fprop", 1] == NEVER_HAS_SHAPES


@pytest.mark.parametrize(
    ("name", "dims", "types", "reason"),
    [
        (
            "aten::cat",
            [[], []],
            ["TensorList", ""],
            r"neither the tensors of the list nor the result is in the capture",
        ),
        (
            "aten::mm",
            [[2], [], [3, 1], [], []],
            ["float", "", "float", "", "Scalar"],
            r"out_dtype: expected None or int or str, found tensor \[3, 1\]",
        ),
    ],
)
def test_arguments_that_do_not_fit_say_what_is_missing(tmp_path, name, dims, types, reason):
    trace = KinetoFile().op(0, 100, name, dims=dims, types=types)
    trace.launch(10, 20, corr=1).kernel(30, 40, corr=1)
    (result,) = reasons(trace.write(tmp_path / "x.json")).values()
    assert re.fullmatch(reason, result)


def test_arguments_that_no_signature_takes_are_listed():
    call = Call("aten", "mv", tuple(Arg("", Tensor((n,), "float")) for n in (2, 3, 4, 5)))
    assert ops.why_unknown(call, "fprop") == (
        "expected mv(left, vec), found 4 arguments: tensor [2], tensor [3], tensor [4], tensor [5]"
    )


def test_a_file_without_kernels_has_no_cost_to_know(tmp_path, capfd):
    path = str(Export().push_pop(0, 1, "mine", tid=1).write(tmp_path / "x.sqlite"))
    assert main(["prof", "--unknown", path]) == 0
    assert "no kernels, no costs; fastprof info" in capfd.readouterr().err


def test_copies_have_their_cost(tmp_path, capfd):
    trace = KinetoFile().launch(10, 20, corr=1).copy(30, 40, 1, "Memcpy HtoD (a -> b)", 64)
    path = str(trace.write(tmp_path / "x.json"))
    assert main(["prof", "--all", "--unknown", path]) == 0
    assert "every cost is known" in capfd.readouterr().err


def test_a_gpu_with_an_empty_name_is_not_named(tmp_path):
    trace = KinetoFile(deviceProperties=[{"id": i, "name": ""} for i in range(3)])
    trace.launch(10, 20, corr=1).kernel(30, 40, corr=1)
    path = trace.write(tmp_path / "x.json")
    assert fastprof.open(path).about.gpus == {}
    info = describe(fastprof.open(path, copies=True))
    assert [gpu["name"] for gpu in info["gpus"]] == [None]
    assert "GPUs        0: unknown model" in info_text(info)


def test_what_a_formula_expects_is_said_in_words_of_python():
    allowed = members(int | float | None | Unknown)
    with pytest.raises(CannotModel, match=r"^expected None or float or int, found 'mean'$"):
        convert("mean", allowed)
