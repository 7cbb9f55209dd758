"""The public import path of the Lightning profiler in `fastprof.annotate.lightning`."""

from fastprof.annotate.lightning import FastprofProfiler

__all__ = ["FastprofProfiler"]
