"""`python -m bench [COMMAND]`: the commands of this folder by name; without one, the runner."""

from __future__ import annotations

import importlib
import sys

COMMANDS = {
    "run": "measure all contenders (the default)",
    "stages": "where the time goes within open and parse",
    "instructions": "count the instructions of the C stages",
    "publish": "figures of a run -> plot and table for the README",
    "generate": "write a made-up export",
    "annotate": "what annotation adds to a call of torch",
}


def main() -> int:
    name = sys.argv[1] if len(sys.argv) > 1 else "run"
    if name in ("-h", "--help"):
        print("python -m bench [COMMAND] [--help]\n")
        print("\n".join(f"  {name:<14}{text}" for name, text in COMMANDS.items()))
        return 0
    if name in COMMANDS:
        del sys.argv[1:2]
    elif name.startswith("-"):
        name = "run"
    else:
        print(f"no command {name}; there are {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    return importlib.import_module(f"bench.{name}").main() or 0


if __name__ == "__main__":
    raise SystemExit(main())
