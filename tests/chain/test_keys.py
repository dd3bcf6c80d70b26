"""Keys: which files are taken, and that nothing ever says one."""

from __future__ import annotations

import copy
import getpass
import grp
import json
import os
import pickle
import stat
import traceback
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct
from eth_keyfile.keyfile import create_keyfile_json

from fleet.chain.keys import Secret, address_of, auth_token, create_key, fresh, load_key, personal_sign
from fleet.chain.run_keys import RunKeys
from fleet.errors import ConfigError, Refused

CANARY = bytes.fromhex("c0ffee" * 10 + "1234")
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
FORMS = (CANARY.hex(), CANARY.hex().upper(), repr(CANARY), str(int.from_bytes(CANARY, "big")))


def says_nothing(text: str) -> bool:
    return not any(form in text for form in FORMS)


def key_file(path: Path, content: bytes = CANARY.hex().encode(), mode: int = 0o600) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_secret_has_no_text_form() -> None:
    key = Secret(CANARY)
    for text in (
        repr(key),
        str(key),
        f"{key}",
        f"{key!r:>40}",
        "%s".__mod__(key),
        repr([key]),
        repr(vars(Holder(key))),
    ):
        assert says_nothing(text)
    assert not hasattr(key, "__dict__")
    acts: list[Any] = [json.dumps, pickle.dumps, copy.copy, bytes]
    for act in acts:
        with pytest.raises(TypeError) as caught:
            act(key)
        assert says_nothing(str(caught.value))
    with pytest.raises(TypeError):
        copy.deepcopy(key)


class Holder:
    def __init__(self, key: Secret) -> None:
        self.key = key


@pytest.mark.parametrize("prefix", [b"", b"0x"])
def test_hex_file_is_taken(tmp_path: Path, prefix: bytes) -> None:
    path = key_file(tmp_path / "key", prefix + CANARY.hex().encode() + b"\n")
    assert address_of(load_key(path)) == Account.from_key(CANARY).address.lower()


def test_keystore_is_taken_with_its_password(tmp_path: Path) -> None:
    store = create_keyfile_json(CANARY, b"open sesame", kdf="pbkdf2", iterations=2)
    path = key_file(tmp_path / "key", json.dumps(store).encode())
    with pytest.raises(ConfigError, match="needs its password"):
        load_key(path)
    key_file(tmp_path / "key.password", b"open sesame\n")
    assert load_key(path).reveal() == CANARY
    wrong = key_file(tmp_path / "wrong", b"no")
    with pytest.raises(ConfigError, match="does not open"):
        load_key(path, wrong)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601, 0o777])
def test_mode_that_lets_others_in_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(ConfigError, match="lets others in") as caught:
        load_key(key_file(tmp_path / "key", mode=mode))
    assert "chmod 0600" in caught.value.remedy


def test_symlink_directory_fifo_and_missing_are_refused(tmp_path: Path) -> None:
    key_file(tmp_path / "key")
    (tmp_path / "link").symlink_to(tmp_path / "key")
    (tmp_path / "folder").mkdir(mode=0o700)
    os.mkfifo(tmp_path / "fifo", 0o600)
    said = {
        "link": "symbolic links",
        "folder": "not a regular",
        "fifo": "not a regular",
        "absent": "No such file",
    }
    for name, reason in said.items():
        with pytest.raises(ConfigError, match=f"{name}: .*{reason}"):
            load_key(tmp_path / name)


@ROOT
def test_foreign_owner_is_refused(tmp_path: Path) -> None:
    path = key_file(tmp_path / "key")
    os.chown(path, 12345, 12345)
    with pytest.raises(ConfigError, match="owned by another user"):
        load_key(path)


