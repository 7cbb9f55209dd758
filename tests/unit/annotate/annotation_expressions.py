"""Evaluates expressions in which C code inspects a tensor's type; prints the results as JSON.

python annotation_expressions.py never|on|profiled|off

A separate program, because changes of a type last until the process ends. "never" does not import
fastprof; "on" annotates, "profiled" also runs torch.profiler, "off" annotates and undoes it.
"""

import array
import collections.abc
import copy
import ctypes
import itertools
import json
import math
import operator
import re
import statistics
import struct
import sys
import warnings
from typing import Any

import numpy as np
import torch


def _listed(text: str) -> list[str]:
    """Expressions between semicolons."""
    return [part.strip() for part in text.split(";") if part.strip()]


MAKERS = _listed("""
    torch.tensor({}); torch.as_tensor({}); torch.asarray({}); x.new_tensor({});
    torch.FloatTensor({}); torch.Tensor({}); torch.LongTensor({}); np.array({}); np.asarray({});
    torch.Size({}); torch.stack({}); x.new({}); torch.nested.nested_tensor({});
""")
DATA = _listed("""
    [a, 2.0]; [2.0, a]; [[a, a], [2.0, a]]; (a, i); [i, i]; [x, x]; [p, x]; [o, 1.0]; x; a; p;
    [s, s]; [[x], [x]]; [np.float32(1), a]; [t, t];
""")
INDEXES = _listed("""
    [[i, i], [i, i]]; [i, i]; [i]; i; (i, i); ([i, 0], i); [[i]]; t; (t, t); [t, t]; [[0, i]];
    [[True, False]]; (None, i); [slice(i, None)]; slice(i, 2); a; [a]; (..., i); i, ...; m > 2;
    [m > 2]; np.array([0, 1]); 'a'; 7;
""")
CALLS = _listed("""
    operator.concat(x, x); operator.iconcat(x, x); operator.concat([1], x); operator.mul(x, 2);
    operator.imul(x, 2); operator.countOf(x, 2.0); operator.indexOf(x, 2.0);
    operator.getitem(x, i); operator.length_hint(x); operator.length_hint(a);
    operator.contains(x, a); operator.index(i); operator.index(x); operator.itemgetter(0)(x);
    operator.itemgetter(0)(p); operator.truth(a); operator.delitem(x, 0);
    operator.add(x, [1, 2, 3]); operator.add([1, 2, 3], x); [1] + x; x + [1]; (1,) + x;
    [1, 2] * i; 'ab' * i; (1,) * t; b'ab' * i; x * 'ab'; 2 * x; x @ x; x % 2; '%s' % a; list(x);
    tuple(x); list(a); iter(a); list(iter(x)); list(reversed(x)); reversed(a); next(iter(x));
    len(x); len(a); len(p); bool(x); bool(a); sum(x); max(x); min(x); sorted(x);
    set(x) == set(x); 2.0 in x; a in x; x in [x]; [x, x].index(x); sum([x, x]);
    math.prod([a, 2.0]); math.fsum(x); math.hypot(*x); math.dist(x, x); math.floor(a);
    math.ceil(a); math.trunc(a); math.gcd(i, 4); math.sumprod(x, x); round(a); bytes(i);
    bytes(t); bytearray(i); bytearray(t); memoryview(x); b''.join(t); ''.join(x); range(i);
    list(range(*t)); slice(i).indices(9); 'abcdef'[i]; [5, 6, 7][i]; [5, 6, 7][i:];
    array.array('f', x); array.array('l', t); struct.pack('f', a); struct.pack('i', i);
    (ctypes.c_float * 3)(*x); ctypes.c_int(i); ctypes.c_float(a); (ctypes.c_float * 3)(x);
    hex(i); chr(i); int(a); int(x); float(a); complex(a); divmod(a, 2); pow(a, 2); pow(i, 2, 3);
    abs(x); -x; +x; ~i; ~x; str(a); format(a, '.2f'); f'{x}'; repr(p);
    isinstance(x, collections.abc.Sequence); isinstance(x, collections.abc.Sized);
    isinstance(x, collections.abc.Iterable); isinstance(x, collections.abc.Container);
    isinstance(x, collections.abc.Hashable); isinstance(x, collections.abc.Callable);
    statistics.mean(x.tolist()); list(itertools.chain(x, x)); list(itertools.islice(x, i));
    list(zip(x, t)); list(map(float, x)); list(enumerate(x)); dict(zip(x.tolist(), x));
    np.add(x, x); np.concatenate([x, x]); np.stack([x, x]); np.isscalar(a); np.ndim(a);
    np.shape([x, x]); np.iterable(a); np.iterable(x); np.zeros(t); np.zeros(i); np.float32(a);
    np.array(x) + a; a + np.array(x); np.arange(5)[t]; np.arange(5)[i]; np.atleast_1d(a);
    np.array([a, a], dtype=object); np.full(3, a); np.linspace(0, a, 3); np.broadcast_to(a, 3);
    torch.zeros(t); torch.zeros(i); torch.zeros([i, i]); torch.zeros((i, 2)); torch.ones(i, i);
    torch.full([i], a); torch.full((2,), a); m.reshape([i, -1]); m.reshape(i, 3); m.view(t);
    m.sum([i]); m.sum(i); m.permute([i, 0]); m.permute(t); m.expand([i, 2, 3]); m.repeat(t);
    torch.sparse_coo_tensor([[0, i]], [a, 2.0]);
    torch.sparse_coo_tensor([[0, 1]], [2.0, a], [i + 1]);
    torch.sparse_coo_tensor(t[None], x[:2]); torch.sparse_csr_tensor([0, i], [0], [a]);
    torch.cat([x, x]); torch.cat(x); torch.cat((x,)); torch.stack(x); torch.einsum('i,i', x, x);
    torch.where(x > a, x, a); torch.broadcast_tensors(x, a); torch.meshgrid(x, t); x.split(i);
    x.split([i, 2]); torch.split(x, t); x.tolist(); x.item(); a.item(); torch.arange(i);
    torch.from_numpy(x); torch.frombuffer(x, dtype=torch.float32); torch.is_tensor([a]);
    torch.utils._pytree.tree_flatten(x)[1]; copy.copy(x); copy.deepcopy(p);
    x.__reduce_ex__(2)[1][1:3]; torch.nn.functional.pad(x, [i, i]);
    torch.nn.functional.pad(x, t); torch.tensor(x).numpy(); x.index_put([t], a);
    x.index_put((t,), [a]); torch.Tensor.__getitem__(x, i); s[i]; s.new_tensor([a]); late[i];
    torch.tensor([late[0], 1]); super(torch.Tensor, x).__getitem__(i);
    torch.Tensor.__setitem__(x, i, 5.0); PySequence_Check(x); PySequence_Check(p);
    PySequence_Check(s); PySequence_Check(late); PyMapping_Check(x); PyNumber_Check(x);
    PyIndex_Check(x); PyIter_Check(x); PyCallable_Check(x); PyObject_CheckBuffer(x);
    PySequence_Check(torch.Size([1])); PyAIter_Check(x); isinstance(x, type);
""")
C_CHECKS = (
    *("PySequence_Check", "PyMapping_Check", "PyNumber_Check", "PyIndex_Check", "PyIter_Check"),
    *("PyCallable_Check", "PyObject_CheckBuffer", "PyAIter_Check"),
)


