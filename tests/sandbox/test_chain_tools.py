"""qa_chain, qa_create and qa_publish: no success without the chain's own word."""

from __future__ import annotations

from typing import Any

import pytest
from eth_abi.abi import decode

from tests.sandbox.doubles import (
    APP,
    CALLER,
    DIAMOND,
    FACE,
    METADATA,
    NAME,
    OWNER,
    TOKEN,
    Bench,
    Chain,
    FailingSigner,
    Got,
    Signer,
    Submitted,
    bench,
    http_answer,
    json_answer,
)
from tests.sandbox.test_process import python

pytestmark = pytest.mark.anyio


async def test_a_view_is_read_at_a_block() -> None:
    async with bench() as it:
        it.chain.owners["claude"] = OWNER
        result = await it.run("qa_chain", {"function": "ownerOfName", "args": ["claude"]})
        assert (result["ok"], result["value"], result["block"]) == (True, OWNER, 42)
        assert it.node.methods == ["eth_blockNumber", "eth_call"]


@pytest.mark.parametrize(
    ("function", "args", "types", "gives", "value"),
    [
        ("creditOf(address)", ["caller"], ("uint256",), (5,), 5),
        ("creditOf(address)", [CALLER], ("uint256",), (2**53,), str(2**53)),
        ("isTaken(string)", ["x"], ("bool",), (True,), True),
        ("ownerOfId(uint256)", ["7"], ("address",), (OWNER,), OWNER),
        ("metadata(uint256,bytes32)", [1, "localharness.persona"], ("bytes",), (b"hi",), "0x6869"),
        ("metadata(uint256,bytes32)", [1, "persona"], ("bytes",), (b"hi",), "0x6869"),
        (
            "feedbackAt(uint256)",
            [0],
            ("address", "uint64", "string"),
            (OWNER, 9, "a\u202eb"),
            [OWNER, 9, "ab"],
        ),
        ("facets()", [], ("(address,bytes4[])[]",), ([(OWNER, [b"abcd"])],), [[OWNER, ["0x61626364"]]]),
    ],
)
async def test_values_are_typed(
    function: str, args: list[Any], types: tuple[str, ...], gives: Any, value: Any
) -> None:
    async with bench() as it:
        it.node.view(function, types, lambda *_: gives)
        result = await it.run("qa_chain", {"function": function.partition("(")[0], "args": args})
        assert (result["ok"], result["value"]) == (True, value)


async def test_a_revert_and_nonsense_are_data() -> None:
    async with bench() as it:
        result = await it.run("qa_chain", {"function": "owner"})
        assert (result["error"], result["error_class"]) == ("Diamond: function not found", "reverted")
        it.node.view("owner()", ("uint256",), lambda: (2**255,))
        assert (await it.run("qa_chain", {"function": "owner"}))["error_class"] == "garbage"
        it.node.broken = b"<html>"  # of a node that is ill, not of the contract
        assert (await it.run("qa_chain", {"function": "owner"}))["error_class"] == "unreachable"
        it.node.broken = b'{"jsonrpc":"2.0","id":99,"result":"0x1"}'
        assert (await it.run("qa_chain", {"function": "owner"}))["error_class"] == "unreachable"
        it.node.broken = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}'
        result = await it.run("qa_chain", {"function": "owner"})
        assert (result["error"], result["error_class"]) == ("RPC error -32601: no such method", "http")


def registering(chain: Chain, **outcome: Any) -> Signer:
    def mined(sent: Submitted) -> dict[str, Any]:
        if sent.data[:4].hex() == "f2c298be" and outcome.get("status", 1) == 1:
            chain.owners[decode(["string"], sent.data[4:])[0]] = outcome.pop("owner", OWNER)
        return outcome if sent.data[:4].hex() == "f2c298be" else {}

    return Signer(mined)


async def create(it: Bench, **ctx: Any) -> dict[str, Any]:
    return await it.run("qa_create", {"name": NAME}, **ctx)


async def test_a_name_is_minted_and_read_back() -> None:
    async with bench() as it:
        it.signer.mined = registering(it.chain).mined
        result = await create(it)
        assert (result["ok"], result["owner"], result["agent_id"], result["main_unset"]) == (
            True,
            OWNER,
            7,
            True,
        )
        assert (result["gas_limit"], result["gas_estimate"], result["gas_used"]) == (
            2_200_000,
            300_000,
            250_000,
        )
        (sent,) = it.signer.submitted
        assert (sent.key, sent.to, sent.gas, sent.value) == (NAME, DIAMOND, 2_200_000, 0)


