"""When the service of a build counts as ready."""

from __future__ import annotations

import anyio.to_thread
import pytest

from sandbox.trees.calls import _ready
from tests.sandbox.doubles import Server, http_answer

EARLY = b"HTTP/1.1 103 Early Hints\r\nlink: </x.css>\r\n\r\n"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "ready"),
    [
        (http_answer(200, b"ok"), True),
        (EARLY + http_answer(404, b""), True),
        (EARLY * 2 + http_answer(503, b""), False),
        (http_answer(500, b""), False),
    ],
)
async def test_the_final_answer_of_the_service_decides(answer: bytes, ready: bool) -> None:
    async with Server(lambda _: answer) as service:
        assert await anyio.to_thread.run_sync(_ready, service.port, "/") is ready
