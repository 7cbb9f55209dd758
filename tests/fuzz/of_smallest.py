"""Every command in every format on the smallest captures: `python -m fuzz.of_smallest`."""

import sys
import tempfile
import traceback
from pathlib import Path

from support import every_command
from support.smallest_captures import captures


def main() -> int:
    """Print what is wrong; the exit code is 1 if anything is."""
    n_wrong = n = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "models").mkdir()
        for number, (kind, make) in enumerate(captures(folder / "models").items()):
            own, out = folder / str(number), folder / f"{number}-out"
            own.mkdir()
            out.mkdir()
            file = make(own)
            for command in every_command.commands():
                for words in every_command.invocations(command, file, out):
                    n += 1
                    try:
                        wrong = every_command.problem(every_command.run_here(*words))
                    except Exception:
                        wrong = traceback.format_exc()
                    if wrong:
                        n_wrong += 1
                        print(f"{kind}: {' '.join(words)}: {wrong}", flush=True)
    print(f"{n} commands on the smallest captures, {n_wrong} wrong")
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
