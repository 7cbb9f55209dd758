"""Becomes the user's program, with its own standard streams; nsys starts this file.

usage: exec_program.py STDIN STDOUT STDERR PID_FILE PROGRAM [ARGUMENT ...]

nsys connects pipes to the standard streams of its target. The first three arguments are inherited
descriptors of the original streams. The process id goes to PID_FILE, for signals to the program.
"""

import os
import signal
import sys


def main() -> None:
    """Restore streams and signals, and replace this process."""
    *streams, pid_file = sys.argv[1:5]
    words = sys.argv[5:]
    with open(pid_file, "w") as file:
        file.write(str(os.getpid()))
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores these
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    for target, text in enumerate(streams):
        os.dup2(int(text), target)
        os.close(int(text))
    try:
        os.execvp(words[0], words)
    except OSError as error:
        sys.stderr.write(f"fastprof: {words[0]}: cannot be started: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    main()
