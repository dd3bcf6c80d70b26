"""Private keys: strictly checked files, no text form, used only to sign.

No message in this module contains file content: a malformed key is still a key.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import re
import stat
from pathlib import Path
from typing import NoReturn

from coincurve import PrivateKey, PublicKey

from fleet import files
from fleet.chain.node.digest import keccak256
from fleet.chain.node.recursion_limit import recursion_limit_kept
from fleet.errors import ConfigError

MAX_KEY_FILE = 16_384
"""Bytes; a keystore has about 500."""

_HEX_KEY = re.compile(rb"(?:0x)?([0-9a-fA-F]{64})")


class Secret:
    """A 32-byte private key without a text form: no repr, str, format, pickle, copy or JSON reveals it."""

    __slots__ = ("__key",)

    def __init__(self, raw: bytes) -> None:
        try:
            self.__key = PrivateKey(raw)
        except ValueError:
            raise ValueError("not a private key of secp256k1") from None

    def reveal(self) -> bytes:
        """The raw key; call this only in the expression that writes a key file."""
        return self.__key.secret

    def sign(self, digest: bytes) -> bytes:
        """r + s + recovery id (65 bytes) over a 32-byte digest; deterministic (RFC 6979), low s."""
        return self.__key.sign_recoverable(digest, hasher=None)

    @property
    def public(self) -> PublicKey:
        """The public half."""
        return self.__key.public_key

    def __repr__(self) -> str:
        return "Secret(***)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret is never copied or serialised")


def fresh() -> Secret:
    """A new random key from the operating system."""
    while True:
        try:
            return Secret(os.urandom(32))
        except ValueError:  # zero or not below the group order: once in 2**128
            continue


def address_of(key: Secret) -> str:
    """The address that this key controls, lower-case."""
    return public_address(key.public)


def public_address(public: PublicKey) -> str:
    """The address of a public key, lower-case."""
    return "0x" + keccak256(public.format(compressed=False)[1:])[12:].hex()


def personal_sign(key: Secret, message: str) -> str:
    """EIP-191 signature of a text: `0x` + r + s + v with v 27 or 28 and low s."""
    text = message.encode("utf-8")
    digest = keccak256(b"\x19Ethereum Signed Message:\n%d" % len(text) + text)
    signature = key.sign(digest)
    return "0x" + signature[:64].hex() + bytes([signature[64] + 27]).hex()


def personal_signer(message: str, signature: str) -> str:
    """The address whose key made an EIP-191 signature of this text, lower-case; "" for no signature."""
    text = message.encode("utf-8")
    digest = keccak256(b"\x19Ethereum Signed Message:\n%d" % len(text) + text)
    try:
        raw = bytes.fromhex(signature.removeprefix("0x"))
        rid = raw[64] - 27 if raw[64] >= 27 else raw[64]
        public = PublicKey.from_signature_and_message(raw[:64] + bytes([rid]), digest, hasher=None)
    except (ValueError, IndexError):
        return ""
    return public_address(public)


def auth_token(scope: str, key: Secret, ts: int, route: str = "") -> str:
    """A call token `<addr>:<ts>:<0xsig>` over `<scope>:<addr>:<ts>[:<route>]` (platform-facts 1.7)."""
    address = address_of(key)
    tail = f":{route}" if route else ""
    return f"{address}:{ts}:{personal_sign(key, f'{scope}:{address}:{ts}{tail}')}"


def load_key(path: Path, password_file: Path | None = None) -> Secret:
    """A key from a 64-hex file or a keystore v3; ConfigError when file, owner, mode or content is wrong.

    The password of a keystore is read from `password_file`, by default the key's path
    with `.password` added, under the same rules as the key.
    """
    raw = read_private(path)
    match = _HEX_KEY.fullmatch(raw.strip())
    if match:
        return _secret(bytes.fromhex(match[1].decode()), path)
    try:
        keystore = json.loads(raw)
    except (ValueError, RecursionError):
        raise _bad(path, "neither 64 hex digits nor a keystore") from None
    if not isinstance(keystore, dict):
        raise _bad(path, "neither 64 hex digits nor a keystore")
    return _unlock(keystore, path, password_file or path.with_name(path.name + ".password"))


def create_key(path: Path) -> str:
    """Create a key file (64 hex, mode 0600) atomically and return its address; never overwrites."""
    key = fresh()
    write_new(path, key.reveal().hex().encode() + b"\n")
    return address_of(key)


def shown_certificate(path: str) -> str:
    """The same path of a certificate with its key, "" for none; ConfigError as for a key's file."""
    if path:
        read_private(Path(path))
    return path


