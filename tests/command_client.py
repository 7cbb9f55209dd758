"""Run one command in a fork of tests/command_server.py: `python command_client.py SOCKET WORDS`.

The command gets this program's standard streams, directory, environment and limit of the size of
files; this program ends with its exit code.
"""

import os
import resource
import signal
import socket
import sys


def main() -> int:
    path, *words = sys.argv[1:]
    environment = [text for pair in os.environb.items() for text in pair]
    most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    first = [os.getcwdb(), b"%d" % most, b"%d" % len(words)]
    texts = [*first, *map(os.fsencode, words), *environment]
    request = b"\0".join(texts)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [b"%8d" % len(request)], [0, 1, 2])
        connection.sendall(request)
        for fd in (0, 1):  # only the command holds the ends of pipes
            os.close(fd)
        code = int(connection.recv(16) or b"70")
    if code < 0:  # it was killed, and so are we
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    os._exit(main())
