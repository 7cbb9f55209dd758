"""Streamable HTTP for the server, to clients that name the host that it is started with."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Final

from fastprof._system.optional import import_optional
from fastprof.errors import SettingError

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_ANY: Final = ("0.0.0.0", "::", "")
_PATH: Final = "/mcp"
_PATIENCE: Final = 2  # seconds for answers in progress when the program is interrupted


def address(text: str) -> tuple[str, int]:
    """The host and the port of HOST:PORT; an IPv6 address stands in brackets.

    A port alone is that of the loopback address.

    Raises
    ------
    SettingError
        It has another form, or names all addresses of the machine.
    """
    host, colon, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise SettingError(f"--http {text}: expected HOST:PORT such as 127.0.0.1:8765, or a port")
    if not colon:
        host = _LOOPBACK[0]
    if host.strip("[]") in _ANY:
        raise SettingError(
            f"--http {text}: expected the name or address by which clients reach this machine, "
            "not all of them"
        )
    return host, int(port)


async def serve_http(server: Any, http: str, log: Callable[[str], None]) -> None:
    """Serve HTTP until the program is interrupted.

    http : HOST:PORT, or PORT
    log : prints a line for the user

    Raises
    ------
    SettingError
        HOST:PORT is invalid, or the address cannot be used.
    """
    uvicorn = import_optional("uvicorn", "fastprof mcp --http needs")
    security = import_optional("mcp.server.transport_security", "fastprof mcp --http needs")
    host, port = address(http)
    listening = _listening(host, port)
    port = listening.getsockname()[1]
    is_local = host in _LOOPBACK
    hosts = [f"{each}:{port}" for each in (_LOOPBACK if is_local else (host,))]
    app = server.streamable_http_app(
        streamable_http_path=_PATH,
        transport_security=security.TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=hosts,
            allowed_origins=[f"http://{each}" for each in hosts],
        ),
    )
    log(f"serves http://{host}:{port}{_PATH}")
    if not is_local:
        log(f"warning: anyone who can connect to {host}:{port} can read the traces")
    settings = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=_PATIENCE,
    )
    await uvicorn.Server(settings).serve([listening])


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens on an address."""
    name = host.strip("[]")
    try:
        family = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((name, port), family=family)
    except OSError as error:
        raise SettingError(f"--http {host}:{port}: {error.strerror or error}") from error
