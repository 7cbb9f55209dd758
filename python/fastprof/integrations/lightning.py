"""The former place of `fastprof.annotate.lightning`, for programs that import it from here."""

from fastprof.annotate.lightning import FastprofProfiler

__all__ = ["FastprofProfiler"]
