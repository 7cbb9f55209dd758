"""The permitted differences between fastprof and the oracle, with reasons.

Keys: the file, then the fields of `oracle_comparison.Difference`. Delete exceptions that no
longer occur: they fail `test_oracle.py`.
"""

EXCEPTIONS: dict[str, dict[tuple[str, str], str]] = {}
