"""A command that outlives the process that started it, so that it can clean up."""

from __future__ import annotations

import os
import select
import stat
import sys
from contextlib import suppress

from fleet.errors import UsageError

CHUNK = 1 << 16


def outlive() -> None:
    """Continue as a child in a new session; the parent passes stdin on, waits, and may be killed.

    An MCP client ends its server's process group a few seconds after it hung up. The clean-up of a run takes
    longer, so the child is out of its reach. The end of stdin, which the parent's end causes too, tells it
    that the agent is gone. Call it before any thread exists. UsageError when stdin is not a pipe.
    """
    kind = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        raise UsageError("stdin is not a pipe", remedy="name this command in your agent's MCP configuration")
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.dup2(there, 0)
        os.close(there)
        os.close(here)
        return
    os.close(there)
    os.close(1)  # only the child answers: the agent must see it when the child has gone
    # copy until stdin ends or the child has closed its end; then do not wait for more of stdin
    ready = select.poll()
    ready.register(0, select.POLLIN)
    ready.register(here, 0)  # poll always reports errors
    with suppress(BrokenPipeError), os.fdopen(here, "wb", buffering=0) as pipe:
        while here not in dict(ready.poll()) and (data := memoryview(os.read(0, CHUNK))):
            while data:
                data = data[pipe.write(data) :]
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)
