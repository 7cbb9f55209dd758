"""The permitted differences between fastprof and the oracle, with reasons.

By the file, the check and what differs there, as `oracle_comparison.Difference` says it. An
exception that no longer occurs fails `test_oracle.py`: delete it then.
"""

from __future__ import annotations

EXCEPTIONS: dict[str, dict[tuple[str, str], str]] = {}
