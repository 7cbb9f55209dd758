"""An optimised implementation of fastprof in plain Python: test oracle and contender.

SQL fetches complete tables, each distinct text is parsed once, and results that depend only on the
call path are cached with it. It imports only the formulas of operators (fastprof.ops) and
their argument types from fastprof.
"""

from bench.baseline.capture import Capture, open_export, without_collector
from bench.baseline.dictlines import dict_lines, write_dict_lines
from bench.baseline.rows import rows

__all__ = ["Capture", "dict_lines", "open_export", "rows", "without_collector", "write_dict_lines"]
