"""`python -m fastprof.parse`: the same as `fastprof parse`."""

import sys

from fastprof.cli import main

if __name__ == "__main__":
    sys.exit(main(["parse", *sys.argv[1:]]))
