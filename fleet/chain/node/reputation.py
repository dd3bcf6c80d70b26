"""ERC-8004's Reputation registry, version 2.0.0: its functions and events, and our entries there. Pure.

The text of an entry stands in a `data:` URI, in the JSON file that the standard describes for feedback, under
a key of its own, `qa`. The registry keeps URI and hash in events only (ecosystem.md 1.3).
"""

from __future__ import annotations

import base64
import json
from binascii import Error as NotBase64
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from fleet.chain.node import abi, codec
from fleet.chain.node.digest import keccak256
from fleet.severity import Severity
from sandbox import strict_json

FINDING, RECORD = "qaFinding", "qaRecord"
"""`tag1` of a finding, and of a record of an item's life; `tag2` is the fingerprint, if there is one."""
VALUES: Mapping[str, int] = MappingProxyType(
    {one: -25 * step for step, one in enumerate(reversed(list(Severity)))}
)
"""`value` of a finding by its severity, without decimals: from 0 of the mildest to -100."""
MAX_URI = 24_000
"""Characters of a URI that is read: a text of 2,048 bytes, each escaped as six, in base64."""
MAX_TEXT = 2_048
_URI = "data:application/json;base64,"


def _function(name: str, inputs: str, outputs: str = "", *, writes: bool = False) -> abi.Function:
    selector = keccak256(f"{name}({inputs})".encode())[:4]
    return abi.Function(
        name,
        selector,
        tuple(inputs.split(",")) if inputs else (),
        tuple(filter(None, outputs.split(","))),
        writes,
    )


GIVE = _function("giveFeedback", "uint256,int128,uint8,string,string,string,string,bytes32", writes=True)
REVOKE = _function("revokeFeedback", "uint256,uint64", writes=True)
RESPOND = _function("appendResponse", "uint256,address,uint64,string,bytes32", writes=True)
IDENTITY_REGISTRY = _function("getIdentityRegistry", "", "address")
IS_AUTHORISED = _function("isAuthorizedOrOwner", "address,uint256", "bool")
"""Of the Identity registry: whether an address is the agent's owner, or may act for it."""
WRITES: Mapping[bytes, abi.Function] = MappingProxyType(
    {one.selector: one for one in (GIVE, REVOKE, RESPOND)}
)
"""What the fleet's identity may sign there, by selector."""


def _topic(signature: str) -> str:
    return "0x" + keccak256(signature.encode()).hex()


GIVEN = _topic("NewFeedback(uint256,address,uint64,int128,uint8,string,string,string,string,string,bytes32)")
"""Indexed: agent, client, tag1."""
GIVEN_DATA = ("uint64", "int128", "uint8", "string", "string", "string", "string", "bytes32")
REVOKED = _topic("FeedbackRevoked(uint256,address,uint64)")
"""Indexed: agent, client, index."""
RESPONDED = _topic("ResponseAppended(uint256,address,uint64,address,string,bytes32)")
"""Indexed: agent, client, responder."""
RESPONDED_DATA = ("uint64", "string", "bytes32")
TAG_TOPICS = [_topic(FINDING), _topic(RECORD)]


def uri_of(text: str, feedback: Mapping[str, Any]) -> tuple[str, bytes]:
    """The URI of a feedback file that holds this text, and the hash that the registry takes with it."""
    blob = json.dumps({**feedback, "qa": text}, ensure_ascii=False, separators=(",", ":")).encode()
    return _URI + base64.b64encode(blob).decode(), keccak256(blob)


def text_in(uri: str, digest: bytes) -> str | None:
    """The text of an entry; None when the URI is not one of ours, or its hash is another."""
    if len(uri) > MAX_URI or not uri.startswith(_URI):
        return None
    try:
        blob = base64.b64decode(uri.removeprefix(_URI), validate=True)
        found = strict_json.loads(blob) if keccak256(blob) == digest else None
    except (ValueError, NotBase64):
        return None
    text = found.get("qa") if isinstance(found, dict) else None
    if not isinstance(text, str):
        return None
    try:
        return text if 0 < len(text.encode()) <= MAX_TEXT else None
    except UnicodeEncodeError:
        return None


def entry_text(data: bytes) -> str | None:
    """The text of an entry that this calldata posts, to any log on chain; None when it posts none."""
    submit = abi.FUNCTIONS["submitFeedback"]
    try:
        if data[:4] == submit.selector:
            return str(submit.arguments(data)[0])
        if data[:4] in (GIVE.selector, RESPOND.selector):
            *_, uri, digest = WRITES[data[:4]].arguments(data)
            return text_in(uri, digest)
    except codec.Malformed:
        return None
    return None
