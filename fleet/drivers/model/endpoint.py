"""The model's endpoint: one client per run, with our limits and no settings from outside.

Everything that a provider's SDK would take from the environment (base URL, proxy) is set here. Each SDK
is imported where it is used: all three take 5 s of one core, one of them 3 s.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx2
from pydantic_ai.models import Model

from fleet.chain.keys import shown_certificate
from fleet.config import ModelSection
from fleet.config.fleet import HOMES
from fleet.http_client import put_on_record

ENVELOPE, PER_TOKEN = 65_536, 1_024
"""Most bytes of one answer on the wire, fixed and per token; a longer one is cut off."""
CONNECT_S = 5.0
NO_KEY = "none"
"""Placeholder key for an endpoint without one; the SDKs insist on a text."""


class TooMuch(httpx2.TransportError):
    """The endpoint sent more than the limit of an answer."""


class CappedTransport(httpx2.AsyncBaseTransport):
    """A transport that cuts answers at a limit, for any reader."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, limit: int) -> None:
        self._inner, self._limit = inner, limit

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _CappedStream(response.stream, self._limit)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _CappedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, limit: int) -> None:
        self._inner, self._left = inner, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            self._left -= len(piece)
            if self._left < 0:
                raise TooMuch("the answer is too large")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


def _openai(name: str, url: str, key: str, http: httpx2.AsyncClient) -> Model:
    from openai.types.chat import ChatCompletionMessageParam
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    class StrictChatModel(OpenAIChatModel):
        """Sends what the strictest endpoint takes: llama-cpp-python's refuses a message without a text."""

        def _map_model_response(self, message: ModelResponse) -> ChatCompletionMessageParam | None:
            said = super()._map_model_response(message)
            if said is not None and said["role"] == "assistant" and said.get("content") is None:
                said["content"] = ""
            return said

    at_home = url == HOMES["openai"]
    provider = (
        OpenAIProvider(base_url=url, api_key=key, http_client=http)
        if at_home
        else OpenAICompatibleProvider("compatible", base_url=url, api_key=key, http_client=http)
    )
    profile = OpenAIModelProfile(
        # without it, a stream that broke off would look like a complete answer
        openai_chat_streaming_requires_finish_reason=True,
        # elsewhere the newer name of the limit is often ignored, which would mean no limit
        openai_chat_supports_max_completion_tokens=at_home,
    )
    return StrictChatModel(name, provider=provider, profile=profile)


def _anthropic(name: str, url: str, key: str, http: httpx2.AsyncClient) -> Model:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel(name, provider=AnthropicProvider(base_url=url, api_key=key, http_client=http))


def _google(name: str, url: str, key: str, http: httpx2.AsyncClient) -> Model:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(name, provider=GoogleProvider(base_url=url, api_key=key, http_client=http))


_MAKE: dict[str, Callable[[str, str, str, httpx2.AsyncClient], Model]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "google": _google,
}


SDKS = {
    "openai": "pydantic_ai.models.openai",
    "anthropic": "pydantic_ai.models.anthropic",
    "google": "pydantic_ai.models.google",
}
"""The modules that the first use of each kind imports."""


@asynccontextmanager
async def open_endpoint(section: ModelSection, key: str, silence_s: float) -> AsyncIterator[Model]:
    """The model as configured, over connections that are closed at the end."""
    kind, _, name = section.name.partition(":")
    limit = ENVELOPE + PER_TOKEN * section.max_tokens
    context = httpx2.create_ssl_context(trust_env=False)
    if certificate := shown_certificate(section.certificate_file):
        context.load_cert_chain(certificate)
    transport = CappedTransport(httpx2.AsyncHTTPTransport(verify=context, trust_env=False, retries=0), limit)
    timeout = httpx2.Timeout(silence_s, connect=CONNECT_S)
    async with httpx2.AsyncClient(
        transport=transport,
        event_hooks={"request": [put_on_record]},
        timeout=timeout,
        trust_env=False,
        follow_redirects=False,
    ) as http:
        yield _MAKE[kind](name, section.url, key or NO_KEY, http)
