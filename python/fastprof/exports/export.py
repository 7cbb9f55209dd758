"""`Profile.export`: write a profile in a format of the registry."""

from __future__ import annotations

import gzip
import os
from typing import Any, BinaryIO

from fastprof._system.output_file import output_file, protected
from fastprof.errors import ReportError
from fastprof.exports.registry import Exporter, find

_LEVEL = 4  # of gzip; 6 takes twice as long for 4 % less


def export(profile: Any, path: str | os.PathLike[str], to: str, **options: Any) -> None:
    """Write a profile to a file that appears when it is complete; see `Profile.export`.

    Raises
    ------
    OutputError
        The file is the capture itself.
    """
    exporter = find(to)
    check_options(exporter, options)
    with protected(lambda: [profile.name]), output_file(path) as file:
        write_to(exporter, profile, file, is_compressed(path), **options)


def check_options(exporter: Exporter, options: Any) -> None:
    """Check that a format has the options.

    Raises
    ------
    ReportError
        It lacks one; the message lists its options.
    """
    names = [option.name for option in exporter.options]
    for name in options:
        if name not in names:
            raise ReportError(
                f"{exporter.name} has no option {name!r}; its options: {', '.join(names) or 'none'}"
            )


def write_to(
    exporter: Exporter, profile: Any, file: BinaryIO, compress: bool = False, **options: Any
) -> None:
    """Write a profile to a binary file, compressed with gzip or as it is."""
    if not compress:
        exporter.write(profile, file, **options)
        return
    with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as compressed:
        exporter.write(profile, compressed, **options)


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Whether a file of this name is compressed with gzip."""
    return os.fspath(path).endswith(".gz")
