"""MCP servers and agents that are made from a seed, and the short form of `make bench-agents`."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from bench import agents
from fleet.devnet.surfaces.harbour import ToolRefused
from fleet.drivers.explore.agent.knowledge import KnownAgent
from fleet.drivers.explore.agent.questions import senders
from fleet.oracles.agent import help_text
from tests.practice.dialects import FORMS, dialect
from tests.practice.guild_mcp import DEFECTS, ENDS, PLACES, Guild


@pytest.mark.parametrize("seed", range(6))
def test_every_defect_has_its_own_places_and_a_text_ends_unsafely_there_alone(seed: int) -> None:
    guild = Guild(seed, {})
    spots = {guild.spot(end, at) for end in ENDS for at in range(PLACES)}
    assert len(spots) == len(ENDS) * PLACES
    names = [one["name"] for one in guild.tools(0)]
    assert len(names) == len(set(names)) == 11
    for defect in DEFECTS:
        places = set[str]()
        for at in range(PLACES):
            guild.at = {defect: at}
            places.add(guild.where(defect))
        assert len(places) in (1, PLACES), defect
    close = {"{{": "}}", "<%=": "%>"}.get(guild.form, "}")
    for at in range(PLACES):
        guild.at = {"template": at}
        computed = {spot for spot in spots if "Dear 42" in said(guild, *spot, f"{guild.form}6*7{close}")}
        assert computed == {guild.spot("template", at)}


def said(guild: Guild, name: str, path: str, value: str) -> str:
    """What a tool answers to a value in one of its texts; the others are the usual ones."""
    given: dict[str, Any] = {}
    for one in (*guild.tool(name).needs, path):
        outer, _, inner = one.rpartition(".")
        (given.setdefault(outer, {}) if outer else given)[inner] = value if one == path else "welcome.txt"
    try:
        return guild.call(name, given)[0]
    except ToolRefused:
        return ""


def test_every_named_defect_is_in_a_house_once_for_each_place() -> None:
    made = list(agents.houses(DEFECTS, Random(1)))
    assert sum(map(len, made)) == len(DEFECTS) * PLACES
    assert all(len(one) == 1 for one in made if {*one} & {*agents.ALONE})
    assert set(agents.ORACLES) == set(DEFECTS)


@pytest.mark.parametrize("form", range(len(FORMS)))
def test_a_help_text_names_its_commands_and_tools(form: int) -> None:
    for seed in range(20):
        words = dialect(Random(seed), form)
        named = [one.spelled for one in help_text.commands(words.guide)]
        assert {words.show, words.who} <= set(named)
        assert set(words.tools) <= set(help_text.tools(words.guide))


def test_what_a_made_server_lists_is_judged_where_it_is_and_nothing_else() -> None:
    at = {"hidden-text": 1, "orders": 2, "secret-listed": 0}
    guild, seen = agents.look(7, at, acts=False)
    assert {defect for defect in at for one in seen if guild.where(defect) in one[1]} == set(at)
    assert {oracle for oracle, _ in seen} == {one for defect in at for one in agents.ORACLES[defect]}


def test_who_a_caller_is_is_asked_by_a_command_without_a_place_for_a_value() -> None:
    agent = KnownAgent("fern", commands=["set address book <text>", "show address book", "my address"])
    asked = {args[0]["message"] for _, key, args in senders(agent, first=True) if key == "sender/none"}
    assert asked == {"my address"}
