"""`python -m fastprof.prof`: the same as `fastprof prof`."""

import sys

from fastprof.cli import main

if __name__ == "__main__":
    sys.exit(main(["prof", *sys.argv[1:]]))
