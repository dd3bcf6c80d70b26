"""The way out of a jail that tests a build: a listener that speaks to our tools as the broker does, and
reaches one port of this jail's own loopback."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from sandbox.http import MARK

MAX_HEAD = 64 << 10
_WAIT_S = 60.0
_OURS = frozenset({MARK, "expect", "proxy-connection"})


def forward(port: int) -> int:
    """Serve in threads of this process from now on; the port that was taken."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept, args=(listener, port), daemon=True).start()
    return int(listener.getsockname()[1])


def _accept(listener: socket.socket, port: int) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve, args=(connection, port), daemon=True).start()


def _serve(connection: socket.socket, port: int) -> None:
    with connection, suppress(OSError, ValueError):
        connection.settimeout(_WAIT_S)
        head, body = _head(connection)
        lines = head.split(b"\r\n")
        method, target, version = lines[0].split(b" ", 2)
        fields = [line for line in lines[1:] if line]
        once = next((line.partition(b":")[2].strip() for line in fields if _name(line) == MARK), b"")
        base = f"http://127.0.0.1:{port}".encode()
        if not target.startswith(base + b"/"):
            connection.sendall(_refusal(b"403 Forbidden", once, b"only the service of this tree is here"))
            return
        connection.sendall(b"HTTP/1.1 100 0\r\n\r\n")  # no turn was waited for
        try:
            upstream = socket.create_connection(("127.0.0.1", port), _WAIT_S)
        except OSError:
            connection.sendall(_refusal(b"502 Bad Gateway", once, b"the service does not take connections"))
            return
        with upstream:
            kept = [line for line in fields if _name(line) not in _OURS]
            first = b" ".join((method, target[len(base) :], version))
            upstream.sendall(b"\r\n".join([first, *kept, b"", b""]) + body)
            threading.Thread(target=_pump, args=(connection, upstream), daemon=True).start()
            if not _pump(upstream, connection):
                connection.sendall(_refusal(b"502 Bad Gateway", once, b"the service said nothing"))


def _head(connection: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65_536)
        if not chunk or len(data) > MAX_HEAD:
            raise ValueError("not a request")
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    return head, body


def _name(line: bytes) -> str:
    return line.partition(b":")[0].strip().lower().decode("latin-1")


def _refusal(status: bytes, once: bytes, why: bytes) -> bytes:
    lines = (b"HTTP/1.1 " + status, MARK.encode() + b": " + once, b"content-length: %d" % len(why), b"")
    return b"\r\n".join(lines) + b"\r\n" + why


def _pump(source: socket.socket, sink: socket.socket) -> int:
    """Everything until the source ends; the number of bytes."""
    sent = 0
    with suppress(OSError):
        while chunk := source.recv(65_536):
            sink.sendall(chunk)
            sent += len(chunk)
    return sent
