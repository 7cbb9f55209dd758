"""Mangled C++ names to readable ones, by the C++ library of the system."""

from __future__ import annotations

from collections.abc import Sequence

# The library's demangler recurses: what no compiler writes is left as it is.
LONGEST = 1 << 16


def demangled(names: Sequence[str | None]) -> tuple[list[str | None], str | None]:
    """The names as C++ writes them, each demangled once.

    Names that are not mangled, or not as the Itanium C++ ABI says, stay as they are.

    Returns
    -------
    names : list of str or None
    problem : str or None
        Why all names stay mangled, where no C++ library can be found.
    """
    if not any(name is not None and name.startswith("_Z") for name in names):
        return list(names), None
    import cxxfilt  # looks for the library when it is imported

    def one(name: str) -> str:
        if not name.startswith("_Z") or len(name) > LONGEST:
            return name
        try:
            return str(cxxfilt.demangle(name))
        except (cxxfilt.InvalidName, cxxfilt.InternalError, UnicodeError):
            return name

    try:
        return [name if name is None else one(name) for name in names], None
    except cxxfilt.LibraryNotFound:
        return list(names), "kernel names stay mangled: no libstdc++ or libc++ on this system"
