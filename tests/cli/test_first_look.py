"""Before a look: whose word is needed for which hosts, and a profile that a person changed stands."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from fleet.app.discovery.discover import Discovery, FoundSite, NamedTargets
from fleet.app.discovery.json_rpc import FoundContract, FoundNode
from fleet.app.discovery.profile import ProfileContext
from fleet.cli import app
from fleet.cli.first_look import authorised, foreign_hosts, is_unchanged, read_profile, write_profile
from fleet.cli.look import LookPlan, coverage
from fleet.config import Platform
from fleet.config.authorisation import AuthorisationSection
from fleet.errors import Refused, UsageError
from fleet.gate.model import Rung
from fleet.runs.desk.coverage import Coverage
from fleet.runs.desk.state import Plan

A, B = "a.example", "b.example:8443"
WORD = AuthorisationSection(by="ada@office", on="2026-11-27", hosts=(A,))
KNOWN, UNKNOWN = Platform(name="x", authorisation=WORD), Platform(name="x")

CONSENT = {
    # hosts, earlier profile, --yes-i-may, on a terminal, answer: hosts of the word, None for refused
    "our own": ((), None, False, False, "", ()),
    "no terminal": ((A,), None, False, False, "", None),
    "no terminal, an earlier profile without a word": ((A,), UNKNOWN, False, False, "", None),
    "--yes-i-may": ((A,), None, True, False, "", (A,)),
    "said yes": ((A,), None, False, True, "y", (A,)),
    "said no": ((A,), None, False, True, "n", None),
    "said nothing": ((A,), None, False, True, "", None),
    "asked once": ((A,), KNOWN, False, False, "", (A,)),
    "one host more": ((A, B), KNOWN, False, False, "", None),
    "one host more, said yes": ((A, B), KNOWN, False, True, "y", (A, B)),
}


@pytest.mark.parametrize(
    ("hosts", "earlier", "yes", "terminal", "answer", "granted"), CONSENT.values(), ids=CONSENT
)
def test_a_host_outside_needs_a_persons_word_once(
    hosts: tuple[str, ...],
    earlier: Platform | None,
    yes: bool,
    terminal: bool,
    answer: str,
    granted: tuple[str, ...] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: terminal)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: answer == "y")
    if granted is None:
        with pytest.raises(Refused) as refused:
            authorised(hosts, earlier, yes=yes)
        assert refused.value.exit_code == 5
        return
    assert authorised(hosts, earlier, yes=yes).hosts == granted


@pytest.mark.anyio
async def test_hosts_are_judged_by_their_addresses() -> None:
    words = ["http://127.0.0.1:8000", "localhost", "10.0.0.1", "http://8.8.8.8", "https://1.1.1.1:8443/x"]
    assert await foreign_hosts(NamedTargets.of(words)) == ("8.8.8.8", "1.1.1.1:8443")


def test_a_profile_is_written_again_until_a_person_changes_it(tmp_path: Path) -> None:
    path, context = tmp_path / "platforms" / "x.toml", ProfileContext("x", "fleet look", "2026-11-27", WORD)
    found = Discovery(sites=(FoundSite(origin="http://127.0.0.1:8000", how="GET answered 200"),))
    assert is_unchanged(path)
    write_profile(path, found, context)
    assert is_unchanged(path)
    read = read_profile(path)
    assert read is not None
    assert (read.web.site, read.authorisation) == ("http://127.0.0.1:8000", WORD)
    path.write_text(path.read_text().replace("# act_paths", "act_paths"))
    assert not is_unchanged(path)


def test_a_contract_s_own_abi_stands_in_the_profile(tmp_path: Path) -> None:
    found = Discovery(
        node=FoundNode(rpc="http://127.0.0.1:8545", id=7, how="asked"),
        contract=FoundContract(address="0x" + "ab" * 20, how="named"),
    )
    for abi in ("/tmp/a b.json", ""):
        context = ProfileContext("x", "fleet look", "2026-11-27", AuthorisationSection(), abi=abi)
        write_profile(tmp_path / "x.toml", found, context)
        read = read_profile(tmp_path / "x.toml")
        assert read is not None
        assert (read.chain.abi, read.chain.diamond) == (abi, "0x" + "ab" * 20)


@pytest.mark.parametrize("command", ["look", "init"])
@pytest.mark.parametrize(
    ("words", "text", "why"),
    [
        (
            ("127.0.0.1:1",),
            '[{"name": "a", "inputs": [], "stateMutability": "view"}]',
            "--abi is a contract's",
        ),
        (("0x" + "ab" * 20, "127.0.0.1:1"), "{}", "not an ABI in JSON"),
    ],
)
def test_an_abi_is_that_of_a_contract(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    text: str,
    why: str,
    command: str,
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    (tmp_path / "a.json").write_text(text)
    done = CliRunner().invoke(app, [command, *words, "--abi", str(tmp_path / "a.json")])
    assert why in str(done.exception)


@pytest.mark.parametrize(
    ("hosts", "contact", "comment"),
    [((), "", ""), ((), "qa@a.example", " (qa@a.example)"), ((A,), "qa@a.example", " (qa@a.example)")],
)
def test_who_asks_stands_in_the_user_agent(hosts: tuple[str, ...], contact: str, comment: str) -> None:
    assert authorised(hosts, None, yes=True, contact=contact).comment == comment
    assert "@" in authorised((A,), None, yes=True).contact
    with pytest.raises(UsageError):
        authorised((), None, yes=True, contact="a)\r\nx: y")


def test_a_part_that_was_not_looked_at_is_named_with_its_reason(tmp_path: Path) -> None:
    """Such as the cases of an API, in an installation without the extra that makes them."""
    why = Coverage.of(Plan(()), "", {"explorer api": "not installed: schemathesis"}).as_data()
    run = {"persona": "qa-security", "calls": 3, "coverage": why}
    plan = LookPlan(NamedTargets.of(["http://127.0.0.1:8000"]), tmp_path, 5, Rung.OBSERVE, ("qa-security",))
    assert "Not looked at: explorer api: not installed: schemathesis." in coverage([run], (), plan)
