"""`[agents]`: where each agent is called, and what a profile may not say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.broker.egress_policy import EgressPolicy, parse_target
from fleet.broker.rpc_policy import Denied
from fleet.config import Platform, parse
from fleet.errors import ConfigError
from fleet.gate.scope import Scope
from fleet.runs.context import guest_context

SITE = 'name = "one"\n{top}[web]\nsite = "http://127.0.0.1:8080"\n'
KEEPER = '[agents.keeper]\nwire = "{wire}"\nurl = "{url}"\n'


def profile(wire: str = "chat", url: str = "{site}/v1", top: str = "", more: str = "") -> Platform:
    text = SITE.replace("{top}", top) + KEEPER.replace("{wire}", wire).replace("{url}", url) + more
    return parse(Platform, text, file="one.toml")


@pytest.mark.parametrize(
    ("wire", "url", "called"),
    [
        ("chat", "{site}/v1", "http://127.0.0.1:8080/v1/chat/completions"),
        ("chat", "{site}/v1/", "http://127.0.0.1:8080/v1/chat/completions"),
        ("a2a-1.0", "{site}/a2a", "http://127.0.0.1:8080/a2a"),
        ("a2a-0.3", "http://127.0.0.1:8080/x/y", "http://127.0.0.1:8080/x/y"),
    ],
)
def test_an_agent_is_called_where_its_wire_says(wire: str, url: str, called: str) -> None:
    one = profile(wire, url)
    assert one.agent_urls == {"keeper": called}
    assert (one.calls_agents, one.agent_names) == (True, ("keeper",))
    assert Scope.of(one, ()).call_targets == {"keeper"}
    told = {"wire": wire, "url": called, "model": "keeper", "carried": ""}
    assert guest_context(one, "r", {}, 9.0).agents == {"keeper": told}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ({"url": "http://elsewhere.test/v1"}, "is not on web.site, web.proxy or one of web.hosts"),
        ({"url": "{proxy}/v1"}, "is not on web.site, web.proxy or one of web.hosts"),
        ({"wire": "grpc"}, "agents.keeper.wire"),
        ({"url": "/v1"}, "agents.keeper.url"),
        ({"top": 'call_targets = ["keeper"]\n'}, "agents.keeper is in call_targets as well"),
        ({"more": '[agents.Keeper]\nwire = "chat"\nurl = "{site}/v1"\n'}, "Keeper"),
        ({"more": "key = 1\n"}, "key"),
    ],
)
def test_what_cannot_be_meant_is_an_error_with_its_key(text: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError) as error:
        profile(**text)
    assert why in str(error.value)


@pytest.mark.parametrize(
    ("method", "path", "rung", "refused"),
    [
        ("POST", "/v1/chat/completions", "exercise", ""),
        ("POST", "/v1/chat/completions", "observe", "needs a rung that permits acts"),
        ("POST", "/v1/chat", "exercise", "is not permitted there"),
        ("POST", "/v1/chat/completions/x", "exercise", "is not permitted there"),
        ("POST", "/v1/chat/completions?x=1", "exercise", "is not permitted there"),
        ("PUT", "/v1/chat/completions", "exercise", "is not permitted there"),
        ("GET", "/v1/models", "observe", ""),
    ],
)
def test_the_broker_lets_a_call_through_there_and_from_the_rung_that_acts(
    method: str, path: str, rung: str, refused: str
) -> None:
    policy = replace(EgressPolicy.of(profile()), rung=lambda: rung)
    target = parse_target(f"http://127.0.0.1:8080{path}")
    if not refused:
        policy.check(method, target, b"{}")
        return
    with pytest.raises(Denied, match=refused):
        policy.check(method, target, b"{}")
