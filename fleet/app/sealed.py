"""A file that only the holder of a key reads, as age writes it (age-encryption.org/v1).

The key is an age identity (X25519): `fleet backup key FILE` or `age-keygen` makes one, and
`age --decrypt -i FILE` reads what was sealed, without the fleet. One with a passphrase is as `age -p`
makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyrage
from pyrage import DecryptError, IdentityError, RecipientError, decrypt_io, encrypt_io, x25519

from fleet.chain.keys import read_private, write_new
from fleet.errors import ConfigError
from fleet.files import new_file

MAGIC = b"age-encryption.org/v1\n"


Ask = Callable[[], str]
"""Asks a person for the passphrase of a key."""


def no_passphrase() -> str:
    """Where nobody can type one: ConfigError."""
    raise ConfigError("the key has a passphrase", remedy="ask with it where a person can type it")


def create_key(path: Path, passphrase: str = "") -> str:
    """Write a new identity to a new file, mode 0600, under a passphrase where there is one; its public half.
    ConfigError where keys are not safe."""
    identity = x25519.Identity.generate()
    plain = f"{identity}\n".encode()
    write_new(path, pyrage.passphrase.encrypt(plain, passphrase) if passphrase else plain)
    return str(identity.to_public())


def public_of(key: Path, ask: Ask = no_passphrase) -> str:
    """The public half of the identity in a file: what `[keep] sealed_for` names. ConfigError."""
    return str(_identity(key, ask).to_public())


def opened(sealed: bytes, key: Path, ask: Ask) -> bytes:
    """What was sealed, by a key of which one must have the file and know the passphrase; ConfigError for any
    other."""
    if not is_sealed(key):
        remedy = "a key for it is made by: fleet backup key FILE --passphrase"
        raise ConfigError(
            f"{key}: who has this file needs nothing else, and the vault asks for two", remedy=remedy
        )
    try:
        return bytes(pyrage.decrypt(sealed, [_identity(key, ask)]))
    except DecryptError:
        raise ConfigError(
            "it is not for this key, or it was changed", remedy="the key of [keep] sealed_for"
        ) from None


def is_sealed(path: Path) -> bool:
    """Whether a file begins as a sealed one does; one that is not there does not."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def seal(source: Path, target: Path, recipient: str, escrow: str = "") -> None:
    """Seal a file for a public key, and for one in escrow, atomically, mode 0600; FileExistsError when the
    name is taken, ConfigError for what is no public key."""
    try:
        public = [x25519.Recipient.from_str(one) for one in (recipient, escrow) if one]
    except RecipientError:
        remedy = "fleet backup key FILE says one"
        raise ConfigError("keep.sealed_for is no public key", remedy=remedy) from None
    with source.open("rb") as file, new_file(target) as out:
        encrypt_io(file, out, public)


def unseal(source: Path, target: Path, key: Path, ask: Ask = no_passphrase) -> None:
    """Write what was sealed into a new file; ConfigError, and no file, for another key or a file that was
    changed."""
    identity = _identity(key, ask)
    with source.open("rb") as file, new_file(target) as out:
        try:
            decrypt_io(file, out, [identity])
        except (DecryptError, OSError) as error:  # a part that was changed is an OSError without a number
            if getattr(error, "errno", None):
                raise
            remedy = "the key of [keep] sealed_for"
            raise ConfigError(f"{source}: it is not for this key, or it was changed", remedy=remedy) from None


def _identity(path: Path, ask: Ask) -> Any:  # noqa: ANN401  pyrage has no types
    content = read_private(path)
    if content.startswith(MAGIC):
        try:
            content = pyrage.passphrase.decrypt(content, ask())
        except DecryptError:
            raise ConfigError(f"{path}: the passphrase is another one", remedy="type it again") from None
    words = content.decode("ascii", "replace").splitlines()
    try:
        return x25519.Identity.from_str(next((one for one in words if one and not one.startswith("#")), ""))
    except IdentityError:
        raise ConfigError(f"{path}: no key of age", remedy=f"fleet backup key {path}") from None
