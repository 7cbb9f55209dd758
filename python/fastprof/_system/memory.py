"""Available memory, sizes as people write them, and an early error for files that need more.

Without it the machine swaps or the kernel kills the process, and the user does not learn why.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fastprof._system.regex import regex
from fastprof.errors import NotEnoughMemoryError, SettingError

# Minimum memory of reading and reporting in bytes, as measured (tests/unit/_system/test_memory.py).
OF_KERNEL, OF_RANGE = 130, 50
# About as many bytes as the page of a trace takes, with the host's side, as measured.
OF_PAGE = 90e6
OF_KERNEL_ON_PAGE, OF_RANGE_ON_PAGE, OF_CALL_ON_PAGE = 320, 60, 60
OF_DICT_BYTE, OF_JSON_BYTE = 0.2, 0.3
VARIABLE = "FASTPROF_MEMORY"
_ALWAYS_ALLOWED = 8 << 20  # bytes


_LARGE: Final = 128 << 10  # KiB; smaller processes would wait 5 % longer for it


def give_back() -> None:
    """Return freed memory of a large process to the system, if the C library is glibc.

    What a thread has freed stays in its arena, where the other threads do not find it.
    """
    import resource

    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < _LARGE:
        return
    import ctypes  # takes 2 ms

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def share_freed() -> None:
    """Let all threads of this process, which has one yet, find what any of them freed, if the C
    library is glibc: 150 to 400 bytes less for a name of a trace, and no slower.

    Otherwise, a thread that waits for the arena of another one gets an arena of its own.
    """
    import ctypes  # numpy loads it

    options = getattr(ctypes.CDLL(None), "mallopt", None)
    if options is not None:
        options(_ARENA_MAX, 1)


_ARENA_MAX: Final = -8  # M_ARENA_MAX of malloc.h


class Expansion:
    """Bounds what the contents of a file take by its size.

    Small files can expand without end: archives, and data that refer to the same object many times.
    """

    def __init__(self, name: str, ratio: int, floor: int) -> None:
        """ratio : most bytes for each byte of the file; floor : bytes that any file may take"""
        self._name, self._ratio, self._floor = name, ratio, floor
        self._taken = 0
        setting = os.environ.get(VARIABLE)
        self._allowed = None if not setting else parse_size(setting)

    def add(self, n_bytes: int, file_size: int) -> None:
        """Count some more bytes of a file of this size.

        Raises
        ------
        NotEnoughMemoryError
            They exceed the bound, or FASTPROF_MEMORY if it is set.
        """
        self._taken += n_bytes
        most = max(self._floor, self._ratio * file_size)
        if self._allowed is not None:
            most = self._allowed
        if self._taken > most:
            raise NotEnoughMemoryError(
                f"{self._name}: expected at most {format_size(most)} of content in a file of "
                f"{format_size(file_size)}, found more: it repeats the same data very often; if "
                f"you trust the file, allow more with --memory {format_size(8 * most)} (or "
                f"{VARIABLE})"
            )


def require(name: str, needed: float, root: Path = Path("/")) -> None:
    """Check that enough memory is available to read a file.

    needed : lower bound in bytes
    root : directory that contains proc and sys

    Raises
    ------
    NotEnoughMemoryError
        Less than `needed` is available.
    SettingError
        The environment variable FASTPROF_MEMORY is not a size.
    """
    if needed < _ALWAYS_ALLOWED:
        return
    limit, source = available(root)
    if needed > limit:
        raise NotEnoughMemoryError(
            f"{name}: reading it takes about {format_size(needed)} of memory, but {source} "
            f"{format_size(limit)}; use a larger machine, record or export less (nsys --duration, "
            f"--capture-range), or override the check with {VARIABLE}={format_size(2 * needed)}"
        )


def available(root: Path = Path("/")) -> tuple[float, str]:
    """The bytes that this process can still allocate, and the source of the limit.

    Infinity if no limit is known.
    """
    setting = os.environ.get(VARIABLE)
    if setting:
        size = parse_size(setting)
        if size is None:
            raise SettingError(f"{VARIABLE}={setting}: {EXPECTED}")
        return size, f"{VARIABLE} allows"
    return min([*_limits(root), (float("inf"), "")])


def _limits(root: Path) -> Iterator[tuple[float, str]]:
    free = _field(root / "proc/meminfo", "MemAvailable:")
    if free is not None:
        yield free * 1024, "the machine has"
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        groups = []
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _of_group(root / "sys/fs/cgroup", path, "memory.max", "memory.current", "")
        elif "memory" in controllers.split(","):
            names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"
            yield from _of_group(root / "sys/fs/cgroup/memory", path, *names)
    yield from _of_process(root)


def _of_group(
    mount: Path, path: str, limit: str, usage: str, prefix: str
) -> Iterator[tuple[float, str]]:
    """The limits of a control group and its ancestors. In a container all may be the mount."""
    folder = mount / path.lstrip("/")
    for each in [folder, *folder.parents]:
        most, used = _number(each / limit), _number(each / usage)
        if most is not None and used is not None:
            # The kernel reclaims cached file pages.
            cached = [
                _field(each / "memory.stat", f"{prefix}{kind}_file")
                for kind in ("inactive", "active")
            ]
            yield max(0, most - used + sum(n or 0 for n in cached)), "its control group leaves"
        if each == mount:
            return


def _of_process(root: Path) -> Iterator[tuple[float, str]]:
    try:
        import resource
    except ImportError:
        return
    for limit, field in ((resource.RLIMIT_AS, "VmSize:"), (resource.RLIMIT_DATA, "VmData:")):
        most, used = resource.getrlimit(limit)[0], _field(root / "proc/self/status", field)
        if most != resource.RLIM_INFINITY:
            yield max(0, most - (used or 0) * 1024), "the limit of its process (ulimit) leaves"


def _field(path: Path, name: str) -> int | None:
    """The number after `name` in a file with one `name number` per line."""
    try:
        text = path.read_text()
    except OSError:
        return None
    match = re.search(rf"^{re.escape(name)}\s+([0-9]+)", text, re.MULTILINE)
    return int(match[1]) if match else None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # "max"
        return None


EXPECTED: Final = "expected a size in bytes, such as 512M or 4G"
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE: Final = regex(r"([0-9]{1,15}(?:\.[0-9]+)?)([KMGT]?)(?:i?B)?", re.IGNORECASE)


def parse_size(text: str) -> int | None:
    """The number of bytes; None if `text` is no size. Units are powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    return None if match is None else int(float(match[1]) * _UNITS[match[2].upper()])


def format_size(n_bytes: float) -> str:
    """A size in M or G, rounded up to one decimal. `parse_size` accepts it."""
    unit = "G" if n_bytes >= _UNITS["G"] else "M"
    return f"{-(-n_bytes // (_UNITS[unit] / 10)) / 10:.1f}{unit}"