def expressions() -> list[str]:
    """All of them, as Python."""
    made = [maker.format(data) for maker in MAKERS for data in DATA]
    read = [f"m[{index}]" for index in INDEXES]
    written = [f"m.__setitem__({index!s}, 5) or m" for index in INDEXES if ":" not in index]
    return [*made, *read, *(each for each in written if "..., i" not in each), *CALLS]


class Before(torch.Tensor):
    """A subclass created before the annotation."""


def _c_check(name: str) -> Any:
    check = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)
    return check((name, ctypes.pythonapi))


def names() -> dict[str, Any]:
    """New objects for each expression, which may change them."""

    class Late(torch.Tensor):
        """A subclass created while the annotation is on."""

    return {
        **{name: _c_check(name) for name in C_CHECKS},
        "x": torch.tensor([1.0, 2.0, 3.0]),
        "a": torch.tensor(1.5),
        "i": torch.tensor(1),
        "t": torch.tensor([1, 0]),
        "o": torch.tensor([4.0]),
        "m": torch.arange(6).reshape(2, 3),
        "p": torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0])),
        "s": torch.tensor([1.0, 2.0]).as_subclass(Before),
        "late": torch.tensor([1.0, 2.0]).as_subclass(Late),
    }


MODULES = (array, collections, copy, ctypes, itertools, math, operator, statistics, struct, torch)


