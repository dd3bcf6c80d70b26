"""What runs find and only the holder of a key, who knows its passphrase, reads."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fleet.app.sealed import create_key, opened, public_of
from fleet.cli import app
from fleet.clock import SystemClock
from fleet.config import FleetConfig, LiveConfig
from fleet.config.fleet import KeepSection
from fleet.errors import ConfigError
from fleet.runs.vault import VAULT, Vault
from tests.runs.table import RUN, persona, seated

WORD = "a passphrase for tests"
_KEY = base64.b64encode(b"canary of a private key, line by line, long enough" * 2).decode()
CANARIES = {
    "password": "Tr7Canary0Pw9xQz2Lm",
    "aws": "AKIAQ7WXCANARYZ3P5LT",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.Kq3Canary8vXw0Rt5Yb2Nm7Lp",
    "rsa": f"-----BEGIN RSA PRIVATE KEY-----\n{_KEY}\n-----END RSA PRIVATE KEY-----",
    "x509": f"-----BEGIN CERTIFICATE-----\n{_KEY}x509\n-----END CERTIFICATE-----",
    "database": "dbCanary4Zq8Wv1Xn6",
    "ssh": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{_KEY}ssh\n-----END OPENSSH PRIVATE KEY-----",
    "oauth": "ya29.a0Canary7BxWq3Lz9Vt5Kp1Rn8Mj4",
    "env": "9fCanaryEnv3Xw7Qz1Lp5Vt8",
    "basic": "Y2FuYXJ5OkJhc2ljNXRRejlXeDc=",
}
PAGE = "\n".join(
    (
        f'{{"password": "{CANARIES["password"]}"}}',
        f"key {CANARIES['aws']}",
        f"token {CANARIES['jwt']}",
        CANARIES["rsa"],
        CANARIES["x509"],
        f"postgres://app:{CANARIES['database']}@db.internal:5432/shop",
        CANARIES["ssh"],
        f'{{"access_token": "{CANARIES["oauth"]}"}}',
        f"SECRET_KEY={CANARIES['env']}",
        f"Authorization: Basic {CANARIES['basic']}",
    )
)


@pytest.mark.anyio
async def test_each_kind_of_credential_is_in_the_vault_and_nowhere_else(tmp_path: Path) -> None:
    async def leaks(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "status": 200, "text": PAGE if "leak" in str(args["url"]) else "hello"}

    create_key(key := tmp_path / "key", WORD)
    async with seated(tmp_path, persona(), answer=leaks) as table:
        keep = KeepSection(sealed_for=public_of(key, lambda: WORD))
        session = table.drive.runner.session
        session._world = table.world = replace(table.world, live=LiveConfig(FleetConfig(keep=keep)))
        for page in ("a", "leak", "leak"):
            await session.call("qa_fetch", {"url": f"http://site/{page}"})
        await session.sightings.keep(table.world, RUN)
        said = table.said("credential.sealed")
        vault, state = table.world.vault, table.world.state
    values = [opened(vault.sealed(one.name) or b"", key, lambda: WORD).decode() for one in vault.known()]
    assert [name for name, canary in CANARIES.items() if not any(canary in one for one in values)] == []
    assert {one.name for one in vault.known()} == {one.vault for one in said}
    assert {(one.run, one.place, one.platform) for one in vault.known()} == {(RUN, "web site", "paper")}
    plain = [
        (path, name)
        for path in tmp_path.rglob("*")
        for name, canary in CANARIES.items()
        if path.is_file() and canary.encode() in path.read_bytes()
    ]
    assert plain == []
    assert (state / VAULT).stat().st_mode & 0o777 == 0o700


def test_without_a_key_nothing_is_kept_and_a_value_at_one_place_is_kept_once(tmp_path: Path) -> None:
    create_key(key := tmp_path / "key")
    clock = SystemClock()
    assert Vault(tmp_path, "", clock).keep("p", "r", "web site", "password", "hunter2hunter2") == ""
    assert not (tmp_path / VAULT).exists()
    vault = Vault(tmp_path, public_of(key), clock)
    names = [vault.keep("p", run, "web site", "password", "hunter2hunter2") for run in ("r", "s")]
    assert (names[0], len(vault.known())) == (names[1], 1)
    assert vault.keep("p", "r", "web other", "password", "hunter2hunter2") != names[0]
    assert vault.prune(90, clock.now() + timedelta(days=89)) is None
    record = vault.prune(90, clock.now() + timedelta(days=91))
    assert record is not None
    said = json.loads(record.read_text())
    assert (said["engagement"], said["credentials"], said["by"]) == (["p"], 2, "fleet.toml")
    assert (vault.known(), "hunter2" in record.read_text()) == ([], False)


def command(*words: str, typed: str = "") -> Result:
    return CliRunner().invoke(app, ["runs", "vault", *words], input=typed)


def test_who_opens_one_has_the_file_and_its_passphrase_says_why_and_is_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    create_key(key := tmp_path / "key", WORD)
    create_key(bare := tmp_path / "bare")
    vault = Vault(tmp_path, public_of(key, lambda: WORD), SystemClock())
    name = vault.keep("p", "r", "web site", "password", "hunter2hunter2")
    other = Vault(tmp_path, public_of(bare), SystemClock()).keep("p", "r", "web b", "password", "3hunter3")
    assert {row["name"] for row in json.loads(command("--json").stdout)} == {name, other}
    assert "say why" in str(command(name, "--key", str(key)).exception)
    why = ("--reason", "ticket QA-7")
    assert "vault asks for two" in str(command(other, "--key", str(bare), *why).exception)
    wrong = command(name, "--key", str(key), *why, typed="another\n")
    assert isinstance(wrong.exception, ConfigError)
    assert not (tmp_path / "DECISIONS.md").exists()
    assert "hunter2hunter2" in command(name, "--key", str(key), *why, typed=f"{WORD}\n").stdout
    [line] = [one for one in (tmp_path / "DECISIONS.md").read_text().splitlines() if "opens the cred" in one][
        :1
    ]
    assert name in line
    assert "ticket QA-7" in (tmp_path / "DECISIONS.md").read_text()
    (tmp_path / "DECISIONS.md").unlink()
    (tmp_path / "DECISIONS.md").mkdir()
    refused = command(name, "--key", str(key), *why, typed=f"{WORD}\n")
    assert ("hunter2hunter2" in refused.stdout, "put on record" in str(refused.exception)) == (False, True)
    (tmp_path / "DECISIONS.md").rmdir()
    gone = json.loads(command("--destroy", *why, "--json").stdout)
    assert (gone["destroyed"], vault.known()) == (2, [])
    assert json.loads(Path(gone["record"]).read_text())["why"] == "ticket QA-7"
