"""`Profile.export`: write a profile in a format of the registry."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
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
    with _compressed(file, compress) as target:
        exporter.write(profile, target, **options)


@contextmanager
def compressed_to(file: BinaryIO, path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """The file to write to: compressed with gzip if its path says so."""
    with _compressed(file, is_compressed(path)) as target:
        yield target


@contextmanager
def _compressed(file: BinaryIO, compress: bool) -> Iterator[Any]:
    if not compress:
        yield file
        return
    with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as compressed:
        yield compressed


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Whether a file of this name is compressed with gzip."""
    return os.fspath(path).endswith(".gz")
