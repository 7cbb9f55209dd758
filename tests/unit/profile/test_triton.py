"""What Inductor records of the Triton kernels that it starts."""

import fastprof
from fastprof.cli import main
from support.kineto_files import KinetoFile

RECORD = {
    "kernel_backend": "triton", "kernel_file": "/tmp/c.py", "kernel_hash": "c",
    "kernel_kwargs": "XBLOCK=64,BIAS=True", "num_warps": 4, "num_stages": 1,
}  # fmt: skip


def write(path, **changed):
    trace = KinetoFile().op(0, 50, "my_kernel", **RECORD | changed)
    trace.op(10, 30, "aten::mm").launch(15, 20, 1).kernel(100, 150, 1, "my_kernel")
    trace.launch(60, 65, 2).kernel(200, 250, 2, "other")
    return trace.write(path)


def test_constants_warps_and_stages(tmp_path, capsys):
    path = write(tmp_path / "trace.json")
    column = fastprof.open(path).column("triton")
    text = "XBLOCK=64, BIAS=True, num_warps=4, num_stages=1"
    assert [column.at(0), column.at(1)] == [text, None]
    assert main(["kernel", str(path), "1"]) == 0
    assert f"Triton: {text}\n" in capsys.readouterr().out
    assert main(["kernel", str(path), "2"]) == 0
    assert "Triton" not in capsys.readouterr().out


def test_records_of_other_backends_and_without_constants(tmp_path):
    other = fastprof.open(write(tmp_path / "trace.json", kernel_backend="cutlass"))
    assert other.column("triton").at(0) is None
    bare = fastprof.open(write(tmp_path / "trace.json", kernel_kwargs=""))
    assert bare.column("triton").at(0) == "num_warps=4, num_stages=1"
