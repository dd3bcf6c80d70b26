"""Real bare repositories by http on loopback: git's own `git http-backend` behind a small CGI server."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LIMIT = 32 * 1024 * 1024


@dataclass
class GitHttp:
    """The repositories below `root`, at `url`/<name>.

    `token`, where it is set, must come as the password of each request. `status` answers every request of a
    service (`git-upload-pack`, `git-receive-pack`; "" is any) with that code. `redirect` is where every
    request is sent on to. `requests` are method, path and whether a header named a user.
    """

    root: Path
    url: str = ""
    token: str = ""
    status: dict[str, int] = field(default_factory=dict)
    redirect: str = ""
    meanwhile: Callable[[str, socket.socket], bool] | None = None
    """Called with each request's method and path before anything is done; False: its client is gone."""
    requests: list[tuple[str, str, bool]] = field(default_factory=list)


@contextmanager
def serve_git(root: Path, *, token: str = "") -> Iterator[GitHttp]:
    """Serve the bare repositories below `root` until the block ends; pushes need `http.receivepack`."""
    served = GitHttp(root, token=token)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def log_message(self, format: str, *args: object) -> None:
            """Silent: a test asks for `requests`."""

        def _answer(self) -> None:
            body = self._body()
            named = self.headers.get("authorization", "")
            served.requests.append((self.command, self.path, bool(named)))
            if served.meanwhile and not served.meanwhile(f"{self.command} {self.path}", self.connection):
                self.close_connection = True
                return
            path, _, query = self.path.partition("?")
            refused = next((code for part, code in served.status.items() if part in self.path), 0)
            if served.redirect:
                self._send(302, {"Location": served.redirect + self.path}, b"")
            elif refused:
                self._send(refused, {}, b"refused\n")
            elif served.token and not _allowed(named, served.token):
                self._send(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"")
            else:
                self._send(*_backend(served.root, self, path, query, body))

        def _body(self) -> bytes:
            if self.headers.get("transfer-encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("content-length") or 0))
            data = b""
            while (size := int(self.rfile.readline(20).strip() or b"0", 16)) and len(data) < LIMIT:
                data += self.rfile.read(size)
                self.rfile.readline(4)
            self.rfile.readline(4)
            return data

        def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            with suppress(ConnectionError):  # a client that was killed
                self.end_headers()
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _allowed(header: str, token: str) -> bool:
    kind, _, value = header.partition(" ")
    return kind == "Basic" and base64.b64decode(value).decode().partition(":")[2] == token


def _backend(
    root: Path, asked: BaseHTTPRequestHandler, path: str, query: str, body: bytes
) -> tuple[int, dict[str, str], bytes]:
    """One request by CGI, as a web server would pass it on."""
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "REQUEST_METHOD": asked.command,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_TYPE": asked.headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_CONTENT_ENCODING": asked.headers.get("content-encoding", ""),
        "HTTP_GIT_PROTOCOL": asked.headers.get("git-protocol", ""),
        "REMOTE_USER": "test",
        "REMOTE_ADDR": "127.0.0.1",
    }
    done = subprocess.run(
        ["git", "http-backend"], input=body, env=environment, capture_output=True, check=True, timeout=60
    )
    head, _, content = done.stdout.partition(b"\r\n\r\n")
    headers = dict(row.split(": ", 1) for row in head.decode("latin-1").split("\r\n") if ": " in row)
    status = int(headers.pop("Status", "200 OK").split()[0])
    return status, headers, content
