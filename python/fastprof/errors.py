"""Exceptions raised by fastprof; all derive from FastprofError."""

# What reading a damaged file of our own may raise besides the errors of its format.
DAMAGED = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, IndexError),
    *(OverflowError, RecursionError),
)


class FastprofError(Exception):
    """Base class of fastprof's exceptions. The message is a single line for the user."""


class BadInputError(FastprofError):
    """The input file is missing, damaged or not in a supported format."""


class OutputError(FastprofError):
    """The output cannot be written; the message gives the path and the reason."""


class MissingDependencyError(FastprofError):
    """An optional dependency is not installed; the message names the extra to install."""


class UnknownColumnError(FastprofError, ValueError, KeyError):
    """The report has no such column; the message lists the valid names."""

    __str__ = Exception.__str__  # that of KeyError quotes the message


class StepsError(FastprofError, ValueError):
    """The requested steps do not exist; the message gives the valid sources or nearest names."""


class NotEnoughMemoryError(FastprofError, MemoryError):
    """Reading the file would exceed the available memory.

    The message gives the estimate and the setting that overrides the limit.
    """


class SettingError(FastprofError, ValueError):
    """An environment variable requests something impossible; the message gives alternatives."""


class InternalError(FastprofError):
    """An internal invariant does not hold: a bug in fastprof. Please report it with the file."""


class CheckError(InternalError):
    """Two totals that must agree differ: a bug in fastprof. The message says what to report."""


class OpError(FastprofError, ValueError):
    """A cost formula cannot be registered; the message gives the reason."""


class AnnotateError(FastprofError):
    """An object of the running program cannot be annotated; the message gives the reason."""


class CaptureError(FastprofError, ValueError):
    """The requested capture is not possible; the message gives the reason and the remedy."""


class ReportError(FastprofError, ValueError):
    """A report cannot be registered or made with these options; the message gives the reason."""