async def test_a_price_is_approved_first() -> None:
    async with bench() as it:
        it.chain.cost = 10**18
        it.signer.mined = registering(it.chain).mined
        assert (await create(it, token=TOKEN))["ok"]
        approve, register = it.signer.submitted
        assert (approve.to, decode(["address", "uint256"], approve.data[4:])) == (TOKEN, (DIAMOND, 10**18))
        assert register.to == DIAMOND


async def test_a_price_without_a_token_stops_the_mint() -> None:
    async with bench() as it:
        it.chain.cost = 1
        result = await create(it)
        assert (result["ok"], result["error_class"], it.signer.submitted) == (False, "internal", [])


@pytest.mark.parametrize(
    "broken",
    [
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":1,"result":"0x"}',
    ],
)
async def test_a_price_that_cannot_be_read_stops_the_mint(broken: bytes) -> None:
    async with bench() as it:
        it.node.broken = broken
        result = await create(it)
        assert (result["ok"], it.signer.submitted) == (False, [])


async def test_an_estimate_that_reverts_sends_nothing() -> None:
    async with bench() as it:
        it.node.estimate = {"code": 3, "message": "execution reverted: name taken"}
        result = await create(it)
        assert (result["error_class"], it.signer.submitted) == ("reverted", [])
        assert "name taken" in result["error"]


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        ({"status": 0, "gas_used": 2_200_000}, "oog"),
        ({"status": 0, "gas_used": 90_000, "reverted": "name taken"}, "reverted"),
        ({"status": 1, "owner": CALLER}, "garbage"),
    ],
)
async def test_a_hash_is_not_success(outcome: dict[str, Any], kind: str) -> None:
    async with bench() as it:
        it.signer.mined = registering(it.chain, **outcome).mined
        result = await create(it)
        assert (result["ok"], result["error_class"], result["tx"] != "") == (False, kind, True)


async def test_a_main_identity_on_a_throwaway_is_a_failure() -> None:
    async with bench() as it:
        it.signer.mined = registering(it.chain).mined
        it.chain.mains[OWNER] = 7
        result = await create(it)
        assert (result["ok"], result["main_unset"]) == (False, False)


async def test_what_the_signer_refuses_is_said() -> None:
    async with bench(signer=FailingSigner()) as it:
        result = await create(it)
        assert (result["ok"], result["error_class"], result["tx"]) == (False, "oog", "0xdead")


MODULE = bytes.fromhex("0061736d0100000001040160000003020100070901056672616d6500000a040102000b")


def compiler(module: bytes) -> tuple[str, ...]:
    return python(f"sys.stdout.buffer.write(bytes.fromhex('{module.hex()}'))")


def writing(chain: Chain, drop: bytes = b"", **outcome: Any) -> Signer:
    def mined(sent: Submitted) -> dict[str, Any]:
        agent_id, key, value = decode(["uint256", "bytes32", "bytes"], sent.data[4:])
        if key != drop and outcome.get("status", 1) == 1:
            chain.metadata[agent_id, key] = value
        return outcome

    return Signer(mined)


def quoting(got: Got) -> bytes:
    return (
        json_answer(200, {"gas": 4242})
        if got.path == f"/api/estimate?bytes={len(MODULE)}"
        else http_answer(404, b"")
    )


async def publish(it: Bench, module: bytes = MODULE, **ctx: Any) -> dict[str, Any]:
    it.chain.owners[NAME] = OWNER
    return await it.run(
        "qa_publish", {"name": NAME, "source": "x"}, program={"command": compiler(module)}, **ctx
    )


async def test_an_app_is_two_keys_both_read_back() -> None:
    async with bench(quoting) as it:
        it.signer.mined = writing(it.chain).mined
        result = await publish(it)
        assert (result["ok"], result["published"], result["entry"], result["code"]) == (
            True,
            True,
            "frame",
            "",
        )
        assert (result["gas_limit"], result["gas_quote"]) == (1_200_000 + 8_500 * len(MODULE), 4242)
        assert it.chain.metadata == {(7, APP): MODULE, (7, FACE): b"app"}
        assert [sent.key for sent in it.signer.submitted] == [NAME, NAME]
        assert len(result["tx"]) == 2


async def test_a_platform_without_a_quote_is_no_fault() -> None:
    async with bench(lambda _: http_answer(404, b"")) as it:
        it.signer.mined = writing(it.chain).mined
        result = await publish(it)
        assert (result["ok"], "gas_quote" in result) == (True, False)


