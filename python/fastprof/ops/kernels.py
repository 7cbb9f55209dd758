"""What a kernel's name tells: the kind of work, operand layout, tensor cores.

Names are a convention of libraries and compilers, so all of this is recognition by example: a
kernel that no pattern knows is "other", and what its name does not say is None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["KINDS", "KernelInfo", "classify"]


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """What a name tells of a kernel.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    layout : str or None
        Of a gemm: how cuBLAS reads its left and right operand, "nn", "nt", "tn" or "tt" (n as
        stored by columns, t transposed). None when the name does not say.
    tensor_core : bool or None
        Whether it computes on tensor cores (matrix cores on AMD). None when the name does not
        say; only gemm, convolution and attention kernels have it.
    """

    kind: str
    layout: str | None = None
    tensor_core: bool | None = None


_NAMELESS: Final = re.compile(r"(?:\(anonymous namespace\)|<unnamed>)::")

# First match wins, on the subject of a name (see _subject): words inside a kernel's template
# arguments are not part of it and never count.
_PATTERNS: Final = (
    ("memcpy", r"^Memcpy\b|^\[CUDA memcpy|^CopyHostToDevice|^CopyDeviceToHost"),
    ("memset", r"^Memset\b|^\[CUDA memset"),
    ("communication", r"^nccl|^rccl|^msccl|nvshmem|cross_device_reduce|(one|two)_shot_all_reduce"),
    # Triton names a fused kernel by its form: pointwise, reduction, persistent reduction, template.
    ("elementwise", r"^triton_poi_"),
    ("reduction", r"^triton_(red|per|split)_"),
    ("attention", r"flash_?(fwd|bwd|attn|attention)|flash::|fmha|sdpa|attn_(fwd|bwd)|[aA]ttention"),
    ("attention", r"^triton_tem_.*(flex|attention)|bwd_kernel_(dk_dv|dq)|^mha_"),
    ("gemm", r"^triton_(tem|mm|bmm)_"),
    ("normalisation", r"(batch|layer|group|instance|rms)_?norm|(Batch|Layer|Group|RMS|Rms)Norm"),
    ("normalisation", r"RowwiseMoments|GammaBeta|Compute(Internal|Gradient|Fused)|\bbn_(fw|bw)"),
    ("softmax", r"[sS]oft_?[mM]ax"),
    # Layout changes around a convolution, before the words of convolutions.
    ("copy", r"(nchw|nhwc)To(Nchw|Nhwc)|tensorTransform"),
    (
        "convolution",
        r"[fdw](prop|grad)(?![a-z])|conv(olve|olution|[123]d)|(grouped|depthwise)_conv",
    ),
    (
        "convolution",
        r"scudnn|\dcudnn|cudnn_\d|winograd|implicit_gemm|im2col|col2im|igemm_(fwd|bwd|wrw)",
    ),
    ("convolution", r"cudnn::cnn::|compute\w*OffsetsKernel|fft2d_|dgrad_engine|wgrad_alg"),
    ("optimizer", r"multi_tensor_apply|(?<![a-z])(fused_)?(adamw?|sgd|lamb|lion)_|FusedAdam"),
    # fbgemm is a library of embedding kernels.
    ("gemm", r"(?<!fb)gemm|gemv|nvjet|^Cijk_|splitKreduce|^dot_kernel|^reduce_1Block|Gemm"),
    ("gemm", r"tensorop|wmma|^cutlass|epilogue::impl::"),
    ("random", r"[dD]ropout|distribution_|[pP]hilox|[rR]andom|randperm|bernoulli|curand"),
    ("sort", r"[sS]ort|[tT]op_?[kK]|[rR]adix|[bB]itonic"),
    (
        "index",
        r"[eE]mbedding|[iI]ndex(Select|Func|Add|Copy|Put|ing_|_(select|put|add|copy|elementwise))",
    ),
    ("index", r"gather|scatter|masked_(select|fill|scatter)"),
    ("copy", r"CatArray|[cC]opy|transpose|flip_filter"),
    ("elementwise", r"elementwise|[pP]ointwise|scalePackedTensor|(Sub|Op)Tensor(Op)?"),
    ("reduction", r"[rR]educ"),
)

# An elementwise kernel of ATen whose whole function is a copy, be it to another type.
_COPY_FUNCTION: Final = re.compile(
    r"elementwise_kernel\w*<\s*(?:(?:\(\w+\))?\d+,\s*)*"
    r"(?:(?:void )?at::native::gpu_kernel_impl(?:_nocast)?<\s*)?"
    r"at::native::(?:direct_copy_kernel_cuda|copy_device_to_device|b?float\w*_copy_kernel_cuda)\b"
)

_TENSOR_CORE: Final = (
    r"884(gemm|cudnn)|1688|16816|16832|8816|8832|161616|tensorop|[hi]mma|wmma|gmma|nvjet_"
    r"|xmma_gemm_\w*(?:f16|tf32|e4m3|e5m2|i8)|_tensor\d+x\d+x\d+"
    r"|flash_fwd|flash_bwd_dq|FlashAttn"
    r"|_MI\d+x\d+|xdl|gtcx"
)
_NO_TENSOR_CORE: Final = (
    r"[sdczh]gemm|gemv|simt|ffma|scudnn|gemmSN|gemmk1|^dot_kernel|splitKreduce|reduce_1Block"
)

_KINDS_BY_PATTERN: Final = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)
_USES: Final = ((True, re.compile(_TENSOR_CORE)), (False, re.compile(_NO_TENSOR_CORE)))
KINDS: Final = frozenset(kind for kind, _ in _PATTERNS) | {"other"}

# _tn, _tn_align8, _TNN (nvjet; the third letter is the output's).
_LAYOUT: Final = re.compile(r"_([nt][nt])[nt]?(?=_|$)", re.IGNORECASE)
# Tensile spells out index orders, the first being the fastest: Ailk is n, Alik t; Bljk n, Bjlk t.
_TENSILE: Final = re.compile(r"^Cijk_(Ailk|Alik)_(Bljk|Bjlk)")
_TENSILE_LETTER: Final = {"Ailk": "n", "Alik": "t", "Bljk": "n", "Bjlk": "t"}


def classify(name: str) -> KernelInfo:
    """Recognise a kernel by its name.

    Parameters
    ----------
    name : str
        Demangled name, long or short, as Nsight Systems, NVProf or the PyTorch profiler has it.

    Returns
    -------
    KernelInfo
        A heuristic. It fails silently where a library renames its kernels (kind "other", or
        None) and where one kernel serves two purposes: a convolution done by an sgemm is a gemm.
    """
    name = _NAMELESS.sub("", name)
    subject = _subject(name)
    matches = (kind for kind, pattern in _KINDS_BY_PATTERN if pattern.search(subject))
    kind = next(matches, "other")
    if kind == "elementwise" and _COPY_FUNCTION.search(name):
        kind = "copy"
    return KernelInfo(
        kind,
        _layout(subject) if kind == "gemm" else None,
        _tensor_core(subject) if kind in ("gemm", "convolution", "attention") else None,
    )


def _tensor_core(subject: str) -> bool | None:
    return next((uses for uses, pattern in _USES if pattern.search(subject)), None)


def _layout(subject: str) -> str | None:
    tensile = _TENSILE.search(subject)
    if tensile:
        return "".join(_TENSILE_LETTER[order] for order in tensile.groups())
    layout = _LAYOUT.search(subject)
    return layout[1].lower() if layout else None


def _subject(name: str) -> str:
    # The function's qualified name, without return type, template arguments and parameters.
    # CUTLASS wraps its kernels in one template, so there the first argument's name belongs to it.
    base = _without_templates(name).split("(")[0].strip()
    base = re.sub(r"^(?:void|.*::type)\s+", "", base)
    if re.search(r"(?:^|::)(?:Kernel2?|device_kernel)$", base):
        argument = re.search(r"<\s*([\w:]+)", name)
        return f"{base}<{argument[1]}" if argument else base
    return base


def _without_templates(text: str) -> str:
    # Text outside of <...>. The > of an arrow closes nothing.
    kept = []
    depth = 0
    for index, letter in enumerate(text):
        if letter == "<":
            depth += 1
        elif letter == ">" and text[index - 1 : index] != "-":
            depth = max(depth - 1, 0)
        elif depth == 0:
            kept.append(letter)
    return "".join(kept)
