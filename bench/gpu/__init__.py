"""What only a GPU can tell: run with `python -m bench.gpu` on a machine with an NVIDIA GPU."""
