"""Where fastprof may differ from the oracle, one by one, with the reason.

By the file, the check and what differs there, as `oracle_comparison.Difference` says it. An
exception that no longer occurs fails `test_oracle.py`: delete it then.
"""

from __future__ import annotations

# What issue 14 mends; each goes with the item that mends it.
OWN_SIZES = "14.3: sizes of backward products come from the forward call and the kernel's name"
CUSTOM = "14.1: the innermost carrier of the number, which is not the function whose node it is"
GRADIENT_SUMS = "14.5: gradients that the engine adds up outside of all nodes count as forward"
ENGINE = "14.5: kernels of the engine's thread are in no range"
RECOMPUTED = "14.2: forward work that non-reentrant checkpointing does again counts as backward"
OUT = "14.8: the tensor `out` is taken for an option"
NO_STRIDE = "14.11: stride and padding are not recorded, and the result's size is not looked up"

_NODE = "torch::autograd::CppNode<"
_LOOKUP = _NODE + "SplitLookupFunction_"
_PERMUTE = _NODE + "fbgemm_gpu::PermutePooledEmbsFunction<&fbgemm_gpu::permute_pooled_embs_gpu> >"
_FBGEMM = "'fbgemm::split_embedding_codegen_lookup_"

_DENSE = {
    ("forward call", f"{_LOOKUP}Dense_Op>: ['fbgemm::dense_embedding_codegen_lookup_function'], "
     "not aten::to"): CUSTOM,
    ("op", f"{_LOOKUP}Dense_Op>: not to"): CUSTOM,
}  # fmt: skip
_ADAGRAD = {
    ("forward call", f"{_LOOKUP}adagrad_Op>: [{_FBGEMM}adagrad_function'], "
     "not aten::zero_"): CUSTOM,
    ("op", f"{_LOOKUP}adagrad_Op>: not zero_"): CUSTOM,
}  # fmt: skip
_ROWWISE = {
    ("forward call", f"{_LOOKUP}rowwise_adagrad_Op>: [{_FBGEMM}rowwise_adagrad_function'], "
     "not aten::zero_"): CUSTOM,
    ("op", f"{_LOOKUP}rowwise_adagrad_Op>: not zero_"): CUSTOM,
}  # fmt: skip
_PERMUTED = {
    ("forward call", f"{_PERMUTE}: ['fbgemm::permute_pooled_embs_auto_grad'], "
     "not aten::to"): CUSTOM,
    ("op", f"{_PERMUTE}: not to"): CUSTOM,
}  # fmt: skip
_RESNET_2021 = {
    ("FLOPs", "aten::conv2d in conv2d, fprop: unknown"): NO_STRIDE,
    ("direction", "add: bprop, not fprop"): GRADIENT_SUMS,
    ("direction", "sum: bprop, not fprop"): GRADIENT_SUMS,
}

EXCEPTIONS: dict[str, dict[tuple[str, str], str]] = {
    **{f"kineto/dlrm_rank{rank}.json.gz": _DENSE | _ADAGRAD for rank in range(4)},
    "kineto/recommender_2023.json.gz": {
        **_ROWWISE,
        ("M, N, K", "aten::bmm in matmul, bprop: not its own sizes"): OWN_SIZES,
        ("M, N, K", "aten::mm in addmm, bprop: M and N are swapped"): OWN_SIZES,
        ("M, N, K", "aten::mm in matmul, bprop: not its own sizes"): OWN_SIZES,
        ("M, N, K", "aten::mm in linear, bprop: not its own sizes"): OWN_SIZES,
        ("M, N, K", "aten::mm in matmul, bprop: M and N are swapped"): OWN_SIZES,
    },
    "kineto/resnet50_2021_4workers.json.gz": _RESNET_2021,
    "kineto/resnet50_2021_stack_memory.json.gz": _RESNET_2021,
    "kineto/resnet_checkpoint_mi300.json.gz": {
        ("direction", "relu_: fprop, not bprop"): RECOMPUTED,
        ("FLOPs", "aten::conv2d in relu_, bprop: other"): RECOMPUTED,
    },
    "kineto/sd35_compile_mi300.json.gz": {
        ("FLOPs", "aten::mm in mm, fprop: unknown"): OUT,
        ("FLOPs", "aten::addmm in addmm, fprop: unknown"): OUT,
    },
    "kineto/triton_compile.json.gz": {("FLOPs", "aten::mm in mm, fprop: unknown"): OUT},
    "kineto/train_v100_2022.json.gz": _ROWWISE | _PERMUTED,
    "kineto/train_v100_2022_control.json.gz": {
        **_ROWWISE,
        **_PERMUTED,
        ("M, N, K", "aten::bmm in bmm, bprop: not its own sizes"): OWN_SIZES,
        ("M, N, K", "aten::bmm in bmm, bprop: M and N are swapped"): OWN_SIZES,
    },
    "nsys/ranges_rtx3070_nsys2025.sqlite": {
        ("direction", "None: bprop, not None"): ENGINE,
    },
    "pyprof/lm_v100_nvprof.sql": {
        ("direction", f"{op}: bprop, not fprop"): GRADIENT_SUMS for op in ("add_", "sum", "add")
    },
}
