"""Calls in the words of the Gemini API, through a platform's proxy, with signed tokens and credits on a chain
(platform-facts 1.7)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import ClassVar

from sandbox import http
from sandbox.agents import call_request
from sandbox.agents.wires.port import GIVEN, MAX_TOOLS, TASKS, ReplyParts, Spoken, objects, word
from sandbox.chain import abi, rpc
from sandbox.chain.contract import CLAIM_DAILY
from sandbox.chain.gas import limit
from sandbox.errors import Deadline, Failure, JailBroken
from sandbox.spec import Context, Mistake

UNAUTHORIZED = 401
SKEW_S = 60.0
"""Seconds; the platform may refuse a token that is off by more."""


class GeminiWire:
    """Callers are throwaway keys of the run."""

    LACKS: ClassVar[Mapping[str, str]] = {
        TASKS: "this wire has no tasks",
        GIVEN: "a proxy takes one message of its caller",
    }
    TOKENS: ClassVar[tuple[str, ...]] = call_request.TOKENS

    def __init__(self, ctx: Context, deadline: Deadline, caller: str) -> None:
        if not ctx.call_url:
            raise Mistake("/tool: the profile does not say how agents are called here")
        if caller not in ctx.keys:
            raise JailBroken(f"this run has no {caller} key")
        self._ctx, self._deadline, self._token = ctx, deadline, ""
        self.header = ctx.token_header

    def request(self, spoken: Spoken) -> http.HttpRequest:
        ctx = self._ctx
        token = call_request.token(spoken.token, spoken.caller, ctx, self._deadline)
        self._token = token if spoken.token == "good" else ""
        headers = {"content-type": "application/json"} | ({ctx.token_header: token} if token else {})
        headers |= dict.fromkeys(spoken.claim_headers, spoken.claimed) if spoken.claimed else {}
        contents = [{"role": "user", "parts": [{"text": spoken.message}]}]
        claims = dict.fromkeys(spoken.claim_fields, spoken.claimed)
        body = json.dumps({"agent": spoken.target, "contents": contents, **claims}).encode()
        url = http.absolute(ctx.stream_url if spoken.stream else ctx.call_url, "/ctx/proxy")
        return http.HttpRequest("POST", url, headers, spoken.raw.encode() or body, encodings="identity")

    def check(self, reply: http.HttpReply) -> None:
        off = self._skew(reply) if self._token else 0.0
        if reply.status == UNAUTHORIZED and abs(off) > SKEW_S:
            raise Failure(
                "internal", f"our clock and the platform's are {off:+.0f} s apart", status=reply.status
            )

    def read(self, documents: Sequence[object]) -> ReplyParts:
        said = ReplyParts()
        for document in documents:
            if not isinstance(document, dict):
                continue
            said.caller = word(document.get("caller")) or said.caller
            turns = document.get("turns")
            said.turns = turns if type(turns) is int and 0 <= turns < 1 << 31 else said.turns
            for candidate in objects(document.get("candidates")):
                said.shaped = True
                said.finish = word(candidate.get("finishReason")) or said.finish
                content = candidate.get("content")
                for part in objects(content.get("parts") if isinstance(content, dict) else None):
                    said.text += word(part.get("text"))
                    call = part.get("functionCall")
                    if isinstance(call, dict) and len(said.tools) < MAX_TOOLS:
                        said.tools.append(word(call.get("name"))[:64])
        return said

    def follow(self, said: ReplyParts, spoken: Spoken) -> http.HttpRequest | None:  # noqa: ARG002  the port has them
        return None

    def identity(self, caller: str) -> str:
        return self._ctx.keys.get(caller, "")

    def sender(self, claim: str, target: str) -> str:
        """An identity's address for its label, the agent's owner for `owner`."""
        if claim == "owner":
            if "ownerOfName" in self._ctx.lacks:
                raise Mistake("/args/claim_from: this platform does not say who owns an agent")
            (owner,) = rpc.view(self._ctx, "ownerOfName", target, deadline=self._deadline)
            return str(owner)
        return self._ctx.keys.get(claim, claim) if claim in call_request.CALLERS else claim

    def credit(self, caller: str) -> int:
        """If unreadable, the call fails: what was charged is never a guess."""
        if "creditOf" in self._ctx.lacks:
            return 0
        (credit,) = rpc.view(self._ctx, "creditOf", self._ctx.keys[caller], deadline=self._deadline)
        return int(str(credit))

    def fund(self, caller: str) -> bool:
        ctx = self._ctx
        if "claimDaily" in ctx.lacks:
            return False
        data = abi.encode_call(CLAIM_DAILY, ())
        receipt = rpc.submit(caller, ctx.diamond, data, limit(ctx, "small"), self._deadline)
        if receipt.status != 1:
            raise Failure("unfunded", f"claimDaily failed: {receipt.reverted or 'status 0'}")
        return True

    def hide(self, text: str) -> str:
        return text

    def _skew(self, reply: http.HttpReply) -> float:
        """Seconds from the platform's clock, by its Date header, to the token's clock; 0 if unknown."""
        try:
            said = parsedate_to_datetime(reply.headers.get("date", "")).timestamp()
            return int(self._token.split(":")[1]) - said
        except (ValueError, IndexError, OverflowError):
            return 0.0
