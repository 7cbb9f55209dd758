"""Demangling of C++ names by the C++ library of the system."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

# The demangler is recursive. Longer names stay mangled to protect the stack.
LONGEST = 1 << 16

# Candidates for the C++ library; None: already loaded in the process, as on macOS.
LIBRARIES = (None, "libstdc++.so.6", "libc++abi.so.1", "libc++.so.1")


def demangled(names: Sequence[str | None]) -> tuple[list[str | None], str | None]:
    """Demangle names. Names that do not follow the Itanium C++ ABI stay unchanged.

    Returns
    -------
    names : list of str or None
    problem : str or None
        The reason if all names stay mangled: no C++ library was found.
    """
    if not any(name is not None and name.startswith("_Z") for name in names):
        return list(names), None
    demangle = _demangler()
    if demangle is None:
        return list(names), "kernel names stay mangled: no libstdc++ or libc++ on this system"

    def one(name: str) -> str:
        if not name.startswith("_Z") or len(name) > LONGEST or "\0" in name:
            return name
        try:
            found = demangle(name.encode())
            return name if found is None else found.decode()
        except UnicodeError:
            return name

    return [name if name is None else one(name) for name in names], None


@cache
def _demangler() -> Callable[[bytes], bytes | None] | None:
    """A function that returns None for invalid names; None if no library was found."""
    for library in LIBRARIES:
        try:
            return _from_library(ctypes.CDLL(library), ctypes.CDLL(None))
        except (OSError, AttributeError, TypeError):
            continue
    return None


def _from_library(library: ctypes.CDLL, process: ctypes.CDLL) -> Callable[[bytes], bytes | None]:
    """Wrap `__cxa_demangle` (https://itanium-cxx-abi.github.io/cxx-abi/abi.html#demangler).

    `free` is looked up in the process, not in libc: with a preloaded allocator, libc's would abort.
    """
    function, free = library["__cxa_demangle"], process["free"]
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, *[ctypes.c_void_p] * 3]
    free.restype, free.argtypes = None, [ctypes.c_void_p]

    def demangle(name: bytes) -> bytes | None:
        text = function(name, None, None, None)
        if not text:
            return None
        found = ctypes.string_at(text)
        free(text)
        return found

    return demangle
