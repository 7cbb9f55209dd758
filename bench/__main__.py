"""Measure fastprof on generated exports. Default COMMAND: measure all contenders."""

from __future__ import annotations

import argparse

from bench import annotate, generate, instructions, page, publish, run, stages, startup

COMMANDS = {
    "generate": generate,
    "publish": publish,
    "stages": stages,
    "instructions": instructions,
    "annotate": annotate,
    "page": page,
    "startup": startup,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    run.add_arguments(parser)
    parser.set_defaults(run=run.run)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP, description=module.__doc__)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    raise SystemExit(main())
