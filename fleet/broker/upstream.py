"""The node behind the broker: JSON-RPC POSTs over connections that are kept."""

from __future__ import annotations

from fleet.broker.rpc_policy import Denied
from fleet.http_client import AnswerTooLarge, HttpFailure, open_client, post

_JSON = {"content-type": "application/json"}


class RpcUpstream:
    """POSTs to one URL. The operator chose it, so its address is not checked."""

    def __init__(self, url: str, *, max_response: int) -> None:
        self._url, self._max_response = url, max_response
        self._client = open_client(url)
        self._answered = False

    async def post(self, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer; Denied `unreachable` without one."""
        try:
            try:
                return await self._exchange(body)
            except HttpFailure as failure:
                if isinstance(failure, AnswerTooLarge) or not self._answered:
                    raise
            # a kept connection may have been closed meanwhile; all requests are reads, so retry
            return await self._exchange(body)
        except AnswerTooLarge:
            why = f"the node answered more than {self._max_response} bytes"
            raise Denied("too-large", why, status=502) from None
        except HttpFailure as failure:
            why = "closed the connection" if failure.reached else "does not answer"
            raise Denied("unreachable", f"the chain's node {why}", status=502) from None

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _exchange(self, body: bytes) -> tuple[int, bytes]:
        answer = await post(self._client, self._url, body, _JSON, limit=self._max_response)
        self._answered = True
        return answer
