"""Some 60 operators, once each, in a range `op:NAME`, with the L2 cache flushed before each.

Between cudaProfilerStart and Stop, for Nsight Compute; with RECORD=FILE under torch.profiler.
"""

import os
from collections.abc import Callable

import torch
import torch.nn.functional as F
from common import DEVICE
from torch import nn

BF16, FP16 = torch.bfloat16, torch.float16
OPERATORS: dict[str, Callable[[], object]] = {}
torch.manual_seed(0)


def normal(*sizes: int, dtype: torch.dtype = torch.float32, grad: bool = False) -> torch.Tensor:
    return torch.randn(*sizes, device=DEVICE, dtype=dtype, requires_grad=grad)


def products() -> None:
    x, w, b = normal(8192, 4096, dtype=BF16), normal(4096, 4096, dtype=BF16), normal(4096).to(BF16)
    few, one = normal(64, 4096, dtype=BF16), normal(1, 4096, dtype=BF16)
    a, c = normal(4096, 4096), normal(4096, 4096)
    h = normal(16, 1024, 1024, dtype=FP16)
    d = normal(1024, 1024).double()
    q = normal(2, 16, 2048, 64, dtype=BF16)

    def tf32():
        torch.backends.cuda.matmul.allow_tf32 = True
        y = a @ c
        torch.backends.cuda.matmul.allow_tf32 = False
        return y

    OPERATORS.update(
        linear_bf16=lambda: F.linear(x, w, b), linear_skinny=lambda: F.linear(few, w, b),
        linear_gemv=lambda: F.linear(one, w, b), mm_fp32=lambda: a @ c, mm_tf32=tf32,
        mm_fp64=lambda: d @ d, addmm=lambda: torch.addmm(c, a, c), bmm_fp16=lambda: torch.bmm(h, h),
        baddbmm=lambda: torch.baddbmm(h, h, h),
        einsum=lambda: torch.einsum("bhqd,bhkd->bhqk", q, q),
    )  # fmt: skip
    xg, wg = normal(8192, 4096, dtype=BF16, grad=True), normal(4096, 4096, dtype=BF16, grad=True)
    OPERATORS["linear_fwd_bwd"] = lambda: F.linear(xg, wg).sum().backward()
    if DEVICE == "cuda" and torch.cuda.get_device_capability() >= (8, 9):
        scale = torch.tensor(1.0, device=DEVICE)
        x8, w8 = x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn)
        OPERATORS["scaled_mm_fp8"] = lambda: torch._scaled_mm(
            x8, w8.t(), scale, scale, out_dtype=BF16
        )


def attention() -> None:
    q, one = normal(8, 16, 2048, 64, dtype=BF16), normal(8, 16, 1, 64, dtype=BF16)
    g = normal(8, 16, 2048, 64, dtype=BF16, grad=True)
    sdpa = F.scaled_dot_product_attention
    OPERATORS.update(
        sdpa_causal=lambda: sdpa(q, q, q, is_causal=True), sdpa_full=lambda: sdpa(q, q, q),
        sdpa_decode=lambda: sdpa(one, q, q),
        sdpa_fwd_bwd=lambda: sdpa(g, g, g, is_causal=True).sum().backward(),
    )  # fmt: skip


def convolutions() -> None:
    x, k = normal(64, 64, 56, 56), normal(64, 64, 3, 3)
    last = {"memory_format": torch.channels_last}
    xl, kl = normal(64, 256, 56, 56, dtype=BF16).to(**last), normal(64, 256, 1, 1).to(BF16, **last)
    image, stem, deep = normal(64, 3, 224, 224), normal(64, 3, 7, 7), normal(64, 1, 3, 3)
    xg, kg = normal(64, 64, 56, 56, grad=True), normal(64, 64, 3, 3, grad=True)
    norm = nn.BatchNorm2d(64).to(DEVICE)
    OPERATORS.update(
        conv3x3_fp32=lambda: F.conv2d(x, k, padding=1), conv1x1_bf16_cl=lambda: F.conv2d(xl, kl),
        conv7x7_stem=lambda: F.conv2d(image, stem, stride=2, padding=3),
        conv_depthwise=lambda: F.conv2d(x, deep, padding=1, groups=64),
        conv_fwd_bwd=lambda: F.conv2d(xg, kg, padding=1).sum().backward(),
        batch_norm_train=lambda: norm(x), max_pool=lambda: F.max_pool2d(x, 2),
        avg_pool=lambda: F.adaptive_avg_pool2d(x, 1),
        interpolate=lambda: F.interpolate(x, scale_factor=2, mode="bilinear"),
    )  # fmt: skip


