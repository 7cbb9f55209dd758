"""The same job in plain Python: sqlite3, dictionaries, one sweep over time. An oracle, a contender.

It is written as a good programmer would write it who has no compiler: SQL fetches whole tables,
each distinct text is read once, what repeats is kept with the distinct call path. Of fastprof it
uses the operators' formulas (fastprof.ops) and the plain values that they take, nothing else.
"""

from bench.baseline.capture import Capture, open_export, without_collector
from bench.baseline.dictlines import dict_lines, write_dict_lines
from bench.baseline.rows import rows

__all__ = ["Capture", "dict_lines", "open_export", "rows", "without_collector", "write_dict_lines"]
