"""Alias of `fastprof.annotate.lightning`, kept for existing imports."""

from fastprof.annotate.lightning import FastprofProfiler

__all__ = ["FastprofProfiler"]
