"""`python -m fastprof.prof` works as `fastprof prof` does."""

import sys

from fastprof.cli import main

if __name__ == "__main__":
    sys.exit(main(["prof", *sys.argv[1:]]))
