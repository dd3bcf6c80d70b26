"""A file that only the holder of a key reads, as age writes it (age-encryption.org/v1).

The key is an age identity (X25519): `fleet backup key FILE` or `age-keygen` makes one, and
`age --decrypt -i FILE` reads what was sealed, without the fleet.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyrage import DecryptError, IdentityError, RecipientError, decrypt_io, encrypt_io, x25519

from fleet.chain.keys import read_private, write_new
from fleet.errors import ConfigError
from fleet.files import new_file

MAGIC = b"age-encryption.org/v1\n"


def create_key(path: Path) -> None:
    """Write a new identity to a new file, mode 0600. ConfigError where keys are not safe."""
    write_new(path, f"{x25519.Identity.generate()}\n".encode())


def public_of(key: Path) -> str:
    """The public half of the identity in a file: what `[keep] sealed_for` names. ConfigError."""
    return str(_identity(key).to_public())


def is_sealed(path: Path) -> bool:
    """Whether a file begins as a sealed one does; one that is not there does not."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def seal(source: Path, target: Path, recipient: str) -> None:
    """Seal a file for a public key, atomically, mode 0600; FileExistsError when the name is taken,
    ConfigError for what is no public key."""
    try:
        public = x25519.Recipient.from_str(recipient)
    except RecipientError:
        remedy = "fleet backup key FILE says one"
        raise ConfigError("keep.sealed_for is no public key", remedy=remedy) from None
    with source.open("rb") as file, new_file(target) as out:
        encrypt_io(file, out, [public])


def unseal(source: Path, target: Path, key: Path) -> None:
    """Write what was sealed into a new file; ConfigError, and no file, for another key or a file that was
    changed."""
    identity = _identity(key)
    with source.open("rb") as file, new_file(target) as out:
        try:
            decrypt_io(file, out, [identity])
        except (DecryptError, OSError) as error:  # a part that was changed is an OSError without a number
            if getattr(error, "errno", None):
                raise
            remedy = "the key of [keep] sealed_for"
            raise ConfigError(f"{source}: it is not for this key, or it was changed", remedy=remedy) from None


def _identity(path: Path) -> Any:  # noqa: ANN401  pyrage has no types
    words = read_private(path).decode("ascii", "replace").splitlines()
    try:
        return x25519.Identity.from_str(next((one for one in words if one and not one.startswith("#")), ""))
    except IdentityError:
        raise ConfigError(f"{path}: no key of age", remedy=f"fleet backup key {path}") from None