def write_new(path: Path, content: bytes) -> None:
    """Write a 0600 file atomically and durably; ConfigError when the name is taken."""
    try:
        _judge_folders(path)
        files.write_new(path, content)
    except FileExistsError:
        raise ConfigError(
            f"{path}: already exists", remedy="keys are never overwritten; move it away"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}", remedy="check the folder and the space on it"
        ) from None


def read_private(path: Path) -> bytes:
    """The content of a private file, judged on the opened descriptor; ConfigError names what to fix."""
    # systemd 257 provides credentials as 0440 root with an ACL (security.md C2)
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    credential = bool(folder) and path.absolute().parent == Path(folder or "").absolute()
    try:
        content = files.read_owned(
            path,
            MAX_KEY_FILE,
            owner=not credential,
            mode=0 if credential else 0o077,
            alone=False,
            mark="drop",
        )
        if not credential:
            _judge_folders(path)
    except files.UnfitFile as unfit:
        if unfit.rule == "owner":
            raise _bad(
                path, "owned by another user", remedy=f"chown it to the fleet's user: {path}"
            ) from None
        raise _bad(
            path, unfit.strerror, remedy=f"chmod 0600 {path}" if unfit.rule == "mode" else ""
        ) from None
    except OSError as error:
        raise _bad(path, error.strerror or "cannot be read") from None
    return content


def _judge_folders(path: Path) -> None:
    """Check all folders above a key: a user who owns or can write to one can replace what is below it.

    Checks the path as written and as resolved, since a link on it can be replaced too. In a sticky folder
    such as /tmp, users other than its owner can move only their own files.
    """
    plain = path.absolute()
    for folder in dict.fromkeys((*plain.parents, *Path(os.path.realpath(plain)).parents)):
        info = folder.stat()
        if info.st_uid not in (0, os.geteuid()):  # its owner can replace what is in it, a sticky one too
            raise _bad(
                path,
                f"{folder} above it belongs to another user ({info.st_uid})",
                remedy=f"move the key below a folder of the fleet's user, or chown {folder}",
            )
        if info.st_mode & stat.S_ISVTX:
            continue
        if info.st_mode & stat.S_IWOTH:
            raise _bad(path, f"{folder} above it is writable by everyone", remedy=f"chmod o-w {folder}")
        if info.st_mode & stat.S_IWGRP and not _is_own_group(info.st_gid):
            raise _bad(path, f"{folder} above it is writable by its group", remedy=f"chmod g-w {folder}")


def _is_own_group(gid: int) -> bool:
    """Whether a group is this user's private group: of the same name, and without other members."""
    try:
        group, user = grp.getgrgid(gid), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return group.gr_name == user and not set(group.gr_mem) - {user}


def _unlock(keystore: dict[str, object], path: Path, password_file: Path) -> Secret:
    if not password_file.exists():
        raise _bad(path, "a keystore needs its password", remedy=f"put it in {password_file} (mode 0600)")
    password = read_private(password_file).rstrip(b"\r\n")
    with recursion_limit_kept():
        from eth_keyfile.keyfile import decode_keyfile_json  # 0.4-0.6 s to import, only for keystores

    try:
        raw = decode_keyfile_json(keystore, password)
    except Exception:  # its error types vary, and their text may quote the file
        raise _bad(
            path, "the keystore does not open with this password", remedy=f"check {password_file}"
        ) from None
    return _secret(raw, path)


def _secret(raw: bytes, path: Path) -> Secret:
    try:
        return Secret(raw)
    except ValueError:
        raise _bad(path, "not a private key of secp256k1") from None


def _bad(path: Path, reason: str, *, remedy: str = "") -> ConfigError:
    return ConfigError(f"key file {path}: {reason}", remedy=remedy or f"fix or recreate {path}")