@pytest.mark.parametrize(
    ("mode", "gid", "words"),
    [
        (0o777, 0, "is writable by everyone"),
        (0o702, 0, "is writable by everyone"),
        pytest.param(0o770, 12345, "is writable by its group", marks=ROOT),
    ],
)
@pytest.mark.parametrize("above", ["", "keys", "state/keys"])
def test_a_key_below_a_folder_that_others_may_write_is_refused(
    tmp_path: Path, above: str, mode: int, gid: int, words: str
) -> None:
    open_folder = tmp_path / "open"
    (open_folder / above).mkdir(mode=0o700, parents=True)
    path = key_file(open_folder / above / "key")
    assert load_key(path).reveal() == CANARY
    open_folder.chmod(mode)
    if gid:
        os.chown(open_folder, -1, gid)
    for act in (lambda: load_key(path), lambda: create_key(path.with_name("new"))):
        with pytest.raises(ConfigError, match=f"{open_folder} above it {words}") as caught:
            act()
        assert caught.value.remedy == f"chmod {'g' if gid else 'o'}-w {open_folder}"
    assert not path.with_name("new").exists()


@ROOT
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o1777])
@pytest.mark.parametrize("above", ["", "keys", "state/keys"])
def test_a_key_below_a_folder_of_another_user_is_refused(tmp_path: Path, above: str, mode: int) -> None:
    theirs = tmp_path / "theirs"
    (theirs / above).mkdir(mode=0o700, parents=True)
    path = key_file(theirs / above / "key")
    theirs.chmod(mode)
    os.chown(theirs, 12345, 12345)
    for act in (lambda: load_key(path), lambda: create_key(path.with_name("new"))):
        with pytest.raises(ConfigError, match=f"{theirs} above it belongs to another user") as caught:
            act()
        remedy = f"move the key below a folder of the fleet's user, or chown {theirs}"
        assert caught.value.remedy == remedy
    assert not path.with_name("new").exists()
    os.chown(theirs, os.geteuid(), -1)
    assert load_key(path).reveal() == CANARY


def test_a_link_on_the_way_hides_no_open_folder(tmp_path: Path) -> None:
    (tmp_path / "open" / "keys").mkdir(mode=0o700, parents=True)
    (tmp_path / "state").symlink_to(tmp_path / "open")
    path = key_file(tmp_path / "state" / "keys" / "key")
    assert load_key(path).reveal() == CANARY
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(ConfigError, match="writable by everyone"):
        load_key(path)


@pytest.mark.parametrize("mode", [0o1777, 0o1770, 0o755, 0o775])
def test_a_sticky_folder_and_ones_own_group_are_no_danger(tmp_path: Path, mode: int) -> None:
    (tmp_path / "shared" / "keys").mkdir(mode=0o700, parents=True)
    (tmp_path / "shared").chmod(mode)
    own = grp.getgrgid((tmp_path / "shared").stat().st_gid)
    if mode == 0o775 and (own.gr_name != getpass.getuser() or set(own.gr_mem) - {own.gr_name}):
        pytest.skip("this user has no group of their own")
    assert load_key(key_file(tmp_path / "shared" / "keys" / "key")).reveal() == CANARY


def test_credentials_directory_sets_its_own_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = key_file(tmp_path / "key", mode=0o440)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert load_key(path).reveal() == CANARY
    (tmp_path / "deeper").mkdir()
    with pytest.raises(ConfigError, match="lets others in"):
        load_key(key_file(tmp_path / "deeper" / "key", mode=0o440))


@pytest.mark.parametrize(
    "content",
    [
        CANARY.hex().encode()[:-1],
        CANARY.hex().encode() + b"00",
        b"zz" + CANARY.hex().encode()[2:],
        b"{" + CANARY.hex().encode(),
        json.dumps([CANARY.hex()]).encode(),
        json.dumps({"version": 3, "crypto": CANARY.hex()}).encode(),
        b"[" * 10_000,
        b"ff" * 32,
        b"00" * 32,
        b"",
        CANARY.hex().encode() * 400,
    ],
)
def test_malformed_key_is_refused_without_a_word_of_it(tmp_path: Path, content: bytes) -> None:
    path = key_file(tmp_path / "key", content)
    key_file(tmp_path / "key.password", b"x")
    with pytest.raises(ConfigError) as caught:
        load_key(path)
    shown = "".join(traceback.format_exception(caught.value)) + caught.value.remedy
    assert says_nothing(shown)
    assert CANARY.hex()[4:20] not in shown


