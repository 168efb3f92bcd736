"""A local server that answers as an OpenAI-compatible endpoint does, or wrongly."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def serving(
    answer: Callable[[dict], Iterable[bytes] | bytes | str | int],
) -> Iterator[tuple[str, list[dict]]]:
    """Serve answers, and yield the address and the requests.

    A text is what a model says, bytes are the whole body, a number is a status, other things are parts of a body.
    """
    asked: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body | {"path": self.path, "key": self.headers.get("Authorization")})
            made = answer(body)
            if isinstance(made, str):
                made = json.dumps({"choices": [{"message": {"content": made}}]}).encode()
            with contextlib.suppress(OSError):  # who asked may be gone
                self.send_response(made if isinstance(made, int) else 200)
                self.end_headers()
                for part in (
                    [made] if isinstance(made, bytes) else [] if isinstance(made, int) else made
                ):
                    self.wfile.write(part)

        def log_message(self, *args) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def slow(body: dict) -> str:
    """Answer too late."""
    time.sleep(0.6)
    return "stay"
