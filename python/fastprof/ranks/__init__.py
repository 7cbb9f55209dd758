"""Many traces, one per rank, to a summary each in parallel processes, and to tables over all ranks.

`fastprof.batch` is `fastprof.api.batch.batch`.
"""
