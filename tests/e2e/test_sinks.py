"""`fleet run` with a sink configured: who is there gets the run as it was recorded, and nobody else waits."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from anyio import to_thread

from fleet.app.wiring import open_world
from fleet.broker.egress_policy import EgressPolicy
from fleet.errors import ConfigError
from fleet.gate.steering import STEERING, Steering, write_steering
from tests.e2e.conftest import Fleet, Said
from tests.events.receiver import Receiver, receiving

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(240)]


def sinks(**urls: str) -> dict[str, str]:
    tables = ", ".join(f'{name} = {{ url = "{url}" }}' for name, url in urls.items())
    return {"QA_FLEET_SINKS": f"{{ {tables} }}"}


def expected(state: Path, run: str) -> list[tuple[str, str, Any]]:
    """What the trajectory says that the driver asked for, and what it got."""
    found: list[tuple[str, str, Any]] = []
    for line in (state / "runs" / run / "trajectory.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        match record["type"]:
            case "tool.requested":
                found.append(("tool_request", str(record["call"]), record["args"]))
            case "tool.responded":
                found.append(("tool_response", str(record["call"]), record["result"]))
            case "gate.denied":
                found.append(("tool_response", str(record["call"]), record["rule"]))
            case str(event) if event.startswith("finding."):
                found.append(("finding", record["fingerprint"], event))
    return found


def arrived(receiver: Receiver, secret: bytes) -> list[tuple[str, str, Any]]:
    got: list[tuple[str, str, Any]] = []
    for batch in receiver.batches(secret):
        for one in batch["deliveries"]:
            payload = one["payload"]
            what = next(payload[key] for key in ("args", "result", "denied", "event") if key in payload)
            got.append((one["kind"], one["identity"], what))
    return got


async def test_a_run_is_delivered_and_a_dead_sink_beside_costs_it_nothing(
    devnet: Fleet, shared: Path
) -> None:
    for name in ("ci", "gone"):
        assert devnet("service", "hook", "new", name, "--sink").code == 0
    secret = (shared / "keys" / "sink.ci").read_bytes().strip()
    async with receiving() as receiver:
        env = sinks(ci=receiver.url, gone="http://127.0.0.1:9/")
        said: Said = await to_thread.run_sync(partial(devnet, "run", "qa-ux", "--json", env=env))
    assert said.code == 1, said.err
    report = said.data
    batches = receiver.batches(secret)
    assert {(batch["run"], batch["persona"]) for batch in batches} == {(report["run"], "qa-ux")}
    assert [batch["seq"] for batch in batches] == list(range(len(batches)))
    assert arrived(receiver, secret) == expected(shared, report["run"])
    posted = {row["fingerprint"] for row in report["findings"] if row["state"] == "posted"}
    assert {one[1] for one in arrived(receiver, secret) if one[2] == "finding.posted"} == posted != set()
    assert batches[-1]["end"]["outcome"] == report["outcome"] == "done"
    assert len({dict(post.headers)["x-qa-delivery"] for post in receiver.posts}) == len(receiver.posts)
    told = [line for line in said.err.splitlines() if line.startswith("sink ")]
    assert told[0] == "sink gone: ConnectError: All connection attempts failed; runs continue"
    assert (len(told), told[1].endswith("deliveries were lost")) == (2, True)


@pytest.mark.usefixtures("devnet")
async def test_without_its_secret_nothing_starts_and_a_demo_has_no_sinks(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(shared))
    monkeypatch.setenv("QA_FLEET_SINKS", sinks(none="https://ci.example/")["QA_FLEET_SINKS"])
    with pytest.raises(ConfigError, match=r"sinks\.none\.secret_file: .*sink\.none"):
        async with open_world(shared, personas={}):
            pass
    async with open_world(shared, personas={}, alone=True) as world:
        assert world.watch == (world.signals.noted,)
        policy = cast("partial[object]", world.egress).args[0]
        assert isinstance(policy, EgressPolicy)
        write_steering(shared, Steering(leave=("https://site.example/old",), share=0.5))
        try:  # the broker of every jail reads what a person steers
            assert policy.left_out().match("https://site.example/old/a")
            assert policy.share("site.example", "low") == 0.5 * world.platform.web.share(
                "site.example", "low"
            )
        finally:
            (shared / STEERING).unlink()