def told(expression: str) -> str:
    """The outcome: type and text of the value or exception, and warnings."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            globals_ = {module.__name__: module for module in MODULES} | {"np": np} | names()
            exec(f"value = {expression}", globals_)
            text = f"{type(globals_['value'])} {globals_['value']!r}"
        except Exception as error:
            text = f"{type(error)} {error}"
    said = sorted(str(each.message) for each in warned)
    return re.sub(r"0x[0-9a-f]+|object at \w+", "", f"{text} {said}")


PARTS = {
    "as_number": 36,
    "as_sequence": 10,
    "as_mapping": 3,
    "as_async": 4,
    "as_buffer": 2,
}
# The C fields of a type from `tp_basicsize` on (Include/cpython/object.h).
FIELDS = (
    *("basicsize", "itemsize", "dealloc", "vectorcall_offset", "getattr", "setattr", "as_async"),
    *("repr", "as_number", "as_sequence", "as_mapping", "hash", "call", "str", "getattro"),
    *("setattro", "as_buffer", "flags", "doc", "traverse", "clear", "richcompare"),
    *("weaklistoffset", "iter", "iternext", "methods", "members", "getset", "base", "dict"),
    *("descr_get", "descr_set", "dictoffset", "init", "alloc", "new", "free", "is_gc"),
)  # fmt: skip
_SKIPPED = ("doc", "dict", "base", "methods", "members", "getset")
VALID_VERSION_TAG = 1 << 19  # flag of tp_flags: whether attributes are currently cached


def filled_slots(kind: type) -> dict[str, bool | int]:
    """The filled slots of a type, and its flags."""
    words = 4 + len(FIELDS)
    held = (ctypes.c_size_t * words).from_address(id(kind))[4:]
    result: dict[str, bool | int] = {}
    for name, word in zip(FIELDS, held, strict=True):
        if name in PARTS:
            part = (ctypes.c_size_t * PARTS[name]).from_address(word) if word else ()
            result |= {f"{name}[{i}]": bool(each) for i, each in enumerate(part)}
        elif name not in _SKIPPED:
            result[name] = word & ~VALID_VERSION_TAG if name == "flags" else bool(word)
    return result


def main() -> None:
    situation = sys.argv[1]
    if situation != "never":
        import fastprof

        fastprof.init()
        torch.tensor([1.0])[0]
        if situation == "off":
            fastprof.uninit()
    if situation == "profiled":
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            result = {expression: told(expression) for expression in expressions()}
        # Not key_averages, which takes 4 s.
        events = profile.profiler.kineto_results.events()
        assert any("'op': '__getitem__'" in event.name() for event in events)
    else:
        result = {expression: told(expression) for expression in expressions()}
    assert situation != "never" or "fastprof" not in sys.modules
    kinds = (torch._C.TensorBase, torch.Tensor, torch.nn.Parameter, Before, type(names()["late"]))
    slots = {kind.__name__: filled_slots(kind) for kind in kinds}
    json.dump({"expressions": result, "slots": slots}, sys.stdout)


if __name__ == "__main__":
    main()
