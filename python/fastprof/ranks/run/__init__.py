"""Many ranks, one run: collectives matched, clocks aligned, waits explained and replayed.

A worker turns a trace into a `RankRecord` for each rank in it (`timeline`). The head matches the
collectives of all records (`match`), aligns their clocks (`clocks`), and computes waits (`waits`),
causes (`causes`) and replays (`replay`). docs/ranks.md explains the model.
"""
