"""How much memory there is, and an error before a file is read for which it is clearly too little.

A machine that swaps, or that kills what takes the most, says nothing of why.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from fastprof.errors import NotEnoughMemoryError, SettingError

# Bytes that reading and reporting take at least, as measured (tests/unit/test_memory.py).
OF_KERNEL, OF_RANGE = 130, 50
OF_DICT_BYTE, OF_JSON_BYTE = 0.2, 0.3
VARIABLE = "FASTPROF_MEMORY"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SMALL = 8 << 20  # what needs less is tried


def expect(name: str, needed: float, root: Path = Path("/")) -> None:
    """Refuse a file that needs more memory than there is.

    needed : bytes, rather too few than too many
    root : where /proc and /sys are

    Raises
    ------
    NotEnoughMemoryError
    SettingError
        The environment variable is not a size.
    """
    if needed < _SMALL:
        return
    most, whose = available(root)
    if needed > most:
        raise NotEnoughMemoryError(
            f"{name}: reading it takes about {_text(needed)} of memory, and {whose} "
            f"{_text(most)}; read it on a larger machine, record or export less of it (nsys "
            f"--duration, --capture-range), or go on anyway with {VARIABLE}={_text(2 * needed)}"
        )


def available(root: Path = Path("/")) -> tuple[float, str]:
    """How many bytes this process can still take, and what says so; infinity where nothing does."""
    asked = os.environ.get(VARIABLE)
    if asked:
        match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]+)?)([KMGT]?)(?:i?B)?", asked, re.IGNORECASE)
        if match is None:
            raise SettingError(f"{VARIABLE}={asked}: expected a size as 4G or 512M")
        return float(match[1]) * _UNITS[match[2].upper()], f"{VARIABLE} allows"
    return min([*_bounds(root), (float("inf"), "")])


def _bounds(root: Path) -> Iterator[tuple[float, str]]:
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
    """What a control group and those around it leave; in a container they may all be the mount."""
    folder = mount / path.lstrip("/")
    for each in [folder, *folder.parents]:
        most, used = _number(each / limit), _number(each / usage)
        if most is not None and used is not None:
            # Files that are kept in memory give way.
            kept = [
                _field(each / "memory.stat", f"{prefix}{kind}_file")
                for kind in ("inactive", "active")
            ]
            yield max(0, most - used + sum(n or 0 for n in kept)), "its control group leaves"
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
    """The number behind a name, in a file that has one a line."""
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


def _text(size: float) -> str:
    """A size as the variable takes it, rounded up."""
    unit = "G" if size >= 1 << 30 else "M"
    return f"{-(-size // (_UNITS[unit] / 10)) / 10:.1f}{unit}"
