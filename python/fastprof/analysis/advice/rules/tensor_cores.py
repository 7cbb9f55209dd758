"""Products without tensor cores, and shapes and unaligned tensors that prevent or slow them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.analysis.advice.calls import (
    CallFinding,
    CallGroup,
    CallGroups,
    KernelPart,
    by_time,
    operands,
    sizes,
    type_of,
)
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import call_rule, rule
from fastprof.analysis.roofline.ideal import PRACTICAL, PRODUCTS
from fastprof.model.devices import Device
from fastprof.ops.tensor_cores import Fp32, fp32_unit
from fastprof.profile.program import (
    CUDA,
    CUPY,
    INFERENCE,
    JAX,
    OTHER,
    SERVING,
    TENSORFLOW,
    TORCH,
    WITH_OPERATORS,
    Program,
)

_TENSOR, _BANDWIDTH = PRACTICAL
_CAUTION: Final = 2.0  # divides the ratio of the peaks, where FLOPs are unknown
_TF32_PRODUCTS: Final = 3  # of TF32, by which attention multiplies fp32 (CUTLASS, FastF32)
_TF32_GAIN: Final = 1.5  # of the peak; below it 16-bit types are the remedy
_ELIGIBLE: Final = "operators that can use tensor cores_share"
_OUTSIDE: Final = "other products use 16 bits: extend the autocast region to these"
_NARROW: Final = frozenset({"fp16", "bf16"})
_TF32: Final = {
    JAX: 'jax.default_matmul_precision("tensorfloat32")',
    TENSORFLOW: "tf.config.experimental.enable_tensor_float_32_execution(True)",
    CUPY: "CUPY_TF32=1",
    OTHER: "TF32 in the library that computes the products",
}
_MATMUL: Final = {
    **_TF32,
    TORCH: 'torch.set_float32_matmul_precision("high")',
    CUDA: "cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH)",
}
_CUDNN: Final = {
    **_TF32,
    TORCH: "torch.backends.cudnn.allow_tf32 = True",
    CUDA: "cudnnSetConvolutionMathType(..., CUDNN_TENSOR_OP_MATH)",
}
_BF16: Final = {
    TORCH: 'torch.autocast("cuda", dtype=torch.bfloat16)',
    SERVING: "the engine's type bfloat16 (--dtype bfloat16)",
    JAX: "arrays of jnp.bfloat16",
    TENSORFLOW: 'tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")',
    CUDA: "16-bit matrices with cublasGemmEx and CUBLAS_COMPUTE_32F",
    OTHER: "16-bit types",
}
_FP16: Final = {
    TORCH: 'torch.autocast("cuda", dtype=torch.float16), with torch.amp.GradScaler in training',
    INFERENCE: 'torch.autocast("cuda", dtype=torch.float16), or model.half()',
    SERVING: "the engine's type float16 (--dtype half)",
    JAX: "arrays of jnp.float16",
    TENSORFLOW: 'tf.keras.mixed_precision.set_global_policy("mixed_float16")',
    CUDA: _BF16[CUDA],
    OTHER: "16-bit types",
}


class _Way(NamedTuple):
    """A way to use tensor cores on a GPU.

    Parameters
    ----------
    remedy : changes
    figure : of `Device.flops`
    size : bytes of an element relative to fp32
    """

    remedy: tuple[str, ...]
    figure: str
    size: float


@call_rule("no-tensor-cores", least=0.03, needs=("name",))
def no_tensor_cores(calls: CallGroups) -> list[CallFinding]:
    """Products of fp32 matrices that run on the general cores of a GPU with tensor cores."""
    wasted: dict[tuple[str, bool], list[tuple[CallGroup, KernelPart]]] = {}
    for group in calls.groups:
        for part in group.parts:
            if _is_fp32(part):
                key = group.device.name or "", _is_conv(group, part)
                wasted.setdefault(key, []).append((group, part))
    generator = (_in_fp32(calls, members, is_conv) for (_, is_conv), members in wasted.items())
    return [finding for finding in generator if finding is not None]


def _is_fp32(part: KernelPart) -> bool:
    """Whether a product is computed in fp32; with tensor cores only in attention."""
    is_product = part.kind in PRODUCTS and not part.is_helper
    if _is_attention(part):
        return is_product and part.compute_type in ("fp32", "tf32")
    return is_product and part.tc == "0" and part.compute_type == "fp32"


def _is_attention(part: KernelPart) -> bool:
    return part.kind == "attention"


def _is_conv(group: CallGroup, part: KernelPart) -> bool:
    return "conv" in group.op if group.op else part.kind == "convolution"


def _in_fp32(
    calls: CallGroups, members: list[tuple[CallGroup, KernelPart]], is_conv: bool
) -> CallFinding | None:
    groups = by_time({id(group): group for group, _ in members}.values())
    parts, device = [part for _, part in members], groups[0].device
    fused = sum(part.ns for part in parts if _is_attention(part))
    # TF32 is no choice for attention: its fp32 kernels use it already.
    is_on = fused > 0 or _has_tf32(calls, device, is_conv)
    way = _way(calls.program, device, is_conv, is_on)
    if way is None:
        return None
    saved = {part.id: max(part.ns - _time_with(part, device, way), 0.0) for part in parts}
    if not any(saved.values()):
        return None
    saved |= {part.id: part.ns for group in groups for part in _helpers(group)}
    time, kernel_ns = sum(part.ns for part in parts), calls.kernel_ns
    eligible = sum(group.ns for group in calls.groups if _is_eligible(group))
    has_cost = all(part.flops > 0 for part in parts)
    outside = calls.program.kind in WITH_OPERATORS and _uses_half(calls, device)
    return CallFinding(
        f"{_subject(parts, is_conv)} in fp32 without the "
        f"{'full rate of the ' if fused == time else ''}tensor cores of {device.name}",
        groups,
        saved,
        {
            "gpu_ns": time,
            "of all kernels_share": time / kernel_ns,
            **({_ELIGIBLE: eligible / kernel_ns} if calls.has_ops else {}),
            **({"attention_ns": fused} if fused else {}),
            "kernel": max(parts, key=lambda part: part.ns).kernel,
        },
        (*way.remedy, *([_OUTSIDE] if outside else [])),
        "high" if has_cost else "medium",
        "FLOPs and bytes are known"
        if has_cost
        else "FLOPs are not recorded: half of the ratio of the peaks is assumed, or its root if "
        "that is more",
        effect="Tensor cores would save {saving}.",
    )


def _helpers(group: CallGroup) -> list[KernelPart]:
    """The helpers of calls without tensor cores: transforms and scaling of fp32 algorithms."""
    if any(part.tc == "1" for part in group.parts) or not any(part.flops for part in group.parts):
        return []
    return [part for part in group.parts if part.is_helper and part.kind != "memcpy"]


def _has_tf32(calls: CallGroups, device: Device, is_conv: bool) -> bool:
    """Whether TF32 is enabled: other calls use it."""
    return any(
        part.compute_type == "tf32" and not _is_attention(part)
        for group in calls.groups
        for part in group.parts
        if group.device is device and _is_conv(group, part) == is_conv
    )


def _uses_half(calls: CallGroups, device: Device) -> bool:
    """Whether products use 16 bits on these GPUs."""
    return any(
        part.tc == "1" and part.compute_type in _NARROW
        for group in calls.groups
        if group.device is device
        for part in group.parts
    )


def _is_eligible(group: CallGroup) -> bool:
    """Whether the operator has a product that tensor cores can run."""
    return any(part.tc in ("0", "1") for part in group.parts)


def _way(program: Program, device: Device, is_conv: bool, is_on: bool) -> _Way | None:
    """The simplest way to use this GPU's tensor cores in place of fp32.

    is_on : TF32 is enabled, and the library chose fp32
    """
    unit = fp32_unit(device.name or "")
    if unit in (None, Fp32.NOTHING):
        return None
    half = device.flops.get("half")
    tf32, fp32 = device.flops.get("tf32", 0.0), device.flops.get("fp32", 0.0)
    has_tf32 = unit is Fp32.TF32 or (unit is Fp32.AMD_TF32 and not is_conv)
    if has_tf32 and not is_on and tf32 > _TF32_GAIN * fp32:
        switch = program.choose(_CUDNN if is_conv else _MATMUL)
        if unit is Fp32.AMD_TF32:
            switch = f"HIPBLASLT_ALLOW_TF32=1 and {switch}"
        return _Way((switch, f"or {program.choose(_BF16)}"), "tf32", 1.0)
    if half is None or half <= fp32:
        return None
    return _Way((program.choose(_FP16 if unit is Fp32.HALF else _BF16),), "half", 0.5)


def _subject(parts: list[KernelPart], is_conv: bool) -> str:
    if is_conv:
        return "Convolutions run"
    kinds = {_is_attention(part) for part in parts}
    names = {False: "Matrix products", True: "attention"}
    text = " and ".join(names[kind] for kind in sorted(kinds))
    return f"{text[0].upper()}{text[1:]} {'runs' if text == names[True] else 'run'}"


def _time_with(part: KernelPart, device: Device, way: _Way) -> float:
    """ns a step with tensor cores, at the practical roof.

    Without FLOPs, with half of the ratio of the peaks, or its root if that is more.
    """
    if not part.flops:
        now = device.flops.get("fp32", 0.0)
        if _is_attention(part) and part.tc == "1":
            now = max(now, device.flops.get("tf32", 0.0) / _TF32_PRODUCTS)
        ratio = device.flops[way.figure] / now if now else 1.0
        return part.ns / max(1.0, ratio / _CAUTION, math.sqrt(ratio))
    peak = device.flops[way.figure] * _TENSOR
    moved = part.bytes * way.size / (device.bandwidth * _BANDWIDTH) if device.bandwidth else 0.0
    return max(part.flops / peak, moved) * 1e9


_SLOW: Final = 0.4  # of the practical roof, for kernels with tensor cores
_LARGE: Final = 256


@call_rule("bad-shape", least=0.02, programs=WITH_OPERATORS, needs=("shapes", "peaks"))
def bad_shape(calls: CallGroups) -> list[CallFinding]:
    """Products of 16-bit types with a size that is not a multiple of 8."""
    return [finding for finding in map(_misaligned, calls.groups) if finding is not None]


def _misaligned(group: CallGroup) -> CallFinding | None:
    if type_of(group.shape) not in _NARROW or group.kind not in PRODUCTS:
        return None
    work = [part for part in group.parts if part.kind in PRODUCTS and not part.is_helper]
    odd = {name: size for name, size in _padded_sizes(group).items() if size % 8}
    time, ideal = (sum(getattr(part, name) for part in work) for name in ("ns", "ideal_ns"))
    if not odd or not ideal or not all(part.has_ideal for part in work):
        return None
    has_cores = all(part.tc == "1" for part in work)
    if has_cores and ideal > _SLOW * time:
        return None
    padded = {name: padded_size(size) for name, size in odd.items()}
    growth = 1.0
    for name, size in odd.items():
        growth *= padded[name] / size
    target = ideal * growth * (1.0 if has_cores else _peak_ratio(group.device))
    if target >= time:
        return None
    names = ", ".join(f"{name}={size}" for name, size in odd.items())
    remedy = ", ".join(f"{odd[name]} to {size}" for name, size in padded.items())
    return CallFinding(
        f"The operator {group.op} with {names}, not a multiple of 8, runs on "
        f"{'slow tensor-core kernels' if has_cores else 'kernels without tensor cores'}",
        [group],
        {part.id: part.ns * (1 - target / time) for part in work},
        {"gpu_ns": time, "attainable_ns": target, "of the practical roof_share": ideal / time},
        (f"pad {remedy}",),
        "medium" if has_cores else "high",
        "the kernel uses tensor cores; other limits are possible"
        if has_cores
        else "tensor cores need rows of a multiple of 16 bytes",
        effect="Padding would save {saving}.",
    )


def _padded_sizes(group: CallGroup) -> dict[str, int]:
    """The sizes to align; not the three channels of images."""
    result = sizes(group.shape)
    names = ("C", "K") if "C" in result else ("M", "K")
    return {name: result[name] for name in names if result.get(name, 0) > 4}


def padded_size(size: int) -> int:
    """The next multiple of 64 of a large size, of 8 otherwise: 50257 becomes 50304."""
    multiple = 64 if size > _LARGE else 8
    return -(-size // multiple) * multiple


def _peak_ratio(device: Device) -> float:
    """The time at the peak of tensor cores against that at the peak without."""
    half = device.flops.get("half", 0.0) * _TENSOR
    return device.flops.get("fp32", half) / half if half else 1.0


# Elements that fill 16 bytes, the longest access of a GPU.
_FULL: Final = {"fp32": 4, "tf32": 4, "fp16": 8, "bf16": 8, "fp8": 16, "int8": 16}
_ALIGNMENT: Final = regex(r"_align(\d+)(?!\d)")
_NOT_ALIGNED: Final = regex(r"fmha_cutlass[fb]_\w*(?:notaligned|unaligned)", re.IGNORECASE)
_BUILT_FOR: Final = regex(r"(?:cutlass|sm)_?(\d\d)(?!\d)_")
_SAVED: Final = 0.5  # of the time, where the cost is unknown
_SIZES: Final = 3  # most that a remedy names


@rule("unaligned-kernel", least=0.02)
def _unaligned(facts: Facts) -> Iterator[Finding]:
    """Products and attention on kernels for rows that are no multiple of 16 bytes."""
    yield from (finding.finding(facts.calls) for finding in unaligned(facts.calls))


def unaligned(calls: CallGroups) -> list[CallFinding]:
    """The kernels of tensor cores that load less than 16 bytes at once, by kind of work."""
    members: dict[str, list[tuple[CallGroup, KernelPart]]] = {}
    for group in calls.groups:
        for part in group.parts:
            if _is_unaligned(part):
                members.setdefault(part.kind, []).append((group, part))
    return [_finding(calls, kind, member) for kind, member in members.items()]


def _is_unaligned(part: KernelPart) -> bool:
    if part.kind not in PRODUCTS or part.is_helper or part.tc != "1":
        return False
    if _NOT_ALIGNED.search(part.name):
        return True
    aligned = _ALIGNMENT.search(part.name)
    full = _FULL.get(part.compute_type or "")
    return aligned is not None and full is not None and int(aligned[1]) < full


def _finding(
    calls: CallGroups, kind: str, members: list[tuple[CallGroup, KernelPart]]
) -> CallFinding:
    parts = sorted((part for _, part in members), key=lambda part: -part.ns)
    groups = by_time({id(group): group for group, _ in members}.values())
    time, has_cost = sum(part.ns for part in parts), all(part.has_ideal for part in parts)
    name = "Attention runs" if kind == "attention" else "Products run"
    return CallFinding(
        f"{name} on kernels for rows that are not a multiple of 16 bytes",
        groups,
        {part.id: _saved(part) for part in parts},
        {
            "gpu_ns": time,
            "of all kernels_share": time / max(calls.kernel_ns, 1.0),
            "kernel": _telling(parts[0]),
            **_older(parts[0], groups[0]),
        },
        (_padding(groups),),
        "medium",
        "aligned kernels are assumed to reach the practical roof"
        if has_cost
        else "the cost is unknown: aligned kernels are assumed to be twice as fast",
        effect="Padding would save {saving}.",
    )


def _saved(part: KernelPart) -> float:
    """ns a step: down to the practical roof, or half of the time where the cost is unknown."""
    return max(part.ns - part.ideal_ns, 0.0) if part.has_ideal else part.ns * _SAVED


def _telling(part: KernelPart) -> str:
    """The words of a name that tell the alignment."""
    words = [each for each in re.split(r"[<>(),:\s]+", part.name) if "align" in each]
    return words[0] if words else part.kernel


def _older(part: KernelPart, group: CallGroup) -> dict[str, str]:
    """For which older GPU a kernel was built, if its name tells one."""
    built, owned = _BUILT_FOR.search(part.name), group.device.capability or ""
    if built is None or not re.fullmatch(r"\d+\.\d", owned) or built[1] == owned.replace(".", ""):
        return {}
    return {"built for compute capability": f"{built[1][0]}.{built[1][1]} of a GPU of {owned}"}


def _padding(groups: list[CallGroup]) -> str:
    """The sizes to pad: those of the calls that are no multiple of 8."""
    odd = {
        size: None
        for group in groups
        for size in (
            *sizes(group.shape).values(),
            *(size for operand in operands(group.shape) for size in operand.shape),
        )
        if size > 8 and size % 8
    }
    if not odd:
        return (
            "pad the sizes of these tensors (length of keys and values, channels, vocabulary) to a "
            "multiple of 8, and mask the rest"
        )
    names = ", ".join(f"{size} to {-(-size // 8) * 8}" for size in list(odd)[:_SIZES])
    return f"pad {names}, and mask the rest"
