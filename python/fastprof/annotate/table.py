"""The functions and methods that `init` wraps.

They are torch's C operators, the Python functions of torch.functional and torch.nn.functional,
Tensor methods, and methods of optimizers, recurrent modules and data loaders. Bookkeeping that
launches no GPU work (`size`, `is_contiguous`) is not wrapped.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from inspect import getattr_static, isbuiltin
from types import FunctionType
from typing import Any, Final

import torch
from torch import Tensor, overrides
from torch._ops import OpOverload, OpOverloadPacket
from torch.nn import functional
from torch.utils.data import dataloader


@dataclass(frozen=True, slots=True)
class WrappedFunction:
    """A function to wrap.

    Parameters
    ----------
    function : callable
        The function object held by the modules or the class in `homes`.
    mod, op : str
        Module and operator name in its argument marker.
    homes : tuple of (module or class, str)
        The owners of the function and its attribute name in each, that of `mod` and `op` first.
    overloads : bool
        Whether its C implementation passes the original function to `__torch_function__`.
    reads : bool
        Whether it only reads a tensor's values, such as `item`. On a CPU tensor that launches no
        kernel or copy, and Adam does it once per parameter.
    """

    function: Callable[..., Any]
    mod: str
    op: str
    homes: tuple[tuple[Any, str], ...]
    overloads: bool = False
    reads: bool = False


@dataclass(frozen=True, slots=True)
class Method:
    """A method to wrap: `owner.name`, recorded as `mod` and `op`.

    `unless(args, kwargs)` is true for calls that get no ranges. `named(object)` returns mod and op
    for that object, or None if its calls get no ranges.
    """

    owner: type
    name: str
    mod: str
    op: str
    unless: Callable[[tuple[Any, ...], dict[str, Any]], bool] | None = None
    named: Callable[[Any], tuple[str, str] | None] | None = None


# These launch no GPU work.
_BOOKKEEPING: Final = re.compile(
    r"is_.*|cudnn_is_.*|sym_.*|q_.*|_.*|.*storage.*|(?:const_)?data_ptr|dim_order|"
    r"(?:sparse|dense)_dim|register_.*hook|retain_grad|requires_grad_|record_stream|get_device|"
    r"qscheme|module_load|size|stride|dim|ndim|ndimension|numel|nelement|element_size|share_memory_|"
    r"as_subclass|assert_.*|broadcast_shapes|names|refine_names|rename_?|align_.*|result_type|"
    r"can_cast|promote_types|as_sparse_gradcheck"
)
# Operators despite the leading underscore.
_PRIVATE: Final = re.compile(r"_foreach_.+|_fused_.+|_scaled_.*mm.*|_grouped_mm|_int_mm|_amp_.+")
_OPERATORS: Final = re.compile(
    r"__(?:[ir]?(?:add|sub|mul|truediv|floordiv|div|mod|pow|matmul|and|or|xor|lshift|rshift)"
    r"|neg|pos|abs|invert|eq|ne|lt|le|gt|ge|bool|int|float|complex|index)__"
)
_READING: Final = frozenset(
    {"item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__complex__", "__index__"}
)
_COLLECTIVES: Final = (
    *("all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object"),
    *("all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier"),
    *("batch_isend_irecv", "broadcast", "broadcast_object_list", "gather", "gather_object"),
    *("irecv", "isend", "monitored_barrier", "recv", "reduce", "reduce_scatter"),
    *("reduce_scatter_tensor", "scatter", "scatter_object_list", "send"),
    *("_all_gather_base", "_reduce_scatter_base"),
)
# Functions of other packages, wrapped if installed; of CUDA extensions, all functions.
_PACKAGES: Final = {
    "apex.normalization.fused_layer_norm": (
        *("fused_layer_norm", "fused_layer_norm_affine", "mixed_dtype_fused_layer_norm_affine"),
        *("fused_rms_norm", "fused_rms_norm_affine", "mixed_dtype_fused_rms_norm_affine"),
        "manual_rms_norm",
    ),
    "flash_attn.flash_attn_interface": (
        *("flash_attn_func", "flash_attn_kvpacked_func", "flash_attn_qkvpacked_func"),
        "flash_attn_varlen_func",
    ),
}
_EXTENSIONS: Final = (
    *("amp_C", "fused_adam_cuda", "fused_lamb_cuda", "fused_layer_norm_cuda", "mlp_cuda"),
    *("distributed_lamb_cuda", "xentropy_cuda"),
)
# Internal modules that hold the same functions under their C names.
_ALSO_HOLDING: Final = (
    *(torch, torch.functional, torch._C._nn, torch._C._linalg, torch._C._fft, torch._C._special),
    torch._C._sparse,
)
_RECURRENT: Final = ("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell")


def functions() -> Iterator[WrappedFunction]:
    """Functions and Tensor methods of torch, torch.distributed and extensions, each once."""
    seen: set[int] = set()
    for owner in (functional, torch, torch.linalg, torch.fft, torch.special, torch.sparse):
        for function in _of_module(owner):
            if id(function.function) not in seen:
                seen.add(id(function.function))
                yield function
    for name in dir(Tensor):
        if callable(getattr(Tensor, name)) and _is_wanted(name, _OPERATORS):
            function, reads = getattr_static(Tensor, name), name in _READING
            yield WrappedFunction(function, "Tensor", name, ((Tensor, name),), reads=reads)
    if torch.distributed.is_available():
        homes = (torch.distributed, torch.distributed.distributed_c10d)
        yield from _held(homes, "torch.distributed", _COLLECTIVES)
    for package, names in _PACKAGES.items():
        module = _installed(package)
        if module is not None:
            yield from _held((module,), package, names)
    for extension in _EXTENSIONS:
        module = _installed(extension)
        if module is not None:
            names = tuple(name for name, var in vars(module).items() if isbuiltin(var))
            yield from _held((module,), extension, names)


def _is_wanted(name: str, but: re.Pattern[str]) -> bool:
    return but.fullmatch(name) is not None or not _BOOKKEEPING.fullmatch(name)


def _of_module(owner: Any) -> Iterator[WrappedFunction]:
    """Operators in a module of torch: C functions, and Python functions defined in the module.

    A C function is also an attribute of an internal module, under the name that it passes to
    `__torch_function__`: torch.fft.fft is torch._C._fft.fft_fft.
    """
    variable_functions = torch._C._VariableFunctions
    own = "torch.functional" if owner is torch else owner.__name__
    not_overloaded = overrides.get_ignored_functions()
    for name, function in list(vars(owner).items()):
        if not callable(function) or isinstance(function, type) or not _is_wanted(name, _PRIVATE):
            continue
        if getattr(function, "__module__", None) == "typing":  # until torch 2.4
            continue
        in_c = getattr(function, "__name__", name)
        is_torch_own = getattr(variable_functions, in_c, None) is function
        others = tuple(
            (home, in_c)
            for home in _ALSO_HOLDING
            if home is not owner and vars(home).get(in_c) is function
        )
        if is_torch_own or others or getattr(function, "__module__", None) == own:
            overloads = is_torch_own and function not in not_overloaded
            yield WrappedFunction(
                function, owner.__name__, name, ((owner, name), *others), overloads
            )


def _held(homes: tuple[Any, ...], mod: str, names: Any) -> Iterator[WrappedFunction]:
    """Functions by name, with all owners that hold them."""
    for name in names:
        function = getattr(homes[0], name, None)
        if callable(function):
            holding = tuple((home, name) for home in homes if vars(home).get(name) is function)
            yield WrappedFunction(function, mod, name, holding)


def _installed(name: str) -> Any:
    """Import a module; None if it is not installed or fails to import."""
    if name not in sys.modules and find_spec(name.partition(".")[0]) is None:
        return None
    try:
        return import_module(name)
    except Exception:  # an extension built for another torch may raise anything
        return None


def methods() -> Iterator[Method]:
    """Methods of classes: recurrent modules, optimizers, data loaders, operators of torch.ops."""
    for name in _RECURRENT:
        yield Method(getattr(torch.nn, name), "forward", name, "forward")
    _installed("apex.optimizers")
    for optimizer in subclasses(torch.optim.Optimizer):
        if "step" in vars(optimizer):
            yield Method(optimizer, "step", optimizer.__name__, "step", _has_closure)
    iterator = dataloader._BaseDataLoaderIter
    yield Method(iterator, "__next__", dataloader.__name__, "DataLoader")
    for kind in (OpOverload, OpOverloadPacket):
        yield Method(kind, "__call__", "torch.ops", "", named=_operator)


def _has_closure(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the step also runs a closure (forward and backward), not only the optimizer."""
    return (args[1] if len(args) > 1 else kwargs.get("closure")) is not None


