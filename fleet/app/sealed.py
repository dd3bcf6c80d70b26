"""A file that only the holder of a key reads: AES-256-GCM in parts, by a key agreed on secp256k1.

    "qa-fleet sealed 1\n" | a public key made for this file, 33 bytes | parts

A part is a MiB (the last one less) and its tag of 16 bytes. Its nonce is its number and, in the last byte,
1 for the last: parts cannot be dropped, swapped or cut off. The key of AES is HKDF-SHA-256 of what both keys
agree on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from coincurve import PrivateKey, PublicKey
from Crypto.Cipher import AES
from Crypto.Hash import SHA256
from Crypto.Protocol.KDF import HKDF

from fleet.chain.keys import Secret, fresh
from fleet.errors import ConfigError
from fleet.files import sync_folder

MAGIC = b"qa-fleet sealed 1\n"
_PART, _TAG, _PUBLIC = 1 << 20, 16, 33


def public_of(key: Secret) -> str:
    """The public half of a key, 66 hexadecimal digits: what `[keep] sealed_for` names."""
    return PrivateKey(key.reveal()).public_key.format(compressed=True).hex()


def is_sealed(path: Path) -> bool:
    """Whether a file begins as a sealed one does; one that is not there does not."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def seal(source: Path, target: Path, recipient: str) -> None:
    """Seal a file for a public key, atomically, mode 0600; FileExistsError when the name is taken,
    ConfigError for what is no public key."""
    own = fresh()
    head = MAGIC + bytes.fromhex(public_of(own))
    try:
        agreed = _agreed(own, bytes.fromhex(recipient), head)
    except ValueError:
        raise ConfigError(
            "keep.sealed_for is no public key", remedy="fleet backup key FILE says one"
        ) from None
    draft = target.with_name(f".{target.name}.{os.urandom(6).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as out, source.open("rb") as file:
            out.write(head)
            for number, (part, is_last) in enumerate(_parts(file, _PART)):
                cipher = AES.new(agreed, AES.MODE_GCM, nonce=_nonce(number, is_last))
                made, tag = cipher.encrypt_and_digest(part)
                out.write(made + tag)
            out.flush()
            os.fsync(out.fileno())
        os.link(draft, target, follow_symlinks=False)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(target.parent)


def unseal(source: Path, target: Path, key: Secret) -> None:
    """Write what was sealed into a new file; ConfigError for another key, and for a file that was changed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with source.open("rb") as file, os.fdopen(os.open(target, flags, 0o600), "wb") as out:
        head = file.read(len(MAGIC) + _PUBLIC)
        try:
            agreed = _agreed(key, head[len(MAGIC) :], head)
            for number, (part, is_last) in enumerate(_parts(file, _PART + _TAG)):
                cipher = AES.new(agreed, AES.MODE_GCM, nonce=_nonce(number, is_last))
                out.write(cipher.decrypt_and_verify(part[:-_TAG], part[-_TAG:]))
        except ValueError:
            raise ConfigError(
                f"{source}: it is not for this key, or it was changed", remedy="the key of [keep] sealed_for"
            ) from None


def _agreed(mine: Secret, theirs: bytes, head: bytes) -> bytes:
    shared = PrivateKey(mine.reveal()).ecdh(PublicKey(theirs).format())
    made = HKDF(shared, 32, salt=head, hashmod=SHA256, context=MAGIC)
    assert isinstance(made, bytes)
    return made


def _nonce(number: int, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])


def _parts(file: IO[bytes], size: int) -> Iterator[tuple[bytes, bool]]:
    """Parts of a file, each with whether it is the last; of an empty one an empty part."""
    part = file.read(size)
    while following := file.read(size):
        yield part, False
        part = following
    yield part, True
