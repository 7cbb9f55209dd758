"""`fastprof repro`: a standalone script that repeats calls of a trace, to try a change on them."""
