"""Where a server listens: sockets, addresses, whether other machines reach them, and how long a request may take."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from typing import Any

REQUEST_SECONDS = 20.0  # for a whole request to arrive


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


def http_protocol(seconds: float = REQUEST_SECONDS) -> type:
    """Return uvicorn's HTTP protocol for connections that send a whole request in time; others are closed.

    uvicorn itself waits for the rest of a request without end.

    Args:
        seconds: how long a request may take to arrive. A connection is closed after one to two times as long.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Timed(H11Protocol):
        _looked_at: Any = None  # the request that was answered last, at the last look

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.loop.call_later(seconds, self._look)

        def handle_websocket_upgrade(self, event: Any) -> None:
            bodies = (b"content-length", b"transfer-encoding")
            if any(name in bodies for name, _ in self.headers):  # uvicorn would wait without end
                self.send_400_response("A WebSocket begins without a body")
                return
            super().handle_websocket_upgrade(event)
            self.loop.call_later(seconds, self._look_at_handshake)

        def _look_at_handshake(self) -> None:  # a header that is too long is never answered
            if not getattr(self.transport.get_protocol(), "handshake_complete", True):
                self.transport.close()

        def _look(self) -> None:
            if self not in self.connections or self.transport.is_closing():  # gone, or a WebSocket
                return
            waits = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
            if waits and self.cycle is self._looked_at:
                self.transport.close()
                return
            self._looked_at = self.cycle
            self.loop.call_later(seconds, self._look)

    return Timed


def address_of(host: str, port: int) -> str:
    """Return the address that others use. A host that stands for all addresses is replaced by this machine's name."""
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/"