def elementwise() -> None:
    x, b = normal(64, 64, 56, 56), normal(8192, 4096, dtype=BF16)
    a, c = normal(4096, 4096), normal(4096, 4096)
    OPERATORS.update(
        relu=lambda: F.relu(x), relu_=lambda: x.clone().relu_(), add=lambda: x + x,
        mul_scalar=lambda: x * 2.0, add_broadcast=lambda: x + x[:1], gelu_bf16=lambda: F.gelu(b),
        to_bf16=lambda: a.to(BF16), clone=lambda: a.clone(), zero_=lambda: a.clone().zero_(),
        masked_fill=lambda: a.masked_fill(a > 0, 0.0), where=lambda: torch.where(a > 0, a, c),
        dropout=lambda: F.dropout(a, 0.1, True), copy_d2d=lambda: torch.empty_like(a).copy_(a),
        transpose_copy=lambda: a.t().contiguous(), cat=lambda: torch.cat([a, a]),
    )  # fmt: skip


def reductions() -> None:
    x, weight = normal(8192, 4096, dtype=BF16), normal(4096, dtype=BF16)
    a, scores = normal(4096, 4096), normal(8192, 50304, dtype=BF16)
    targets = torch.randint(0, 50304, (8192,), device=DEVICE)
    norm, xg = nn.LayerNorm(4096).to(DEVICE).to(BF16), normal(8192, 4096, dtype=BF16, grad=True)
    OPERATORS.update(
        layer_norm=lambda: F.layer_norm(x, (4096,), weight, weight),
        layer_norm_fwd_bwd=lambda: norm(xg).sum().backward(),
        softmax=lambda: torch.softmax(a, -1), sum_dim=lambda: a.sum(0), mean_all=lambda: a.mean(),
        cross_entropy=lambda: F.cross_entropy(scores, targets), argmax=lambda: a.argmax(-1),
        cumsum=lambda: a.cumsum(-1), sort=lambda: a.sort(-1), topk=lambda: a.topk(8, -1),
    )  # fmt: skip


def indexing() -> None:
    table, a = normal(50304, 1024, dtype=BF16), normal(4096, 4096)
    ids = torch.randint(0, 50304, (16384,), device=DEVICE)
    rows = ids[:4096] % 4096
    columns = rows[:, None].expand(4096, 1024).contiguous()
    OPERATORS.update(
        embedding=lambda: F.embedding(ids, table), index_select=lambda: a[rows],
        gather=lambda: a.gather(1, columns),
    )  # fmt: skip


def training() -> None:
    parameters = [normal(1024, 1024, grad=True) for _ in range(32)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    adam = torch.optim.Adam(parameters, 1e-3, foreach=True)
    fused = torch.optim.AdamW(parameters, 1e-3, fused=True)
    sgd = torch.optim.SGD(parameters, 1e-3, momentum=0.9)
    lstm, x = nn.LSTM(512, 1024, 1).to(DEVICE), normal(64, 32, 512)
    OPERATORS.update(
        adam_foreach=adam.step, adamw_fused=fused.step, sgd_momentum=sgd.step,
        clip_grad_norm=lambda: nn.utils.clip_grad_norm_(parameters, 1.0), lstm=lambda: lstm(x),
    )  # fmt: skip


def compiled() -> None:
    x = normal(8192, 4096, dtype=BF16)
    function = torch.compile(lambda t: F.gelu(t * 1.5 + 2).sum(-1))
    OPERATORS["compiled_pointwise_sum"] = lambda: function(x)


def run_all(flush: torch.Tensor) -> None:
    for name, operator in OPERATORS.items():
        flush.zero_()
        torch.cuda.nvtx.range_push("op:" + name)
        with torch.profiler.record_function("op:" + name):
            operator()
        torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()


def main() -> None:
    groups = (products, attention, convolutions, elementwise, reductions, indexing, training)
    for group in (*groups, *([compiled] if DEVICE == "cuda" else [])):
        group()
    for operator in OPERATORS.values():
        operator()
    if DEVICE != "cuda":
        return
    torch.cuda.synchronize()
    flush = torch.empty(256 * 2**20 // 4, device=DEVICE)
    if not os.environ.get("RECORD"):
        torch.cuda.cudart().cudaProfilerStart()
        run_all(flush)
        torch.cuda.cudart().cudaProfilerStop()
        return
    from torch.profiler import ProfilerActivity, profile

    kinds = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=kinds, record_shapes=True) as recorder:
        run_all(flush)
    recorder.export_chrome_trace(os.environ["RECORD"])


main()