# Keyed by id, because hashing an operator is slow; the value keeps the operator alive.
_operators: dict[int, tuple[Any, tuple[str, str] | None]] = {}


def _operator(called: Any) -> tuple[str, str] | None:
    """`mod` and `op` of an operator: torch.ops.aten and add for `torch.ops.aten.add`.

    None for bookkeeping, and for the operators with which torch.profiler opens its ranges.
    """
    known = _operators.get(id(called))
    if known is None:
        packet = called.overloadpacket if isinstance(called, OpOverload) else called
        namespace, _, name = packet._qualified_op_name.partition("::")
        is_bookkeeping = namespace in ("profiler", "prim") or (
            not name.startswith("_") and _BOOKKEEPING.fullmatch(name) is not None
        )
        result = None if is_bookkeeping else (f"torch.ops.{namespace}", name)
        known = _operators[id(called)] = called, result
    return known[1]


def with_defaults() -> Iterator[FunctionType]:
    """Constructors of torch.nn classes: their default arguments may be torch functions."""
    for kind in vars(torch.nn).values():
        if isinstance(kind, type) and isinstance(vars(kind).get("__init__"), FunctionType):
            yield vars(kind)["__init__"]


def subclasses(kind: type) -> Iterator[type]:
    """All direct and indirect subclasses of a class, without duplicates."""
    seen: set[type] = set()
    waiting: list[type] = [kind]
    while waiting:
        below: list[type] = waiting.pop().__subclasses__()
        for each in below:
            if each not in seen:
                seen.add(each)
                waiting.append(each)
                yield each
