"""`python -m fastprof` works as `fastprof` does."""

import sys

from fastprof.cli import main

if __name__ == "__main__":
    sys.exit(main())
