"""The machine and the versions of a measurement: processor, cores, packages, commit."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def describe() -> dict[str, str | int]:
    return {
        "processor": processor(),
        "cores": os.cpu_count() or 0,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": package_version("numpy"),
        "apsw": package_version("apsw"),
        "sqlite": sqlite_version(),
        "python's sqlite": sqlite3.sqlite_version,
        "commit": commit(),
    }


def commit() -> str:
    """Of the repository, with "+" where files that it holds were changed since."""
    command = ["git", "describe", "--always", "--dirty=+", "--abbrev=10", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


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
    """The version of the SQLite inside APSW, which fastprof uses."""
    try:
        import apsw
    except ImportError:
        return "missing"
    return apsw.sqlite_lib_version()
