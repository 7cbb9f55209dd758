"""Many traces, one a rank: each to a small summary, on many processes; all summaries to tables.

`fastprof.batch` is `fastprof.ranks.batch.batch`.
"""
