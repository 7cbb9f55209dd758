"""What is wrapped: functions of torch by the modules that hold them, methods by their classes.

The functions are the operators that torch has in C, what torch.functional and torch.nn.functional
make of them, and the methods of Tensor. Bookkeeping that launches nothing (`size`, `is_contiguous`)
is left alone.
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
class Function:
    """A function to wrap.

    Parameters
    ----------
    function : callable
        As it stands in its modules or in its class.
    mod, op : str
        What its argument marker says.
    homes : tuple of (module or class, str)
        What holds it and under which name, that of `mod` and `op` first.
    overloads : bool
        Whether it hands itself to `__torch_function__` from C, by another way than its homes.
    reads : bool
        Whether it only reads a tensor's values, as `item`: of a tensor of the CPU that is neither a
        kernel nor a copy, and Adam does so once a parameter.
    """

    function: Callable[..., Any]
    mod: str
    op: str
    homes: tuple[tuple[Any, str], ...]
    overloads: bool = False
    reads: bool = False


@dataclass(frozen=True, slots=True)
class Method:
    """A method to wrap: `owner.name`, in its marker `mod` and `op`.

    `unless`, of (args, kwargs), tells a call that gets no ranges. `named`, of the object, tells
    another mod and op, or None for an object whose calls get no ranges.
    """

    owner: type
    name: str
    mod: str
    op: str
    unless: Callable[[tuple[Any, ...], dict[str, Any]], bool] | None = None
    named: Callable[[Any], tuple[str, str] | None] | None = None


# Neither a kernel nor a copy comes from these.
_BOOKKEEPING: Final = re.compile(
    r"is_.*|cudnn_is_.*|sym_.*|q_.*|_.*|.*storage.*|(?:const_)?data_ptr|dim_order|"
    r"(?:sparse|dense)_dim|register_.*hook|retain_grad|requires_grad_|record_stream|get_device|"
    r"qscheme|module_load|size|stride|dim|ndim|ndimension|numel|nelement|element_size|share_memory_|"
    r"as_subclass|assert_.*|broadcast_shapes|names|refine_names|rename_?|align_.*|result_type|"
    r"can_cast|promote_types|as_sparse_gradcheck"
)
# Names with an underscore that are operators all the same.
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
# Functions of other packages, wrapped where these are installed; of CUDA extensions all.
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
# Modules behind those that a user sees, which hold the same functions by the names of the C ones.
_ALSO_HOLDING: Final = (
    *(torch, torch.functional, torch._C._nn, torch._C._linalg, torch._C._fft, torch._C._special),
    torch._C._sparse,
)
_RECURRENT: Final = ("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell")


def functions() -> Iterator[Function]:
    """The functions and methods of torch, of torch.distributed and of extensions, each once."""
    seen: set[int] = set()
    for owner in (functional, torch, torch.linalg, torch.fft, torch.special, torch.sparse):
        for function in _of_module(owner):
            if id(function.function) not in seen:
                seen.add(id(function.function))
                yield function
    for name in dir(Tensor):
        if callable(getattr(Tensor, name)) and _is_wanted(name, _OPERATORS):
            function, reads = getattr_static(Tensor, name), name in _READING
            yield Function(function, "Tensor", name, ((Tensor, name),), reads=reads)
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
            names = tuple(name for name, each in vars(module).items() if isbuiltin(each))
            yield from _held((module,), extension, names)


def _is_wanted(name: str, but: re.Pattern[str]) -> bool:
    return but.fullmatch(name) is not None or not _BOOKKEEPING.fullmatch(name)


def _of_module(owner: Any) -> Iterator[Function]:
    """Operators that a module of torch holds: those of torch in C, and those defined in it.

    Those in C are held elsewhere, too, by the name that they hand to `__torch_function__`:
    torch.fft.fft is torch._C._fft.fft_fft.
    """
    variable_functions = torch._C._VariableFunctions
    own = "torch.functional" if owner is torch else owner.__name__
    not_overloaded = overrides.get_ignored_functions()
    for name, function in list(vars(owner).items()):
        if not callable(function) or isinstance(function, type) or not _is_wanted(name, _PRIVATE):
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
            yield Function(function, owner.__name__, name, ((owner, name), *others), overloads)


def _held(homes: tuple[Any, ...], mod: str, names: Any) -> Iterator[Function]:
    """Functions by name, at all the homes that hold them."""
    for name in names:
        function = getattr(homes[0], name, None)
        if callable(function):
            holding = tuple((home, name) for home in homes if vars(home).get(name) is function)
            yield Function(function, mod, name, holding)


def _installed(name: str) -> Any:
    """A module of a package that may be absent, or be there and not work."""
    if name not in sys.modules and find_spec(name.partition(".")[0]) is None:
        return None
    try:
        return import_module(name)
    except Exception:  # an extension that was built for another torch fails in its own ways
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
    """Whether a step runs forward and backward, too: these are no part of the optimizer."""
    return (args[1] if len(args) > 1 else kwargs.get("closure")) is not None


# By the id of an operator of torch.ops, which is kept: hashing one is slow.
_operators: dict[int, tuple[Any, tuple[str, str] | None]] = {}


def _operator(called: Any) -> tuple[str, str] | None:
    """What a marker says of `torch.ops.aten.add` or one of its overloads: torch.ops.aten, add.

    torch.profiler's own ranges are opened by operators, too; these have none.
    """
    known = _operators.get(id(called))
    if known is None:
        packet = called.overloadpacket if isinstance(called, OpOverload) else called
        namespace, _, name = packet._qualified_op_name.partition("::")
        is_bookkeeping = namespace in ("profiler", "prim") or (
            not name.startswith("_") and _BOOKKEEPING.fullmatch(name) is not None
        )
        found = None if is_bookkeeping else (f"torch.ops.{namespace}", name)
        known = _operators[id(called)] = called, found
    return known[1]


def with_defaults() -> Iterator[FunctionType]:
    """The functions of torch whose defaults may be functions of torch: how modules are made."""
    for kind in vars(torch.nn).values():
        if isinstance(kind, type) and isinstance(vars(kind).get("__init__"), FunctionType):
            yield vars(kind)["__init__"]


def subclasses(kind: type) -> Iterator[type]:
    """All that is derived from a class, each once."""
    seen: set[type] = set()
    waiting: list[type] = [kind]
    while waiting:
        below: list[type] = waiting.pop().__subclasses__()
        for each in below:
            if each not in seen:
                seen.add(each)
                waiting.append(each)
                yield each
