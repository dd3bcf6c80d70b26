"""The commands around the main job, as a user runs them."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fleet.cli import COMMANDS, HIDDEN
from fleet.cli.devnet import kept_ports
from tests.e2e.conftest import Fleet, processes_of

pytestmark = [pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(240)]


def test_help_names_every_command(fleet: Fleet) -> None:
    said = fleet("--help")
    assert said.code == 0
    assert [name for name in COMMANDS if f"  {name} " not in said.out] == [*HIDDEN]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help(fleet: Fleet, name: str) -> None:
    said = fleet(name, "--help")
    assert said.code == 0
    assert "Usage: fleet" in said.out


def test_a_fresh_fleet_is_at_observe(fleet: Fleet) -> None:
    got = fleet("status", "--json").data
    assert (got["dial"]["rung"], got["stop"], got["runs"]) == ("observe", "", [])


def test_raising_the_dial_needs_a_reason_and_is_remembered(fleet: Fleet) -> None:
    refused = fleet("dial", "exercise")
    assert refused.code == 2
    assert "needs a reason" in refused.err
    assert (
        fleet("dial", "exercise", "--reason", "first night", "--dry-run", "--json").data["rung"] == "observe"
    )
    assert fleet("dial", "exercise", "--reason", "first night").code == 0
    dial = fleet("status", "--json").data["dial"]
    assert (dial["rung"], dial["why"], dial["trusted"]) == ("exercise", "first night", True)
    assert "@" in dial["who"]
    assert dial["when"].endswith("Z")
    assert fleet("dial", "observe", "--json").data["rung"] == "observe"


def test_an_unknown_rung_lists_the_known_ones(fleet: Fleet) -> None:
    said = fleet("dial", "EXERCISE!!", "--reason", "x")
    assert said.code == 2
    assert "observe, exercise, propose" in said.err


def test_stop_is_shown_and_survives_a_second_stop(fleet: Fleet) -> None:
    assert fleet("stop", "--reason", "one").code == 0
    assert fleet("stop", "--reason", "two").code == 0
    assert "one" in fleet("status", "--json").data["stop"]


def test_the_plan_of_a_run_follows_the_dial(fleet: Fleet) -> None:
    rows = fleet("run", "qa-smoke", "--dry-run", "--json").data
    assert {row["probe"]: row["would run"] for row in rows}["whole-path"] == "no: the dial is at observe"
    assert {row["probe"]: row["would run"] for row in rows}["site-up"] == "yes"


def test_personas_are_listed_and_good(fleet: Fleet) -> None:
    names = {row["name"] for row in fleet("personas", "list", "--json").data}
    looking = {"qa-fuzz", "qa-mcp", "qa-pay", "qa-perf", "qa-registry", "qa-security", "qa-smoke", "qa-ux"}
    assert names == looking | {"qa-fix", "qa-retest", "qa-triage", "qa-watch"}
    assert fleet("personas", "check", "--json").data["ok"] is True


def test_a_scaffolded_persona_is_valid_as_it_stands(fleet: Fleet, tmp_path: Path) -> None:
    made = fleet("personas", "new", "qa-mine", "--dry-run")
    (tmp_path / "qa-mine.md").write_text(made.out)
    assert fleet("personas", "check", str(tmp_path), "--json").data["personas"] == ["qa-mine"]


def test_doctor_says_that_everything_holds(devnet: Fleet) -> None:
    said = devnet("check", "machine", "--json")
    assert said.code == 0, said.out
    got = {row["check"]: row["ok"] for row in said.data["checks"]}
    assert [got[name] for name in ("jail", "platform", "keys", "personas")] == [True] * 4
    assert len([name for name in got if name.startswith("jail: ")]) >= 7
    seen = {row["check"]: row["seen"] for row in said.data["checks"]}
    assert seen["compiler"] == "[compiler] sample: accepted"
    assert seen["loader"] == "the module of [compiler] sample: accepted"
    names = [name for name in got if not name.startswith("jail: ")]
    assert names == [
        "jail",
        "escape battery",
        "classes of impact",
        "platform",
        "mcp",
        "payments",
        "registry",
        "site",
        "faces",
        "proxy",
        "compiler",
        "loader",
        "keys",
        "balance of identity",
        "balance of sponsor",
        "store",
        "disk",
        "encryption of the disk",
        "keys of what is sealed",
        "clock",
        "browser",
        "state directory",
        "dial",
        "personas",
        "measurements",
        "installation",
        "known vulnerabilities",
    ]
    assert re.match(r"0x[0-9a-f]{40} has 1000 coins; a name costs at most ", seen["balance of sponsor"])
    assert said.data["next"].startswith("fleet run qa-smoke --dry-run")


def profile_with(shared: Path, name: str, old: str, new: str) -> None:
    """The devnet's profile under another name, with one thing changed."""
    text = (shared / "devnet" / "devnet.toml").read_text()
    assert text.count(old) >= 1
    changed = text.replace('name = "devnet"', f'name = "{name}"').replace(old, new)
    (shared / "devnet" / f"{name}.toml").write_text(changed)


def test_a_compiler_that_cannot_start_is_told_as_ours(devnet: Fleet, shared: Path) -> None:
    profile_with(shared, "lost", "/opt/tc/rustlite", "/opt/tc/nowhere")
    said = devnet("check", "machine", "--json", "--platform", "lost")
    assert said.code == 4
    bad = {row["check"]: row["seen"] for row in said.data["checks"] if not row["ok"]}
    assert set(bad) == {"compiler", "loader"}
    assert bad["compiler"].startswith("could not look: ")
    assert "can't open file '/opt/tc/nowhere'" in bad["compiler"]
    said = devnet("check", "config", "--platform", "lost")
    assert said.code == 3
    assert "lost.toml: compiler.command: " in said.err


