"""The same job in optimised plain Python, as test oracle and contender.

SQL fetches complete tables, each distinct text is parsed once, and results that depend only on the
call path are cached with it. From fastprof it uses only the operators' formulas (fastprof.ops) and
their argument types.
"""

from bench.baseline.capture import Capture, open_export, without_collector
from bench.baseline.dictlines import dict_lines, write_dict_lines
from bench.baseline.rows import rows

__all__ = ["Capture", "dict_lines", "open_export", "rows", "without_collector", "write_dict_lines"]
