"""What is wrapped: functions of torch by the modules that hold them, methods by their classes.

The functions are those that torch itself lists as overridable, which are its operators, and those
that make tensors. Bookkeeping that launches nothing (`size`, `dim`, `is_contiguous`) is left alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType
from typing import Any, Final

import torch
from torch import Tensor, overrides
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
    """

    function: Callable[..., Any]
    mod: str
    op: str
    homes: tuple[tuple[Any, str], ...]
    overloads: bool = False


@dataclass(frozen=True, slots=True)
class Method:
    """A method to wrap: `owner.name`, in its marker `mod` and `op`."""

    owner: type
    name: str
    mod: str
    op: str


# Neither a kernel nor a copy comes from these.
_BOOKKEEPING: Final = re.compile(
    r"is_.*|sym_.*|q_.*|_.*|.*storage.*|(?:const_)?data_ptr|dim_order|(?:sparse|dense)_dim|"
    r"register_.*hook|retain_grad|requires_grad_|record_stream|get_device|qscheme|module_load|"
    r"size|stride|dim|ndim|ndimension|numel|nelement|element_size|share_memory_|names|"
    r"refine_names|rename_?|align_.*|result_type|can_cast|promote_types|autocast|typename"
)
# Names with an underscore that are operators all the same.
_PRIVATE: Final = re.compile(r"_foreach_.+|_fused_.+|_scaled_.*mm.*|_grouped_mm|_int_mm|_amp_.+")
_OPERATORS: Final = re.compile(
    r"__(?:[ir]?(?:add|sub|mul|truediv|floordiv|div|mod|pow|matmul|and|or|xor|lshift|rshift)"
    r"|neg|pos|abs|invert|eq|ne|lt|le|gt|ge|getitem|setitem|bool|int|float|complex|index)__"
)
# Functions that make tensors; torch does not list them as overridable.
_MAKERS: Final = (
    *("arange", "as_tensor", "bartlett_window", "blackman_window", "complex", "empty", "eye"),
    *("from_numpy", "full", "hamming_window", "hann_window", "kaiser_window", "linspace"),
    *("logspace", "normal", "ones", "polar", "rand", "randint", "randn", "randperm", "range"),
    *("scalar_tensor", "tensor", "tril_indices", "triu_indices", "zeros"),
)
_COLLECTIVES: Final = (
    *("all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object"),
    *("all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier"),
    *("batch_isend_irecv", "broadcast", "broadcast_object_list", "gather", "gather_object"),
    *("irecv", "isend", "monitored_barrier", "recv", "reduce", "reduce_scatter"),
    *("reduce_scatter_tensor", "scatter", "scatter_object_list", "send"),
    *("_all_gather_base", "_reduce_scatter_base"),
)
# Functions of other packages, wrapped where these are installed.
_EXTENSIONS: Final = {
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
_ALSO_HOLDING: Final = (
    *(torch, torch.functional, torch._C._nn, torch._C._linalg, torch._C._fft, torch._C._special),
)
_RECURRENT: Final = ("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell")


def functions() -> Iterator[Function]:
    """The functions and methods of torch, of torch.distributed and of extensions, each once."""
    seen: set[int] = set()
    for function in _of_torch():
        if id(function.function) not in seen:
            seen.add(id(function.function))
            yield function
    yield from _of_tensors()
    if torch.distributed.is_available():
        homes = (torch.distributed, torch.distributed.distributed_c10d)
        yield from _held(homes, "torch.distributed", _COLLECTIVES)
    for module_name, names in _EXTENSIONS.items():
        module = _installed(module_name)
        if module is not None:
            yield from _held((module,), module_name, names)


def _of_torch() -> Iterator[Function]:
    overridable = overrides.get_overridable_functions()
    for owner in (functional, torch, torch.linalg, torch.fft, torch.special):
        yield from _of_module(owner, _held_by(owner, overridable.get(owner, ())))
    yield from _of_module(torch, _held_by(torch, overridable[torch.functional]))
    yield from _of_module(torch, [name for name in dir(torch) if _PRIVATE.fullmatch(name)])
    yield from _of_module(torch, _MAKERS)


def _of_tensors() -> Iterator[Function]:
    listed = overrides.get_overridable_functions()[Tensor]
    for name in dict.fromkeys(getattr(each, "__name__", "") for each in listed):
        if _OPERATORS.fullmatch(name) or (name and not _BOOKKEEPING.fullmatch(name)):
            function = vars(Tensor).get(name, getattr(Tensor, name))
            yield Function(function, "Tensor", name, ((Tensor, name),))


def _held_by(owner: Any, listed: Any) -> list[str]:
    """The names under which a module holds listed functions that are worth a range."""
    wanted = {id(function) for function in listed}
    return [
        name
        for name, value in vars(owner).items()
        if id(value) in wanted and not _BOOKKEEPING.fullmatch(name)
    ]


def _of_module(owner: Any, names: Any) -> Iterator[Function]:
    """Functions of one module, with the other modules of torch that hold the same object.

    Those in C are found there by the name that they hand to `__torch_function__`: torch.fft.fft is
    torch._C._fft.fft_fft.
    """
    for name in names:
        function = getattr(owner, name, None)
        if not callable(function) or isinstance(function, type):
            continue
        in_c = getattr(function, "__name__", name)
        others = tuple(
            (home, in_c)
            for home in _ALSO_HOLDING
            if home is not owner and vars(home).get(in_c) is function
        )
        overloads = getattr(torch._C._VariableFunctions, name, None) is function
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
    """Methods of classes: recurrent modules, optimizers, the iteration of data loaders."""
    for name in _RECURRENT:
        yield Method(getattr(torch.nn, name), "forward", name, "forward")
    _installed("apex.optimizers")
    for optimizer in _subclasses(torch.optim.Optimizer):
        if "step" in vars(optimizer):
            yield Method(optimizer, "step", optimizer.__name__, "step")
    iterator = dataloader._BaseDataLoaderIter
    yield Method(iterator, "__next__", dataloader.__name__, "DataLoader")


def with_defaults() -> Iterator[FunctionType]:
    """The functions of torch whose defaults may be functions of torch: how modules are made."""
    for kind in vars(torch.nn).values():
        if isinstance(kind, type) and isinstance(vars(kind).get("__init__"), FunctionType):
            yield vars(kind)["__init__"]


def _subclasses(kind: type) -> Iterator[type]:
    seen: set[type] = set()
    waiting = [kind]
    while waiting:
        for each in waiting.pop().__subclasses__():
            if each not in seen:
                seen.add(each)
                waiting.append(each)
                yield each
