"""What `fastprof advise` names for a call, as variants that a script runs beside the call.

A variant changes the types, sizes and strides of the arguments, or how the call runs, never its
mathematics: its result is that of the call. What joins several calls (attention from `bmm`,
`softmax` and `bmm`, the passes of an optimizer) is out of reach; `beyond` says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from fastprof._system.classes import NamedTuple
from fastprof.analysis.repro.padding import (
    ATTENTION,
    CONVOLUTIONS,
    PRODUCTS,
    channels_last,
    in_type,
    padded,
)
from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops.dtypes import canonical_type
from fastprof.ops.registry import MODULES
from fastprof.ops.tensor_cores import Fp32, fp32_unit

# Settings: names that the script's function `setting` and `Repeated` know.
_TF32, _BENCHMARK, _COMPILE = "tf32", "benchmark", "compile"
_AUTOTUNE: Final = "max-autotune-no-cudagraphs"
_BACKENDS: Final = ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "MATH")
_OPTIMIZER: Final = ("foreach", "for-loop")

# Operators that `ATTENTION` runs: their arguments mask, dropout, causality and scale.
_INNER: Final = {
    "_scaled_dot_product_flash_attention": (None, 3, 4, 6),
    "_scaled_dot_product_efficient_attention": (3, 5, 6, 7),
    "_scaled_dot_product_cudnn_attention": (3, 5, 6, 8),
}
_IMAGES: Final = frozenset(
    {
        *(name for name in CONVOLUTIONS if not name.endswith("1d")),
        *("batch_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"),
        *("group_norm", "native_group_norm", "instance_norm"),
        *("max_pool2d", "max_pool2d_with_indices", "max_pool3d", "avg_pool2d", "avg_pool3d"),
        *("adaptive_avg_pool2d", "_adaptive_avg_pool2d", "adaptive_max_pool2d"),
        *("upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d"),
    }
)
_UPDATES: Final = frozenset({"_fused_adam_", "_fused_adamw_", "_fused_sgd_"})
_HALF: Final = ("bfloat16", "float16")
_AUTOCAST: Final = {"bf16": ("bfloat16",), "fp16": ("float16",)}


class Variant(NamedTuple):
    """A variant of a call.

    Parameters
    ----------
    name : as advice and torch name it
    call : with its arguments
    setting : how it runs; "" for as the call
    useful : the share of its FLOPs that the call needs, 0 to 1
    """

    name: str
    call: Call
    setting: str = ""
    useful: float = 1.0


def variants(call: Call, gpu: str, compute: str | None) -> list[Variant]:
    """The variants that apply to a call of torch.

    gpu : name of the GPU, "" if unknown
    compute : the arithmetic of the recorded products: tf32, fp32, fp16, bf16; None if unknown
    """
    if call.mod != "aten" and call.mod not in MODULES:
        return []
    outer = _attention(call)
    return [
        *_types(call, gpu, compute),
        *_sizes(outer or call),
        *_layouts(call),
        *_settings(call, outer),
    ]


def beyond(call: Call) -> str:
    """A remedy that joins this call with others, which its variants cannot show; "" for none."""
    shapes = [arg.value.shape for arg in call.args if isinstance(arg.value, Tensor)]
    if call.op in ("bmm", "baddbmm", "softmax", "_softmax") and shapes and len(shapes[0]) > 2:
        return (
            "attention from bmm, softmax and bmm: "
            "torch.nn.functional.scaled_dot_product_attention joins these calls"
        )
    if call.op.startswith("_foreach_"):
        return "the optimizer's argument fused=True joins this call with the others of a step"
    return ""


def _types(call: Call, gpu: str, compute: str | None) -> Iterator[Variant]:
    """16-bit types, and TF32, of products of float32; in autocast, its type without casts."""
    is_product = call.op in PRODUCTS or call.op in CONVOLUTIONS
    if not (is_product or call.op == ATTENTION) or set(_HALF) & _dtypes(call):
        return
    is_new = compute in (None, "fp32") and "float32" in _dtypes(call) and _has_tf32(call, gpu)
    if is_product and is_new:
        switch = (
            "torch.backends.cudnn.allow_tf32 = True"
            if call.op in CONVOLUTIONS
            else 'torch.set_float32_matmul_precision("high")'
        )
        yield Variant(switch, call, _TF32)
    for dtype in _AUTOCAST.get(compute or "", _HALF):
        changed = in_type(call, dtype)
        if changed is not None:
            yield Variant(f"torch.{dtype}", changed)
            last = channels_last(changed) if call.op in _IMAGES else None
            if last is not None and call.op in CONVOLUTIONS:
                yield Variant(f"torch.{dtype}, channels_last", last)


def _has_tf32(call: Call, gpu: str) -> bool:
    """Whether the GPU has TF32 for this call, or is unknown."""
    unit = fp32_unit(gpu)
    return unit in (None, Fp32.TF32) or (unit is Fp32.AMD_TF32 and call.op not in CONVOLUTIONS)


def _sizes(call: Call) -> Iterator[Variant]:
    result = padded(call)
    if result is not None:
        changed, text, useful = result
        yield Variant(f"pad {text}", changed, useful=useful)


def _layouts(call: Call) -> Iterator[Variant]:
    changed = channels_last(call) if call.op in _IMAGES else None
    if changed is not None:
        yield Variant("channels_last", changed)


def _settings(call: Call, outer: Call | None) -> Iterator[Variant]:
    """Other ways to run the same arguments."""
    if outer is not None:
        for backend in _BACKENDS:
            yield Variant(f"SDPBackend.{backend}", outer, backend)
    if call.op in _UPDATES:
        for name in _OPTIMIZER:
            yield Variant(f"{name} in place of fused", call, name)
        return
    if call.op in CONVOLUTIONS:
        yield Variant("torch.backends.cudnn.benchmark = True", call, _BENCHMARK)
    if call.op in PRODUCTS:
        yield Variant(f'torch.compile(mode="{_AUTOTUNE}")', call, _AUTOTUNE)
    else:
        yield Variant("torch.compile", call, _COMPILE)


def _attention(call: Call) -> Call | None:
    """The call of `ATTENTION` that has the same result first; None if there is none."""
    if call.op == ATTENTION:
        return call
    places = _INNER.get(call.op)
    if places is None:
        return None
    values = [arg.value for arg in call.args]
    defaults = (None, 0.0, False, None)
    given: Sequence[Any] = [
        values[at] if at is not None and at < len(values) else default
        for at, default in zip(places, defaults, strict=True)
    ]
    args = tuple(Arg("", value) for value in (*values[:3], *given))
    return replace(call, op=ATTENTION, args=args)


def _dtypes(call: Call) -> set[str | None]:
    return {canonical_type(arg.value.dtype) for arg in call.args if isinstance(arg.value, Tensor)}
