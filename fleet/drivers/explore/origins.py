"""The foreign origins that a page or an API may take for its own. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from urllib.parse import urlsplit

from fleet.drivers.desk import Question
from fleet.personas.model import Step

FOREIGN = "evil.test"
"""A host that belongs to no platform (RFC 6761): where an attacker's page would be."""


def unheard(chance: Random) -> str:
    """A word that no page contains."""
    return f"qa{chance.getrandbits(40):010x}"


def origins(url: str, own: Sequence[str], chance: Random) -> Iterator[Question]:
    """The foreign origins that a page may take for its own, by rule; `own` are the platform's origins, such
    as `https://example.org`.

    A question is [no origin, a stranger's origin, foreign origins that resemble one of `own` ...]: each is
    judged against the first two.
    """
    likes = list(dict.fromkeys(["null", *_lookalikes(own)]))
    controls: list[dict[str, str]] = [{}, {"origin": f"https://{unheard(chance)}.{FOREIGN}"}]
    for at in range(0, len(likes), 8):
        sent: list[dict[str, str]] = [*controls, *({"origin": like} for like in likes[at : at + 8])]
        yield Question(tuple(Step(tool="qa_fetch", args={"url": url, **more}) for more in sent))


def _lookalikes(own: Sequence[str]) -> Iterator[str]:
    """Foreign origins that pass a check by prefix, suffix, substring or pattern; then by scheme and port."""
    hosts = dict.fromkeys((*own, "http://localhost"))
    split = [(one.partition("://")[0], urlsplit(one).hostname or "") for one in hosts]
    for scheme, host in split:
        yield f"{scheme}://{host}.{FOREIGN}"
    for scheme, host in split:
        if host != "localhost":
            yield f"{scheme}://evil{host}"
        if any(letter.isalpha() for letter in host) and "." in host:
            yield f"{scheme}://{host.replace('.', 'x', 1)}"
        yield f"{scheme}://evil.{host.replace('.', '-')}.{FOREIGN}"
    for scheme, host in split:
        if scheme == "https":
            yield from (f"http://{host}", f"https://{host}:8443")
