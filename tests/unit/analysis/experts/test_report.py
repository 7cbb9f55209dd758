"""`experts`: tokens, parts and imbalance of mixtures of experts."""

import pytest

import fastprof
from fastprof.analysis.experts.work import Sizes, sizes_of
from fastprof.model.call import Arg, Call, Tensor
from support.kineto_files import KinetoFile

US = 1000
HALF = "c10::BFloat16"


def report(trace, tmp_path, **options):
    return fastprof.open(trace.write(tmp_path / "one.json")).experts(**options)


class Timeline:
    """Work one after another: each has 10 us on the host, and its kernel 100 us later."""

    def __init__(self) -> None:
        self.trace, self.time, self.corr = KinetoFile(), 0, 0

    def op(self, name, us, kernel, layer="", **fields):
        begin = self.time
        if layer:
            self.trace.annotation(begin, begin + 10 * US, f"layer:{layer}")
        self.trace.op(begin + 1, begin + 9 * US, name, **fields)
        self.corr += 1
        self.trace.launch(begin + 2, begin + 3, self.corr)
        start = begin + 100 * US
        self.trace.kernel(start, start + us * US, self.corr, kernel)
        self.time += 500 * US
        return self

    def all_to_all(self, us, given, got, layer):
        fields = {
            "Collective name": "all_to_allv", "In msg nelems": sum(given) * 8,
            "Out msg nelems": sum(got) * 8, "dtype": "BFloat16", "Group size": len(given),
            "In split size": str(list(given)), "Out split size": str(list(got)),
            "Process Group Name": "0",
        }  # fmt: skip
        kernel = "ncclDevKernel_SendRecv(ncclDevComm*)"
        return self.op("record_param_comms", us, kernel, layer, **fields)


def product(time, rows, layer, us=20):
    dims = [[rows, 8], [8, 16]]
    return time.op("aten::mm", us, "nvjet_tst", layer, dims=dims, types=[HALF] * 2)


def test_rows_of_experts_that_are_layers(tmp_path):
    time = Timeline()
    for expert, rows in ((0, 10), (1, 50), (3, 20)):  # expert 2 has no rows
        product(time, rows, f"net.mlp.experts.{expert}", us=10)
    (row,) = report(time.trace, tmp_path).rows()
    assert (row["layer"], row["experts"], row["among"]) == ("net.mlp", 4, "experts")
    assert (row["rows"], row["most_rows"], row["imbalance"]) == (20, 50, 2.5)
    assert (row["gpu_ns"], row["products_ns"]) == (30 * US, 30 * US)
    assert row["exact"] == 1


def test_the_worst_step_of_a_layer(tmp_path):
    time = Timeline()
    for step, rows in enumerate([(30, 10), (20, 20)]):
        begin = time.time
        for expert, own in enumerate(rows):
            product(time, own, f"net.experts.{expert}")
        time.trace.annotation(begin, time.time - 1, f"ProfilerStep#{step}")
    (row,) = report(time.trace, tmp_path).rows()
    assert (row["imbalance"], row["worst"]) == (1.25, 1.5)


def exchange(given=(10, 30), got=(10, 50)):
    time = Timeline().all_to_all(7, given, got, "net.moe")
    dims, types = [[sum(got), 8], [2, 8, 16], [2]], [HALF] * 2 + ["int"]
    time.op("aten::_grouped_mm", 60, "nvjet_tst", "net.moe", dims=dims, types=types)
    return time.all_to_all(7, got, given, "net.moe")


def test_split_sizes_tell_the_shares_of_ranks(tmp_path):
    table = report(exchange().trace, tmp_path)
    (row,) = table.rows()
    assert (row["among"], row["rows"], row["most_rows"], row["imbalance"]) == ("ranks", 20, 30, 1.5)
    # It receives 60 rows and sends 40: its work is 1.5 times the mean.
    assert row["load"] == 1.5
    assert row["lost_ns"] == pytest.approx(20 * US)
    assert (row["products_ns"], row["exchange_ns"]) == (60 * US, 14 * US)
    assert (row["tokens"], row["experts"]) == (60, 2)
    assert "lost to it" in table.text()


def test_a_rank_with_less_than_the_mean_loses_nothing_itself(tmp_path):
    (row,) = report(exchange(got=(10, 10)).trace, tmp_path).rows()
    assert (row["load"], row["lost_ns"]) == (0.5, 0)


def test_a_fused_layer_has_parts_but_no_shares(tmp_path):
    time, dims = Timeline(), [[64, 8], [64, 16], []]
    types = [HALF] * 2 + [""]
    time.op("vllm::moe_forward", 30, "bmm_gemm_kernel", "net.moe", dims=dims, types=types)
    time.op("vllm::moe_forward", 5, "void moe::dev::routing::histogram<int>", "net.moe",
            dims=dims, types=types)  # fmt: skip
    time.op("vllm::moe_forward", 3, "quantize", "net.moe", dims=dims, types=types)
    table = report(time.trace, tmp_path)
    (row,) = table.rows()
    assert (row["tokens"], row["experts"], row["calls"]) == (64, 16, 3)
    parts = [row[f"{part}_ns"] // US for part in ("products", "routing", "other")]
    assert parts == [30, 5, 3]
    assert (row["imbalance"], row["load"], row["lost_ns"]) == (None, None, None)
    assert "cannot be told from this capture" in table.text()


def test_kernels_alone_are_not_exact(tmp_path):
    trace = KinetoFile().launch(0, 10, 1, name="cudaGraphLaunch")
    trace.kernel(20, 50, 1, "fused_moe_kernel").kernel(60, 70, 1, "gemm")
    (row,) = report(trace, tmp_path).rows()
    assert (row["layer"], row["gpu_ns"], row["exact"]) == ("(no layer)", 30, 0)


def test_where_selects_the_time(tmp_path):
    table = report(exchange().trace, tmp_path, where={"op": "_grouped_mm"})
    (row,) = table.rows()
    assert (row["gpu_ns"], row["exchange_ns"]) == (60 * US, 0)


def test_other_programs_have_none(tmp_path):
    time = product(Timeline(), 10, "net.mlp").all_to_all(5, (10, 30), (10, 20), "embedding")
    table = report(time.trace, tmp_path)
    assert table.n_rows == 0
    assert "no experts" in table.text()


def test_sizes_follow_from_the_formula_of_the_operator():
    tensors = [(64, 8), (4, 32, 8), (4, 8, 16), (64, 2), (64, 2)]
    args = tuple(Arg("", Tensor(shape, "bfloat16")) for shape in tensors)
    assert sizes_of(Call("vllm", "fused_experts", args)) == Sizes(64, 4, 2)
    assert sizes_of(Call("aten", "_grouped_mm", args[:2])) == Sizes(64, 4, None)
