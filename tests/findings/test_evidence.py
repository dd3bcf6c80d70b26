from __future__ import annotations

import hashlib
import json
import os
import resource
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.errors import FleetError, TryAgain, UsageError
from fleet.files import disk_errors, read_bounded, write_atomic
from fleet.findings.evidence import Bundle, EvidenceStep, load, path_of, save, seal
from fleet.findings.redact import Redactor

KEY = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"
HASH = "c7e666f164da054d2ca2bd712fb261158473066d414c8cfc33a1b9c7df775fe7"


def bundle(result: dict[str, Any] | None = None, **changes: Any) -> Bundle:
    base: dict[str, Any] = {
        "fingerprint": "0123456789ab",
        "run": "r1",
        "persona": "qa-fuzz",
        "persona_sha256": HASH,
        "probe": "compiler-panic",
        "expectation": "result.outcome != 'panic'",
        "surface": "compiler",
        "severity": "high",
        "title": "compile panics",
        "repro": 'qa_compile(source="enum E{}")',
        "steps": (
            EvidenceStep(tool="qa_compile", args={"source": "enum E{}"}, result=result or {"ok": False}),
        ),
        "confirmed": 3,
        "tries": 3,
        "platform": "devnet",
        "chain_id": 31337,
        "tools": {"fleet": "0.1.0", "bwrap": "0.8.0"},
    }
    return Bundle(**base | changes)


def test_a_bundle_is_canonical_and_hashed() -> None:
    sealed = seal(bundle(), Redactor())
    assert sealed.sha256 == hashlib.sha256(sealed.data).hexdigest()
    record = json.loads(sealed.data)
    assert list(record) == sorted(record)
    assert (record["schema"], record["persona_sha256"], record["chain_id"]) == (1, HASH, 31337)
    assert record["steps"] == [
        {"tool": "qa_compile", "args": {"source": "enum E{}"}, "result": {"ok": False}}
    ]


def test_masking_comes_before_hashing() -> None:
    sealed = seal(bundle({"reply": f"key 0x{KEY}", "tx": "0x" + HASH, "new_field": 1}), Redactor([KEY]))
    result = json.loads(sealed.data)["steps"][0]["result"]
    assert result == {
        "reply": "key 0x[redacted:secret]",
        "tx": "0x" + HASH,
        "new_field": "[redacted:not-public]",
    }
    assert KEY not in seal(bundle(title=f"key {KEY}", repro=KEY), Redactor()).data.decode()
    assert seal(bundle({"reply": f"key 0x{KEY}"}), Redactor([KEY])) == seal(
        bundle({"reply": "key 0x[redacted:secret]"}), Redactor()
    )


def test_numbers_and_text_that_json_cannot_hold_are_written_as_text() -> None:
    sealed = seal(bundle({"value": [2**53, -(2**60), float("nan"), "\ud800", b"x"]}), Redactor())
    value = json.loads(sealed.data)["steps"][0]["result"]["value"]
    assert value == [str(2**53), str(-(2**60)), "nan", "?", "[redacted:unknown-type]"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=8,
    )
)
def test_any_result_can_be_sealed_and_the_order_of_keys_does_not_matter(value: Any) -> None:
    one = seal(bundle({"value": value, "ok": True}), Redactor())
    two = seal(bundle({"ok": True, "value": value}), Redactor())
    assert one == two


def test_stored_evidence_is_private_and_comes_back(tmp_path: Path) -> None:
    sealed = seal(bundle(), Redactor())
    path = save(tmp_path / "evidence", sealed)
    assert path == tmp_path / "evidence" / f"{sealed.sha256}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load(tmp_path / "evidence", sealed.sha256) == json.loads(sealed.data)
    inode = path.stat().st_ino
    assert save(tmp_path / "evidence", sealed).stat().st_ino == inode
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_changed_evidence_is_refused_and_mended_by_saving_again(tmp_path: Path) -> None:
    sealed = seal(bundle(), Redactor())
    path = save(tmp_path, sealed)
    path.write_bytes(sealed.data.replace(b"panics", b"panicz"))
    with pytest.raises(FleetError, match="changed since it was hashed"):
        load(tmp_path, sealed.sha256)
    save(tmp_path, sealed)
    assert load(tmp_path, sealed.sha256)["title"] == "compile panics"


@pytest.mark.parametrize("sha256", ["../" + "a" * 61, "A" * 64, "", "a" * 63, "a" * 64 + "\n"])
def test_only_a_hash_names_evidence(tmp_path: Path, sha256: str) -> None:
    with pytest.raises(UsageError):
        path_of(tmp_path, sha256)


def test_missing_linked_and_piped_evidence_is_an_error(tmp_path: Path) -> None:
    sealed = seal(bundle(), Redactor())
    with pytest.raises(UsageError, match="no evidence"):
        load(tmp_path, sealed.sha256)
    other = tmp_path / "other"
    other.write_bytes(sealed.data)
    path = path_of(tmp_path, sealed.sha256)
    path.symlink_to(other)
    with pytest.raises(FleetError):
        load(tmp_path, sealed.sha256)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FleetError):
        load(tmp_path, sealed.sha256)


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_atomic(target, b"old")
    blocked = tmp_path / "folder"
    (blocked / "inner").mkdir(parents=True)
    with pytest.raises(FleetError), disk_errors(blocked):
        write_atomic(blocked, b"new")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]
    assert read_bounded(target, 3) == b"old"
    with pytest.raises(OSError, match="larger than 2"):
        read_bounded(target, 2)


def test_a_full_disk_says_so_and_keeps_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_atomic(target, b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))  # stands in for a full disk: EFBIG
    try:
        with pytest.raises(TryAgain, match="no space left"), disk_errors(target):
            write_atomic(target, b"x" * 5_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]
