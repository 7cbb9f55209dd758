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
    homes : tuple
        The modules or the class that hold it under the name `op`, the first of them that of `mod`.
    overloads : bool
        Whether it hands itself to `__torch_function__` from C, by another way than its homes.
    """

    function: Callable[..., Any]
    mod: str
    op: str
    homes: tuple[Any, ...]
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
_RECURRENT: Final = ("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell")


def functions() -> Iterator[Function]:
    """The functions and methods of torch, of torch.distributed and of extensions."""
    overridable = overrides.get_overridable_functions()
    for owner in (torch, functional, torch.linalg, torch.fft, torch.special):
        yield from _of_module(owner, _names(owner, overridable.get(owner, ())))
    yield from _of_module(torch, _names(torch.functional, overridable[torch.functional]))
    yield from _of_module(torch, [name for name in dir(torch) if _PRIVATE.fullmatch(name)])
    yield from _of_module(torch, _MAKERS)
    for name in _names(Tensor, overridable[Tensor]):
        yield Function(vars(Tensor).get(name, getattr(Tensor, name)), "Tensor", name, (Tensor,))
    if torch.distributed.is_available():
        homes = (torch.distributed, torch.distributed.distributed_c10d)
        yield from _held(homes, "torch.distributed", _COLLECTIVES)
    for module_name, names in _EXTENSIONS.items():
        module = _installed(module_name)
        if module is not None:
            yield from _held((module,), module_name, names)


def _names(owner: Any, listed: Any) -> list[str]:
    """The names of listed functions that are worth a range."""
    names = dict.fromkeys(getattr(each, "__name__", "") for each in listed)
    wanted = _OPERATORS if owner is Tensor else re.compile(r"(?!)")
    return [
        name
        for name in names
        if wanted.fullmatch(name) or (name and not _BOOKKEEPING.fullmatch(name))
    ]


def _of_module(owner: Any, names: Any) -> Iterator[Function]:
    """Functions of one module, with the other modules of torch that hold the same object."""
    for name in names:
        function = getattr(owner, name, None)
        if not callable(function) or isinstance(function, type):
            continue
        others = tuple(
            home
            for home in (torch.functional, torch._C._nn)
            if home is not owner and vars(home).get(name) is function
        )
        overloads = getattr(torch._C._VariableFunctions, name, None) is function
        yield Function(function, owner.__name__, name, (owner, *others), overloads)


def _held(homes: tuple[Any, ...], mod: str, names: Any) -> Iterator[Function]:
    """Functions by name, at all the homes that hold them."""
    for name in names:
        function = getattr(homes[0], name, None)
        if callable(function):
            holding = tuple(home for home in homes if vars(home).get(name) is function)
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


def _subclasses(kind: type) -> Iterator[type]:
    seen: set[type] = set()
    waiting = [kind]
    while waiting:
        for each in waiting.pop().__subclasses__():
            if each not in seen:
                seen.add(each)
                waiting.append(each)
                yield each