def test_config_check_tries_the_sample(devnet: Fleet, shared: Path) -> None:
    said = devnet("check", "config", "--json")
    assert said.code == 0, said.err
    assert said.data["programs"]["compiler"] == "[compiler] sample: accepted"
    profile_with(shared, "unsound", "fn frame(t: i32)", "fn frame(t: i32")
    said = devnet("check", "config", "--platform", "unsound")
    assert said.code == 3
    assert "[compiler] sample was expected to be accepted: clean_error: LH" in said.err


def test_without_a_jail_config_check_says_what_it_did_not_check(devnet: Fleet, shared: Path) -> None:
    tools = shared / "bin"
    tools.mkdir()
    (tools / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (tools / "bwrap").chmod(0o755)
    said = devnet("check", "config", "--json", env={"PATH": f"{tools}:/usr/bin:/bin"})
    assert said.code == 0, said.err
    assert said.data["programs"]["compiler"].startswith("not checked: no jail could be made")


def test_doctor_without_a_platform_says_what_is_missing(fleet: Fleet) -> None:
    said = fleet("check", "machine", "--json")
    assert said.code == 4
    bad = {row["check"]: row["seen"] for row in said.data["checks"] if not row["ok"]}
    assert "fleet devnet up" in bad["platform"]
    assert {bad[name] for name in ("pages", "programs", "balances", "clock")} == {
        "not looked at: see platform"
    }
    assert said.data["next"] == "fleet check machine, once the first NO is put right"


def test_one_persona_finds_proves_posts_and_is_ranked(devnet: Fleet, shared: Path) -> None:
    said = devnet("run", "qa-ux", "--json")
    assert said.code == 1, said.err
    found = {row["probe"]: row["state"] for row in said.data["findings"]}
    assert found == dict.fromkeys(
        ("method-405", "os-error-leak", "confusing-copy", "a11y-violations"), "posted"
    )
    before = len(devnet("items", "log", "list", "--json").data)
    items = devnet("items", "--json").data  # it triages by itself, and posts nothing
    assert len(items) == 4
    assert len(devnet("items", "log", "list", "--json").data) == before
    assert devnet("run", "qa-triage").code == 0
    assert [one["fingerprint"] for one in devnet("items", "--json").data] == [
        one["fingerprint"] for one in items
    ]
    entries = devnet("items", "log", "list", "--json").data
    assert [row["grammar"] for row in entries] == ["canonical"] * 5
    shown = devnet("items", "show", items[0]["fingerprint"][:6], "--json").data
    assert shown["evidence_bundle"]["confirmed"] == 3
    assert f"sha256:{shown['evidence']}" in shown["envelope"]
    again = devnet("run", "qa-ux", "--json")
    assert {row["state"] for row in again.data["findings"]} == {"repeated"}
    look = devnet("items", "verify", items[0]["fingerprint"][:6], "--json")
    assert (look.code, look.data["verdict"], look.data["why"]) == (1, "shown", "")
    (seen,) = (one for one in devnet("items", "--json").data if one["rank"] == 1)
    assert (seen["fingerprint"], seen["count"]) == (items[0]["fingerprint"], 1)
    assert len(devnet("items", "log", "list", "--json").data) == 5
    assert not [line for line in processes_of(shared) if "bwrap" in line]


def test_a_persona_is_published_only_when_the_dial_allows_it(devnet: Fleet) -> None:
    refused = devnet("personas", "publish", "qa-ux")
    assert refused.code == 5
    assert "the dial is at observe" in refused.err
    assert devnet("dial", "exercise", "--reason", "publish").code == 0
    try:
        first = devnet("personas", "publish", "qa-ux", "--json").data
        second = devnet("personas", "publish", "qa-ux", "--json").data
    finally:
        assert devnet("dial", "observe").code == 0
    assert first["id"] == second["id"] > 0
    assert first["bytes"] > 100


def test_no_secret_is_in_any_output_or_record(devnet: Fleet, shared: Path) -> None:
    secrets = [(shared / "keys" / name).read_text().strip() for name in ("identity", "sponsor")]
    devnet("run", "qa-security")
    for path in shared.rglob("*"):
        if path.is_file() and path.parent.name != "keys" and "chain" not in path.name:
            data = path.read_bytes()
            assert not [path for secret in secrets if secret.encode() in data], path
    assert not [line for line in processes_of(shared) if any(secret in line for secret in secrets)]


def test_devnet_up_twice_is_one_devnet(devnet: Fleet) -> None:
    first = devnet("devnet", "up", "--json")
    assert "already up" in first.err
    assert json.loads(first.out)["chain"].startswith("http://127.0.0.1:")


def test_a_devnet_keeps_its_addresses_unless_they_are_taken(devnet: Fleet, shared: Path) -> None:
    first = devnet("devnet", "up", "--json").data
    assert devnet("devnet", "down").code == 0
    port = urlsplit(first["platform"]).port
    with socket.create_server(("127.0.0.1", port or 0)):
        assert kept_ports(shared / "devnet") == (urlsplit(first["chain"]).port, 0)
    second = devnet("devnet", "up", "--json").data
    assert (second["chain"], second["platform"]) == (first["chain"], first["platform"])


def test_a_fleet_that_has_not_run_has_no_candidates_and_has_learned_nothing(fleet: Fleet) -> None:
    assert fleet("items", "candidates", "--json").data == []
    assert "everything is filed" in fleet("items", "candidates").err
    assert fleet("personas", "learned", "--platform", "example", "--json").data == []
    said = fleet("personas", "forget", "abc", "--platform", "example")
    assert said.code == 2
    assert "no learned probe begins with 'abc'" in said.err
