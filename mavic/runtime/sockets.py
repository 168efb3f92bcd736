"""Where a server listens: sockets, addresses, and whether other machines reach them."""

from __future__ import annotations

import contextlib
import ipaddress
import socket


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches the host."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that already takes connections.

    Args:
        host: the address to listen on.
        port: the port; 0 takes a free one.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        why = error.strerror or error
        raise ValueError(f"cannot listen on {host} port {port} ({why}); try --port 0") from None


def address_of(host: str, port: int) -> str:
    """Return the address that others use. A host that stands for all addresses is replaced by this machine's name."""
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/"