def test_created_key_is_private_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "identity"
    address = create_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert address_of(load_key(path)) == address
    with pytest.raises(ConfigError, match="already exists"):
        create_key(path)
    assert address_of(load_key(path)) == address
    assert [entry.name for entry in tmp_path.iterdir()] == ["identity"]


def test_create_in_a_missing_folder_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        create_key(tmp_path / "absent" / "key")


@pytest.mark.parametrize("route", ["", "gemini"])
def test_token_is_what_eth_account_would_sign(route: str) -> None:
    key = fresh()
    address, stamp, signature = auth_token("localharness-proxy", key, 1_700_000_000, route).split(":")
    message = f"localharness-proxy:{address}:1700000000" + (f":{route}" if route else "")
    assert stamp == "1700000000"
    assert address == address.lower() == address_of(key)
    signable = encode_defunct(text=message)
    assert Account.recover_message(signable, signature=signature).lower() == address
    assert signature == "0x" + bytes(Account.sign_message(signable, key.reveal()).signature).hex()


def test_personal_sign_counts_bytes_not_characters() -> None:
    key = fresh()
    assert Account.recover_message(
        encode_defunct(text="grün ✓"), signature=personal_sign(key, "grün ✓")
    ).lower() == (address_of(key))


def test_run_keys_survive_a_new_process_and_end_without_trace(tmp_path: Path) -> None:
    first = RunKeys(tmp_path / "run")
    addresses = {label: first.new(label) for label in ("caller", "qa-ab12-1")}
    again = RunKeys(tmp_path / "run")
    assert again.labels() == ["caller", "qa-ab12-1"]
    assert again.addresses() == addresses
    assert stat.S_IMODE((tmp_path / "run" / "keys").stat().st_mode) == 0o700
    for path in (tmp_path / "run" / "keys").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert again.destroy() == 2
    assert list((tmp_path / "run").iterdir()) == []
    assert again.destroy() == 0
    assert again.addresses() == {}


def test_destroy_overwrites_before_it_unlinks(tmp_path: Path) -> None:
    keys = RunKeys(tmp_path)
    keys.new("caller")
    with (tmp_path / "keys" / "caller").open("rb") as handle:
        keys.destroy()
        assert handle.read() == b"\0" * 65


def test_destroy_spares_what_links_point_at(tmp_path: Path) -> None:
    keys = RunKeys(tmp_path / "run")
    keys.new("caller")
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    (tmp_path / "run" / "keys" / "soft").symlink_to(precious)
    os.link(precious, tmp_path / "run" / "keys" / "hard")
    keys.destroy()
    assert precious.read_text() == "keep me"


def test_half_written_key_is_no_key_but_is_destroyed(tmp_path: Path) -> None:
    keys = RunKeys(tmp_path)
    keys.new("caller")
    (tmp_path / "keys" / ".caller2.abcdef").write_text(CANARY.hex())
    assert keys.labels() == ["caller"]
    assert keys.destroy() == 2


@pytest.mark.parametrize("label", ["", "../up", "a/b", "A", ".hidden", "a" * 64, "a\n", "ä"])
def test_labels_are_file_names_and_nothing_more(tmp_path: Path, label: str) -> None:
    with pytest.raises(Refused):
        RunKeys(tmp_path).new(label)
    with pytest.raises(Refused):
        RunKeys(tmp_path).get(label)


def test_label_is_taken_once(tmp_path: Path) -> None:
    keys = RunKeys(tmp_path)
    keys.new("caller")
    with pytest.raises(ConfigError, match="already exists"):
        keys.new("caller")


def test_key_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir(mode=0o755)
    with pytest.raises(ConfigError, match="not a private folder"):
        RunKeys(tmp_path).new("caller")


def test_a_key_folder_that_is_a_link_is_neither_read_nor_emptied(tmp_path: Path) -> None:
    """What it leads to belongs to another run, whatever its files are called."""
    (other := RunKeys(tmp_path / "other")).new("a")
    (tmp_path / "run").mkdir()
    keys = RunKeys(tmp_path / "run")
    keys.folder.symlink_to(other.folder)
    assert (keys.labels(), keys.destroy()) == ([], 0)
    assert other.labels() == ["a"]
