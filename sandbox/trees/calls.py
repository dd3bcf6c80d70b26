"""Tool calls against the build of a work tree, in one jail: its service is started, then asked by our tools.

The request line holds `calls` (tool and arguments), `ctx` (a Context whose site or program is the tree's) and
`service` (null, or its `command`, `port`, `ready` and `starts_s`). The tree is always a copy. One result line
for each call, as in a batch of the guest; exit 5 when the service does not start, its last words on standard
error. The way out of the tools is a listener of this process, which reaches the service and nothing else.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from typing import Any

from sandbox.errors import OUR_FAILURES, Failure, JailBroken, cause_of
from sandbox.guest import answer
from sandbox.http import FinalReply
from sandbox.places import BOX
from sandbox.spec import PROTOCOL, Context, Mistake
from sandbox.text import clean
from sandbox.tools import TOOLS
from sandbox.trees.command import EXIT_BAD_LINE, EXIT_BROKEN, MAX_LINE, read_request
from sandbox.trees.copy import take_copy, variables, words
from sandbox.trees.forward import forward
from sandbox.validate import build

EXIT_NO_SERVICE = 5
_LOOK_S = 0.05
_LAST_WORDS = 4_000
_SERVER_ERROR = 500


class ServiceSilent(Exception):
    """The service of the tree ended, or did not answer in its time."""


def main() -> int:
    """Serve standard input once; the status is the process's."""
    try:
        asked = read_request(MAX_LINE)
        context: Context = build(Context, asked["ctx"], "/ctx")
        calls = [(TOOLS.get(one["tool"]), one["args"]) for one in asked["calls"]]
        take_copy()
        os.chdir(BOX)
        if asked["service"] is not None:
            _start(asked["service"])
        for number, (spec, args) in enumerate(calls):
            if spec is None:
                raise ValueError("no such tool")
            result = answer(spec, args, context)
            line = json.dumps({"v": PROTOCOL, "call": number, "result": result}, ensure_ascii=True)
            sys.stdout.write(line + "\n")
            if cause_of(result) in OUR_FAILURES:
                break
    except (Mistake, ValueError, KeyError, TypeError) as error:
        print(f"bad request line: {type(error).__name__}", file=sys.stderr)
        return EXIT_BAD_LINE
    except JailBroken as broken:
        print(f"broken: {clean(str(broken))}", file=sys.stderr)
        return EXIT_BROKEN
    except ServiceSilent as silent:
        print(clean(str(silent)), file=sys.stderr)
        return EXIT_NO_SERVICE
    return 0


def _start(service: dict[str, Any]) -> None:
    """Start it in a session of its own and wait until it answers; it ends with the jail."""
    port, environment = int(service["port"]), variables({})
    said: deque[bytes] = deque(maxlen=64)
    try:
        started = subprocess.Popen(
            words(service["command"], environment, port=str(port)),
            cwd=BOX,
            env={"HOME": BOX, "LANG": "C.UTF-8", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (Failure, OSError) as error:
        raise ServiceSilent(f"the service cannot be started: {error}") from None
    threading.Thread(target=_drain, args=(started, said), daemon=True).start()
    end = time.monotonic() + float(service["starts_s"])
    while not _ready(port, str(service["ready"])):
        ended = started.poll()
        if ended is not None or time.monotonic() > end:
            how = "does not answer in its time" if ended is None else f"ended with status {ended}"
            words_left = b"".join(said)[-_LAST_WORDS:].decode("utf-8", "replace")
            raise ServiceSilent(f"the service {how}: {words_left}")
        time.sleep(_LOOK_S)
    os.environ["QA_BROKER"] = f"http://127.0.0.1:{forward(port)}"


def _drain(started: subprocess.Popen[bytes], said: deque[bytes]) -> None:
    assert started.stdout is not None
    while chunk := os.read(started.stdout.fileno(), 4_096):
        said.append(chunk)


def _ready(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    connection.response_class = FinalReply
    try:
        connection.request("GET", path)
        return connection.getresponse().status < _SERVER_ERROR
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
