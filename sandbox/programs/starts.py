"""Did a program begin at all? One that could not be started has said nothing about the platform.

What is missing then (a library, an interpreter, a file, a process within the jail's limit) is missing in our
jail or in our profile. A shell's and the loader's statuses say so; the loader and Python use others as well.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Sequence

NOT_EXECUTABLE, NOT_FOUND = 126, 127
"""Of a shell, of `env`, and of the dynamic loader (127); no compiler reports a source's error with them."""

_LIBRARIES = "LD_LIBRARY_PATH"
_NO_LIBRARY = re.compile(
    rb"^[^\n]{0,200}: (?:error while loading shared libraries: |symbol lookup error: "
    rb"|[^\n]{0,200}: version `[^'\n]{1,80}' not found \(required by )"
    rb"|^Error (?:loading shared library |relocating )"  # musl
    rb"|^(?:ImportError|OSError): [^\n]{1,200}: cannot open shared object file: ",
    re.MULTILINE,
)
_NO_ROOM = re.compile(
    rb"^[^\n]{0,200}(?:Cannot fork|fork: (?:retry: )?Resource temporarily unavailable"
    rb"|can't start new thread|pthread_create[^\n]{0,80}Resource temporarily unavailable)",
    re.MULTILINE,
)
_NO_PYTHON = re.compile(
    rb"^Fatal Python error: (?:init|_?Py_?)|^Could not find platform independent libraries <prefix>",
    re.MULTILINE,
)
_PYTHON_SAYS = re.compile(
    rb": (?:can't open file |No module named |can't find '__main__' module |Error while finding )"
)


def not_started(argv: Sequence[str], code: int, stderr: bytes) -> str:
    """Why this program never began, for a person; "" when it did. `code` is as in `ProcessEnd`."""
    if code == 0:
        return ""
    said = _sign(argv, code, stderr)
    if said is None:
        return ""
    how = f"status {code}" if code >= 0 else signal.Signals(-code).name
    return f"{argv[0]} cannot be started here ({how}): {said.decode('utf-8', 'replace').strip()[:300]}"


def _sign(argv: Sequence[str], code: int, stderr: bytes) -> bytes | None:
    """The line that says so; None when there is none."""
    if code == -signal.SIGSYS:
        return b"it made a system call that every jail refuses"
    for pattern in (_NO_LIBRARY, _NO_ROOM, _NO_PYTHON):
        if found := pattern.search(stderr):
            return stderr[found.start() :].partition(b"\n")[0]
    first = stderr.lstrip().partition(b"\n")[0]
    if code in (NOT_EXECUTABLE, NOT_FOUND):
        return first
    own = os.fsencode(sys.executable)
    if sys.executable in argv and first.startswith(own) and _PYTHON_SAYS.match(first, len(own)):
        return first
    return None


def library_path(argv: Sequence[str]) -> dict[str, str]:
    """What the jail's own interpreter needs to find its library; another program gets nothing of it."""
    libraries = os.environ.get(_LIBRARIES, "")
    return {_LIBRARIES: libraries} if libraries and sys.executable in argv else {}


def interpreter_variables(argv: Sequence[str]) -> dict[str, str]:
    """What an interpreter needs: a library's path; Node longer traces, since the recursion of a parser
    has more than its ten frames."""
    name = os.path.realpath(argv[0])
    is_node = os.path.basename(argv[0]) in ("node", "nodejs") or name.endswith((".js", ".mjs", ".cjs"))
    return library_path(argv) | ({"NODE_OPTIONS": "--stack-trace-limit=60"} if is_node else {})
