"""An operator's file that an editor saved with a byte-order mark: read as without it, or refused by name."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fleet.app.persona_sets import load
from fleet.chain.keys import load_key
from fleet.config import FleetConfig, load_fleet, load_platform
from fleet.config.fleet import StoreSection
from fleet.config.target import load_target
from fleet.errors import FleetError
from fleet.files import ROOT, UnfitFile, read_bounded, read_owned
from fleet.fix.permission.allow_git import FOLDER, permission
from fleet.gate.dial import DialReading, read_dial
from fleet.gate.model import Rung
from fleet.gate.stop import stopped
from fleet.service.notify.receivers import receivers_of
from fleet.store.location import store_place
from fleet.triggers.hooks.secret import private_secret

FP = "0123456789ab"
NOW = datetime(2026, 11, 23, tzinfo=UTC)
PERSONA = """+++
name = "qa-try"
surface = "ux"
summary = "Trial."
tools = ["qa_fetch"]
triggers = [{ every = "6h" }]
budget = { calls = 40, wall = "5m" }
+++
Look at the front page.
"""
PROFILE = f'name = "mine"\n[chain]\nrpc = "http://127.0.0.1:9"\nid = 7\ndiamond = "0x{"d1" * 20}"\n[web]\n'


def put(path: Path, text: str, encoding: str) -> Path:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark = "\ufeff" if encoding.startswith("utf-16") else ""
    path.write_bytes((mark + text).encode(encoding))
    path.chmod(0o600)
    return path


def persona(room: Path, how: str) -> object:
    made = load(put(room / "qa-try.md", PERSONA, how))
    return made.persona, made.body, made.sha256


def settings(room: Path, how: str) -> object:
    return load_fleet(put(room / "fleet.toml", 'platform = "mine"\n', how), {})


def profile(room: Path, how: str) -> object:
    return load_platform("mine", put(room / "devnet/mine.toml", PROFILE, how).parents[1])[0]


def target(room: Path, how: str) -> object:
    text = (ROOT / "config/targets/asc.toml").read_text("utf-8")
    return load_target(str(put(room / "mine.toml", text, how)), room)[0]


def notify(room: Path, how: str) -> object:
    put(room / "keys/notify", "ping http://127.0.0.1:9/x\nntfy://ntfy.sh/topic\n", how)
    made = receivers_of(FleetConfig(), room)
    return made.ping, list(made.by_name)


def key(room: Path, how: str) -> object:
    return load_key(put(room / "keys/identity", "11" * 32 + "\n", how)).reveal()


def secret(room: Path, how: str) -> object:
    return private_secret(put(room / "keys/hook", "a secret of 26 characters\n", how))


def store(room: Path, how: str) -> object:
    put(room / "keys/store", "postgresql://fleet@127.0.0.1/fleet\n", how)
    return store_place(StoreSection(url_file="keys/store"), room)


def stop(room: Path, how: str) -> object:
    put(room / "STOP", "maintenance\n", how)
    found = stopped(room)
    assert found is not None
    return replace(found, since="")


DROPPED = [persona, settings, profile, target, notify, key, secret, store, stop]


@pytest.mark.parametrize("read", DROPPED, ids=lambda one: one.__name__)
def test_it_is_read_as_without_the_mark(tmp_path: Path, read: Callable[[Path, str], object]) -> None:
    assert read(tmp_path, "utf-8-sig") == read(tmp_path, "utf-8")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("read", DROPPED[:-1], ids=lambda one: one.__name__)
def test_utf_16_is_named(tmp_path: Path, read: Callable[[Path, str], object], encoding: str) -> None:
    with pytest.raises(FleetError, match=r"text in UTF-16 \(by its byte-order mark\)"):
        read(tmp_path, encoding)


def test_a_guard_stays_closed_and_names_the_mark(tmp_path: Path) -> None:
    dial = read_dial(put(tmp_path / "autonomy", "propose\n", "utf-8-sig"))
    why = "text behind a byte-order mark (the bytes EF BB BF before the first letter)"
    assert dial == DialReading(Rung.OBSERVE, False, f"autonomy: {why}")
    put(tmp_path / FOLDER / FP, "allow\n", "utf-8-sig")
    found = permission(tmp_path / FOLDER, FP, NOW)
    assert (found.allowed, found.why) == (False, f"{FOLDER}/{FP}: {why}")
    assert read_dial(put(tmp_path / "autonomy", "propose\n", "utf-16-le")).rung is Rung.OBSERVE
    assert put(tmp_path / "STOP", "", "utf-8-sig")
    assert stopped(tmp_path)


@pytest.mark.parametrize("read", [read_owned, read_bounded])
def test_what_is_ours_keeps_every_byte(tmp_path: Path, read: Callable[..., bytes]) -> None:
    for mark in (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        path = tmp_path / "evidence"
        path.write_bytes(mark + b"x")
        assert read(path, 64) == mark + b"x"
    path.write_bytes(codecs.BOM_UTF8 * 2 + b"x")
    assert read(path, 64, mark="drop") == codecs.BOM_UTF8 + b"x"
    with pytest.raises(UnfitFile, match="byte-order mark"):
        read(path, 64, mark="refuse")
