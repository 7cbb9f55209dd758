"""What the figures were measured on: processor, cores, versions."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def describe() -> dict[str, str | int]:
    return {
        "processor": processor(),
        "cores": os.cpu_count() or 0,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": package_version("numpy"),
        "apsw": package_version("apsw"),
        "sqlite": sqlite_version(),
    }


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def sqlite_version() -> str:
    """Of the SQLite inside APSW, which is the one that fastprof reads with."""
    try:
        import apsw
    except ImportError:
        return "missing"
    return apsw.sqlite_lib_version()
