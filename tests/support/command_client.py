"""Run a command in a fork of command_server.py: `python command_client.py SOCKET WORDS`.

The command gets this program's standard streams, directory, environment and limit of the size of
files; this program ends with its exit code. Tests call `send` themselves where they can, which
spares an interpreter.
"""

import os
import resource
import signal
import socket
import sys

HEADER = 8  # bytes: the length of a request, or the id of a process


def send(connection, words, directory, file_size, streams):
    """Ask the server to run a command with these standard streams."""
    environment = [text for pair in os.environb.items() for text in pair]
    first = [directory, b"%d" % file_size, b"%d" % len(words)]
    request = b"\0".join([*first, *map(os.fsencode, words), *environment])
    socket.send_fds(connection, [b"%*d" % (HEADER, len(request))], streams)
    connection.sendall(request)


def received(connection):
    """The texts of a request, and the standard streams of its command; no texts if cut short."""
    header, fds, _, _ = socket.recv_fds(connection, HEADER, 3)
    size = int(header or b"0")
    request = connection.recv(size, socket.MSG_WAITALL)
    return request.split(b"\0") if 0 < size == len(request) else [], fds


def start(connection, process):
    """Tell the client which process runs its command."""
    connection.sendall(b"%*d" % (HEADER, process))


def process_id(connection):
    """The process that runs the command. To be called before `exit_code`."""
    return int(connection.recv(HEADER, socket.MSG_WAITALL))


def exit_code(connection):
    """The exit code of the command; the negative number of a signal that killed it."""
    return int(connection.recv(16) or b"70")


def main() -> int:
    path, *words = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        file_size, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        send(connection, words, os.getcwdb(), file_size, [0, 1, 2])
        for fd in (0, 1):  # only the command holds the ends of pipes
            os.close(fd)
        process_id(connection)
        code = exit_code(connection)
    if code < 0:  # it was killed, and so are we
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    os._exit(main())
