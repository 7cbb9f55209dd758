"""Simulated runs of many ranks: their traces, and the answers that are right.

    from bench.ranks import faults, programs, truth
    expected = truth.write(directory, programs.ddp(8), steps=5, seed=1, faults=[faults.Data(3)])

`programs` has the programs, `faults` what goes wrong in them, `simulate` computes the times,
`truth` the expected answers, `kineto` writes torch.profiler's files.
`python -m bench.ranks --help` has the options of the command.
"""
