"""The guest that starts the browser, opens an empty page, and says in its status whether that worked."""

from __future__ import annotations

import sys

from sandbox.browser.devtools import DevTools, NoReply, ProtocolError
from sandbox.errors import Failure


def main() -> int:
    """0 when a page could be opened; else the reason on standard error."""
    try:
        tools = DevTools(lambda _method, _params: None)
        try:
            tools.ready()
            tools.ask("Target.createTarget", url="about:blank", within=15.0)
        finally:
            tools.close()
    except (Failure, NoReply, ProtocolError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
