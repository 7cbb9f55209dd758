"""`python -m fastprof`: the same as `fastprof`."""

import sys

from fastprof.cli import main

if __name__ == "__main__":
    sys.exit(main())
