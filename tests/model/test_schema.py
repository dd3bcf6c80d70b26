"""The schema of the scripted model is that of the real server."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.doubles.model_wire.openai_request import invalid
from tests.drivers.chats import REFUSED, TAKEN
from tests.model.conftest import ENGINE

pytestmark = pytest.mark.model

JUDGE = """
import json, sys
from pydantic import ValidationError
from llama_cpp.server.types import CreateChatCompletionRequest

def takes(body):
    try:
        CreateChatCompletionRequest(**body)
    except ValidationError:
        return False
    return True

print(json.dumps([takes(body) for body in json.load(sys.stdin)]))
"""


def test_the_scripted_model_is_as_strict_as_the_real_server() -> None:
    bodies = [*TAKEN, *(body for body, _ in REFUSED)]
    said = subprocess.run(
        [ENGINE, "-c", JUDGE], input=json.dumps(bodies), capture_output=True, text=True, check=True
    )
    assert json.loads(said.stdout) == [invalid(body) is None for body in bodies]
