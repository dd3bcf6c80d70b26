"""The schema of chat completion requests, as strict as llama-cpp-python's server judges it.

After its `llama_types.py` and `server/types.py` (0.3.36): a message must fit one kind, keys that are not
known are ignored, and what does not fit is a validation error behind an HTTP 500.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired

from pydantic import BaseModel, ValidationError
from typing_extensions import TypedDict


class TextPart(TypedDict):
    type: Literal["text"]
    text: str


class ImageUrl(TypedDict):
    url: str
    detail: NotRequired[Literal["auto", "low", "high"]]


class ImagePart(TypedDict):
    type: Literal["image_url"]
    image_url: str | ImageUrl


class FunctionCall(TypedDict):
    name: str
    arguments: str


class ToolCall(TypedDict):
    id: str
    type: Literal["function"]
    function: FunctionCall


class SystemMessage(TypedDict):
    role: Literal["system"]
    content: str | None


class UserMessage(TypedDict):
    role: Literal["user"]
    content: str | list[TextPart | ImagePart] | None


class AssistantMessage(TypedDict):
    """`content` may be left out, but not be null."""

    role: Literal["assistant"]
    content: NotRequired[str]
    tool_calls: NotRequired[list[ToolCall]]
    function_call: NotRequired[FunctionCall]


class ToolMessage(TypedDict):
    role: Literal["tool"]
    content: str | None
    tool_call_id: str


class FunctionMessage(TypedDict):
    role: Literal["function"]
    content: str | None
    name: str


class ToolFunction(TypedDict):
    name: str
    description: NotRequired[str]
    parameters: dict[str, int | str | bool | list[Any] | dict[str, Any] | None]


class Tool(TypedDict):
    type: Literal["function"]
    function: ToolFunction


class FunctionName(TypedDict):
    name: str


class ToolChoice(TypedDict):
    type: Literal["function"]
    function: FunctionName


class ChatRequest(BaseModel):
    """The keys that a chat is asked with; sampling is left out."""

    model: str | None = None
    messages: list[
        SystemMessage | UserMessage | AssistantMessage | UserMessage | ToolMessage | FunctionMessage
    ] = []
    tools: list[Tool] | None = None
    tool_choice: Literal["none", "auto", "required"] | ToolChoice | None = None
    max_tokens: int | None = None
    stop: str | list[str] | None = None
    stream: bool = False


def invalid(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The body of the error that the server answers with; None for a request that it takes."""
    try:
        ChatRequest.model_validate(body)
    except ValidationError as error:
        found = [one | {"loc": ("body", *one["loc"])} for one in error.errors(include_url=False)]
        said = f"{len(found)} validation error{'s' if len(found) > 1 else ''}:\n"
        said += "".join(f"  {one}\n" for one in found)
        return {"error": {"message": said, "type": "internal_server_error", "param": None, "code": None}}
    return None
