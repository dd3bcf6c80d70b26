"""Agents of `[agents]` as the fleet sees them, without jails: the guest's tool through a real broker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from random import Random
from typing import Any

from fleet.broker.listener import Listener
from fleet.config import Platform
from fleet.devnet.surfaces.herbarium_wires import SECRETS, USERS, WiredAgent
from fleet.drivers.explore.agent.explorer import make
from fleet.drivers.explore.port import Explorer, ExplorerContext
from fleet.oracles.model import Facts
from fleet.personas.model import Step
from fleet.runs.call.guest_protocol import json_safe
from fleet.runs.context import guest_context
from fleet.runs.proof.candidates import Candidate, answered
from sandbox.errors import Failure
from sandbox.spec import Mistake, as_record
from sandbox.tools import qa_call
from sandbox.validate import build
from tests.drivers.mcp_visits import CLOCK, listened

LABELS = {"one": "caller", "other": "other"}


def profile(office: WiredAgent, *, accounts: bool = True, **more: object) -> Platform:
    """A profile that names the agent, and its two accounts."""
    two = {label: {"user": USERS[who], "secret_env": f"QA_{label}"} for label, who in LABELS.items()}
    where = "{site}/v1" if office.wire == "chat" else "{site}/a2a"
    said: dict[str, Any] = {"name": "herbarium", "web": {"site": office.url}}
    said |= {"agents": {"fern": {"wire": office.wire, "url": where}}} | more
    return Platform.model_validate(said | ({"accounts": two} if accounts else {}))


def asked(platform: Platform, args: Mapping[str, Any]) -> dict[str, Any]:
    """One call of the tool, as its guest answers it."""
    secrets = {who: secret for secret, who in SECRETS.items()}
    context = guest_context(platform, "t0", {}, 20.0)
    known = {label: {"user": USERS[who], "secret": secrets[who]} for label, who in LABELS.items()}
    context.accounts.update(known if platform.accounts else {})
    with listened(platform) if "{listener}" in str(args) else nullcontext(Listener("", CLOCK)) as listener:
        sent = json.loads(json.dumps(args).replace("{listener}", listener.url))
        try:
            result = qa_call.run(build(qa_call.Args, sent, "/args"), context)
        except Mistake as mistake:
            result = qa_call.Result(ok=False, error=str(mistake), error_class="bad_request")
        except Failure as failure:
            result = qa_call.Result(ok=False, error=str(failure), error_class=failure.error_class)
        return dict(json_safe(as_record(result))) | {"heard": listener.heard(sent, 0.0)}


def explored(
    platform: Platform, *, calls: int = 10_000, seed: str = "s"
) -> tuple[dict[str, Candidate], list[Step], Explorer]:
    """What the oracles say of the explorer's questions, by oracle; what it asked; the explorer."""
    ground = ExplorerContext(platform=platform, tools=frozenset({"qa_call"}), acts=True)
    explorer = make(ground, Random(seed), {})
    found: dict[str, Candidate] = {}
    steps: list[Step] = []
    while len(steps) < calls and (questions := explorer.ask(min(48, calls - len(steps)))):
        for question in questions:
            results = [asked(platform, step.args) for step in question.steps]
            wrong = [one for one in results if one["error_class"] in ("bad_request", "refused", "internal")]
            assert not wrong, (question, wrong)
            steps += question.steps
            for one in answered(question.steps, results, Facts.of(platform)):
                found.setdefault(one.oracle, one)
            explorer.learn(question, results)
    return found, steps, explorer
