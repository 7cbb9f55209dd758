"""The errors that fastprof raises: one class a cause, all under FastprofError."""


class FastprofError(Exception):
    """Base of all errors that fastprof raises on purpose; its text is one line for the user."""


class BadInputError(FastprofError):
    """The file cannot be read as what it was given for: missing, damaged, or another format."""


class MissingDependencyError(FastprofError):
    """An optional package is needed for what was asked; the text names the extra to install."""


class UnknownColumnError(FastprofError, ValueError):
    """A column was asked for that the report does not have; the text lists those it has."""


class NotEnoughMemoryError(FastprofError, MemoryError):
    """A file needs more memory than there is; the text says how much, and how to go on anyway."""


class SettingError(FastprofError, ValueError):
    """An environment variable asks for what cannot be done; the text says what is possible."""


class InternalError(FastprofError):
    """A promise inside fastprof was broken; please report it with the file if you can share it."""


class CheckError(InternalError):
    """Two sums that have to agree do not: a mistake in fastprof; the text says what to report."""


class OpError(FastprofError, ValueError):
    """The cost of an operator cannot be registered; the text says what is wrong with it."""


class AnnotateError(FastprofError):
    """What was asked of a running program cannot be annotated; the text says why."""


class CaptureError(FastprofError, ValueError):
    """A capture cannot be made as it was asked for; the text says why, and what can be done."""
