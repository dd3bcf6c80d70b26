"""What runs find and only the holder of a key, who knows its passphrase, reads."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pyrage
import pytest
from anyio import from_thread
from pyrage import x25519
from typer.testing import CliRunner, Result

from fleet.app.sealed import create_key, opened, public_of
from fleet.app.storage import encrypted_by, require_encrypted, stale_keys
from fleet.cli import app
from fleet.clock import SystemClock
from fleet.config import FleetConfig, LiveConfig
from fleet.config.fleet import KeepSection
from fleet.errors import ConfigError
from fleet.findings.evidence import EvidenceStep
from fleet.findings.levels import EVIDENCE
from fleet.findings.personal import HELD
from fleet.runs.proof.verify import keep_evidence
from fleet.runs.vault import VAULT, Vault
from fleet.store.rows import FindingRow
from tests.findings.test_personal import corpus
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


def read(vault: Vault, key: Path) -> list[tuple[str, str]]:
    """The kind and the text of all that is sealed, by a key that needs no passphrase."""
    identity = x25519.Identity.from_str(key.read_text().strip())
    return [
        (one.kind, pyrage.decrypt(vault.sealed(one.name) or b"", [identity]).decode())
        for one in vault.known()
    ]


@pytest.mark.anyio
async def test_each_kind_of_credential_is_in_the_vault_and_nowhere_else(tmp_path: Path) -> None:
    async def leaks(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "status": 200, "text": PAGE if "leak" in str(args["url"]) else "hello"}

    public = create_key(key := tmp_path / "key")
    async with seated(tmp_path, persona(), answer=leaks) as table:
        keep = KeepSection(sealed_for=public)
        session = table.drive.runner.session
        session._world = table.world = replace(table.world, live=LiveConfig(FleetConfig(keep=keep)))
        for page in ("a", "leak", "leak"):
            await session.call("qa_fetch", {"url": f"http://site/{page}"})
        await session.sightings.keep(table.world, RUN)
        said = table.said("credential.sealed")
        vault, state = table.world.vault, table.world.state
    values = [text for _, text in read(vault, key)]
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


@pytest.mark.anyio
async def test_answers_that_come_at_once_are_all_sealed(tmp_path: Path) -> None:
    """As those of the first looks at several targets do; sealing is in a thread, and takes its time."""

    async def leaks(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "status": 200, "text": f"token ghp_{str(args['url'])[-1] * 36}"}

    public = create_key(key := tmp_path / "key")
    async with seated(tmp_path, persona(), answer=leaks) as table:
        keep = KeepSection(sealed_for=public)
        session = table.drive.runner.session
        session._world = table.world = replace(table.world, live=LiveConfig(FleetConfig(keep=keep)))
        async with anyio.create_task_group() as tasks:
            for page in "abc":
                tasks.start_soon(session.call, "qa_fetch", {"url": f"http://site/{page}"})
        vault = table.world.vault
    values = {text for _, text in read(vault, key)}
    assert values == {f"ghp_{page * 36}" for page in "abc"}


@pytest.mark.anyio
async def test_stop_in_mid_sealing_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def leaks(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "status": 200, "text": PAGE}

    public = create_key(key := tmp_path / "key")
    async with seated(tmp_path, persona(), answer=leaks) as table:
        session = table.drive.runner.session
        keep = KeepSection(sealed_for=public)
        session._world = table.world = replace(table.world, live=LiveConfig(FleetConfig(keep=keep)))
        with anyio.CancelScope() as stop:
            monkeypatch.setattr(Vault, "keep", once(stop, Vault.keep))
            await session.call("qa_fetch", {"url": "http://site/leak"})
        assert stop.cancel_called
        vault = table.world.vault
    found = "".join(text for _, text in read(vault, key))
    assert [name for name, canary in CANARIES.items() if canary not in found] == []


def once(stop: anyio.CancelScope, keep: Callable[..., str]) -> Callable[..., str]:
    """`keep`, whose first call is when the run is told to stop."""

    def kept(*args: Any) -> str:
        if not stop.cancel_called:
            from_thread.run_sync(stop.cancel)
        return keep(*args)

    return kept


def test_without_a_key_nothing_is_kept_and_a_value_at_one_place_is_kept_once(tmp_path: Path) -> None:
    create_key(key := tmp_path / "key")
    clock = SystemClock()
    assert Vault(tmp_path, "", clock).keep("p", "r", "web site", "password", "hunter2hunter2") == ""
    assert not (tmp_path / VAULT).exists()
    vault = Vault(tmp_path, public_of(key), clock)
    names = [vault.keep("p", run, "web site", "password", "hunter2hunter2") for run in ("r", "s")]
    assert (names[0], len(vault.known())) == (names[1], 1)
    assert vault.keep("p", "r", "web other", "password", "hunter2hunter2") != names[0]
    vault.keep("p", "r", "web site", "card", "4539 1488 0343 6467")
    assert vault.prune(90, 1095, clock.now() + timedelta(days=89)) is None
    record = vault.prune(90, 1095, clock.now() + timedelta(days=91))
    assert record is not None
    said = json.loads(record.read_text())
    assert (said["engagement"], said["credentials"], said["by"]) == (["p"], 2, "fleet.toml")
    assert ([one.kind for one in vault.known()], "hunter2" in record.read_text()) == (["card"], False)
    assert vault.prune(90, 1095, clock.now() + timedelta(days=1096)) is not None
    assert vault.known() == []


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


def test_two_persons_open_it_together_neither_alone_and_the_escrow_instead_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    words = {"first": WORD, "second": WORD, "escrow": "", "new": ""}  # a passphrase is a second of hashing
    publics = {name: create_key(tmp_path / name, word) for name, word in words.items()}
    clock = SystemClock()
    vault = Vault(tmp_path, publics["first"], clock, second=publics["second"], escrow=publics["escrow"])
    name = vault.keep("p", "r", "web site", "password", "hunter2hunter2")
    [known] = vault.known()
    assert (known.level, known.why, known.persons) == ("restricted", "a credential", 2)
    sealed = vault.sealed(name) or b""
    with pytest.raises(ConfigError, match="not for this key"):
        opened(sealed, tmp_path / "first", lambda: WORD)
    files = {who: (tmp_path / who).read_bytes() for who in words}
    keys = {
        who: x25519.Identity.from_str(
            (pyrage.passphrase.decrypt(files[who], WORD) if word else files[who]).decode().strip()
        )
        for who, word in words.items()
    }
    for alone in ("first", "second"):
        with pytest.raises(pyrage.DecryptError):
            pyrage.decrypt(pyrage.decrypt(sealed, [keys[alone]]), [keys[alone]])
    for outer, inner in (("second", "first"), ("escrow", "escrow")):
        assert pyrage.decrypt(pyrage.decrypt(sealed, [keys[outer]]), [keys[inner]]) == b"hunter2hunter2"
    why = ("--reason", "ticket QA-7")
    first, second = ("--key", str(tmp_path / "first")), ("--key", str(tmp_path / "second"))
    assert "for two persons" in str(command(name, *first, *why).exception)
    assert "hunter2hunter2" in command(name, *first, *second, *why, typed=f"{WORD}\n{WORD}\n").stdout
    (tmp_path / "fleet.toml").write_text(f'[keep]\nsealed_for = "{publics["new"]}"\n')
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(tmp_path))
    said = command("--reseal", *first, *second, *why, typed=f"{WORD}\n{WORD}\n")
    assert "sealed anew: 1" in said.stdout
    assert pyrage.decrypt(vault.sealed(name) or b"", [keys["new"]]) == b"hunter2hunter2"
    assert "seals 1 value anew" in (tmp_path / "DECISIONS.md").read_text()


@pytest.mark.anyio
async def test_data_of_people_is_sealed_masked_everywhere_and_drafted_for_who_ordered_the_tests(
    tmp_path: Path,
) -> None:
    rows = [(kind, text) for kind, texts in corpus().items() if kind in HELD for text in texts]

    async def shows(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        text = rows[int(str(args["url"]).rpartition("/")[2])][1]
        return {"ok": True, "status": 200, "text": f"<p>Ada</p>\n{text}\n<p>end</p>"}

    public = create_key(key := tmp_path / "key")
    async with seated(tmp_path, persona(), answer=shows) as table:
        keep = KeepSection(sealed_for=public)
        session = table.drive.runner.session
        session._world = table.world = replace(table.world, live=LiveConfig(FleetConfig(keep=keep)))
        for at in range(0, len(rows), 2):  # half of them: each costs a slow hash
            await session.call("qa_fetch", {"url": f"http://site/{at}"})
        await session.sightings.keep(table.world, RUN)
        vault, record = table.world.vault, (table.folder / "trajectory.jsonl").read_text()
        drafts = [path.read_text() for path in (table.folder / "drafts").iterdir()]
        facts = "".join((await table.world.journal.facts("")).values())
    shown = rows[::2]
    asked = dict(read(vault, key))
    assert asked.keys() == {kind for kind, _ in shown}
    for kind, text in shown:
        assert text not in record, kind
        assert text not in facts, kind
    [draft] = drafts
    assert "- Risk: critical" in draft
    assert "PCI DSS" in draft
    assert not any(text in draft for _, text in shown)


def test_a_folder_is_on_an_encrypted_disk_or_not(tmp_path: Path) -> None:
    blocks, mounts = tmp_path / "class" / "block", tmp_path / "mountinfo"
    for name, uuid, below in (
        ("sda1", "", ()),
        ("sdb1", "", ()),
        ("dm-0", "CRYPT-LUKS2-0123-crypt", ("sda1",)),
        ("dm-1", "LVM-abc", ("dm-0",)),
        ("dm-2", "LVM-def", ("dm-0", "sdb1")),
    ):
        (blocks / name / "slaves").mkdir(parents=True)
        for one in below:
            (blocks / name / "slaves" / one).touch()
        if uuid:
            (blocks / name / "dm").mkdir()
            (blocks / name / "dm" / "uuid").write_text(uuid)
    for device, found in (("dm-0", "dm-0"), ("dm-1", "dm-0"), ("dm-2", ""), ("sda1", ""), ("overlay", "")):
        source = device if device == "overlay" else f"/dev/{device}"
        mounts.write_text(f"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / {tmp_path} rw - ext4 {source} rw\n")
        assert encrypted_by(tmp_path / "state", sys=tmp_path, mounts=mounts) == found
    with pytest.raises(ConfigError, match="no disk that dm-crypt encrypts"):
        require_encrypted(KeepSection(encrypted=True), tmp_path / "class")
    require_encrypted(KeepSection(), tmp_path)


def test_keys_are_changed_each_quarter() -> None:
    public, day = f"age1{'q' * 58}", date(2026, 11, 29)
    for keep, says in (
        (KeepSection(), ""),
        (KeepSection(sealed_for=public), "keep.keys_since does not say since when they are in use"),
        (KeepSection(sealed_for=public, keys_since=day - timedelta(days=90)), ""),
        (
            KeepSection(sealed_for=public, keys_since=day - timedelta(days=91)),
            "in use for 91 days, more than 90",
        ),
    ):
        assert stale_keys(keep, day) == says


SOURCE = "#!/bin/sh\n# the heart of our product, canary-of-a-source"


@pytest.mark.anyio
@pytest.mark.parametrize("sealed", [True, False])
async def test_a_confidential_text_is_in_the_vault_alone_and_evidence_says_how_sensitive_it_is(
    tmp_path: Path, sealed: bool
) -> None:
    async def shows(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        text = "Company Confidential\n" + SOURCE if str(args["url"]).endswith("plan") else SOURCE
        return {"ok": True, "status": 200, "text": text}

    public = create_key(key := tmp_path / "key")
    keep = KeepSection(sealed_for=public if sealed else "")
    async with seated(tmp_path, persona(), answer=shows) as table:
        session = table.drive.runner.session
        session._world = table.world = replace(table.world, live=LiveConfig(FleetConfig(keep=keep)))
        for path in ("plan", "backup.sql"):
            await session.call("qa_fetch", {"url": f"http://site/{path}"})
        steps = (
            EvidenceStep(
                tool="qa_fetch",
                args={"url": "http://site/backup.sql"},
                result={"ok": True, "status": 200, "text": SOURCE},
            ),
        )
        row = cast(
            Any, SimpleNamespace(**dict.fromkeys(FindingRow.__dataclass_fields__, "") | {"run_id": RUN})
        )
        keep_evidence(table.world, row, persona(), expectation="", steps=steps, rate=(3, 3))
        [bundle] = (table.folder / "evidence").glob("*.json")
        said, record = json.loads(bundle.read_text()), (table.folder / "trajectory.jsonl").read_text()
        vault = table.world.vault
    assert (said["level"], said["level_why"]) == EVIDENCE
    assert ("canary-of-a-source" in bundle.read_text()) is not sealed
    assert ("canary-of-a-source" in record) is not sealed
    values = dict(read(vault, key))
    whole = {"trade-secret": f"Company Confidential\n{SOURCE}", "file": SOURCE}
    assert values == (whole if sealed else {})
