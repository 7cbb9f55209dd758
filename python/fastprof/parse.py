"""`python -m fastprof.parse` works as `fastprof parse` does."""

import sys

from fastprof.cli import main

if __name__ == "__main__":
    sys.exit(main(["parse", *sys.argv[1:]]))