@pytest.mark.parametrize("status", [403, 429, 500, 502, 503])
async def test_a_quote_that_was_not_heard_is_not_one_that_is_not_stated(status: int) -> None:
    async with bench(lambda _: http_answer(status, b"")) as it:
        it.signer.mined = writing(it.chain).mined
        result = await publish(it)
        assert (result["ok"], "gas_quote" in result, result["unjudged"]) == (True, False, ["gas_quote"])


@pytest.mark.parametrize("role", ["app", "face"])
async def test_without_a_metadata_key_nothing_is_published(role: str) -> None:
    async with bench() as it:
        result = await publish(it, metadata={other: key for other, key in METADATA.items() if other != role})
        assert (result["error_class"], result["error"]) == (
            "bad_request",
            f"/tool: the profile names no metadata key '{role}'",
        )
        assert (it.signer.submitted, it.node.methods) == ([], [])


async def test_keys_and_face_are_the_profiles_own() -> None:
    keys = {"app": "0x" + "01" * 32, "face": "0x" + "02" * 32}
    async with bench() as it:
        it.signer.mined = writing(it.chain).mined
        result = await publish(it, metadata=keys, face_app="show-app")
        assert (result["ok"], result["face_read_back"]) == (True, True)
        assert it.chain.metadata == {(7, b"\x01" * 32): MODULE, (7, b"\x02" * 32): b"show-app"}


@pytest.mark.parametrize("key", [APP, FACE])
async def test_a_key_that_does_not_read_back_is_no_success(key: bytes) -> None:
    async with bench() as it:
        it.signer.mined = writing(it.chain, drop=key).mined
        result = await publish(it)
        assert (result["ok"], result["published"], result["error_class"]) == (False, False, "garbage")
        assert (result["app_read_back"], result["face_read_back"]) == (key != APP, key != FACE)


@pytest.mark.parametrize(("gas_used", "code"), [(1_480_000, "oog"), (60_000, "reverted")])
async def test_a_failed_write_ends_it(gas_used: int, code: str) -> None:
    async with bench() as it:
        it.signer.mined = writing(it.chain, status=0, gas_used=gas_used).mined
        result = await publish(it)
        assert (result["ok"], result["code"], result["error_class"], len(it.signer.submitted)) == (
            False,
            code,
            code,
            1,
        )


async def test_a_refusal_without_a_word_of_the_platform_has_one_of_ours() -> None:
    async with bench() as it:
        result = await publish(it, MODULE, publish_cap=10, codes={})
        assert (result["code"], result["error"]) == ("too_large", f"too_large: {len(MODULE)} bytes, cap 10")


@pytest.mark.parametrize(
    ("module", "cap", "code"), [(b"\0asm\x01\0\0\0", 100, "LH0302"), (MODULE, 10, "LH0303")]
)
async def test_refusals_come_before_any_transaction(module: bytes, cap: int, code: str) -> None:
    async with bench() as it:
        result = await publish(it, module, publish_cap=cap)
        assert (result["ok"], result["code"], result["outcome"]) == (False, code, "accepted")
        assert (it.signer.submitted, it.node.methods) == ([], [])


async def test_source_that_does_not_compile_is_not_published() -> None:
    async with bench() as it:
        it.chain.owners[NAME] = OWNER
        refused = python("sys.stderr.write('LH0204: no [1..2]'); sys.exit(1)")
        result = await it.run("qa_publish", {"name": NAME, "source": "x"}, program={"command": refused})
        assert (result["ok"], result["outcome"], result["error"]) == (
            False,
            "clean_error",
            "LH0204: no [1..2]",
        )
        assert it.signer.submitted == []


async def test_a_busy_machine_publishes_nothing_and_says_so() -> None:
    async with bench() as it:
        endless = python("while True: pass")
        args = {"name": NAME, "source": "x"}
        result = await it.run("qa_publish", args, program={"command": endless}, deadline_s=4.0)
        assert (result["ok"], result["outcome"], result["error_class"]) == (False, "unknown", "busy")
        assert result["error"].startswith("could not tell: this machine is busy")
        assert it.signer.submitted == []


async def test_a_name_that_is_not_registered_is_the_callers_mistake() -> None:
    async with bench() as it:
        result = await it.run(
            "qa_publish", {"name": NAME, "source": "x"}, program={"command": compiler(MODULE)}
        )
        assert (result["ok"], result["error_class"], it.signer.submitted) == (False, "bad_request", [])
