"""The definition of an oracle: what holds of every answer of a healthy platform. Pure.

An oracle judges the last exchange of a question; the exchanges before it are its context and its controls
(the same call again, the same call without the attack). It may only require what no choice of arguments can
make false on a healthy platform, so it first removes what a caller can put there: an echoed text, a secret in
its own page, its own deadline. What it saw names the finding; the place of its kind is the defect's identity,
and the signature is what a proof must show again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from fleet.config import Platform
from fleet.findings.sighting import Sighting, lead
from fleet.personas.model import Surface
from fleet.severity import Severity
from fleet.store.rows import SampleRow
from sandbox.tools import TOOLS

_FACE = re.compile(r"\{face:[^{}]{1,80}\}")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call, with its arguments as the repro has them, and its result."""

    tool: str
    args: Mapping[str, Any]
    result: Mapping[str, Any]

    @property
    def asked(self) -> str:
        """The call in a few words."""
        return lead(self.tool, self.args)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What its answer is judged as: the tool's `judged_as`."""
        spec = TOOLS.get(self.tool)
        return spec.judged_as if spec else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of the platform beside the answers: its profile's words, and its history.

    `promised` is the profile's `[facts]`; `prices` what documents say that a URL costs, in units, `payee` who
    is paid, and `decimals` the token's; `history` the figures of earlier runs by metric, `past` what earlier
    runs measured, by measure, oldest first.
    """

    site: str = ""
    proxy: str = ""
    face: str = ""
    chain_id: int = 0
    diamond: str = ""
    language: str = ""
    promised: Mapping[str, Any] = field(default_factory=dict)
    prices: Mapping[str, int] = field(default_factory=dict)
    payee: str = ""
    decimals: int | None = None
    history: Mapping[str, float] = field(default_factory=dict)
    past: Mapping[str, Sequence[SampleRow]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        platform: Platform,
        history: Mapping[str, float] | None = None,
        past: Mapping[str, Sequence[SampleRow]] | None = None,
    ) -> Self:
        """The facts of a profile."""
        web, chain = platform.web, platform.chain
        return cls(
            site=web.site,
            proxy=web.proxy,
            face=web.face,
            chain_id=chain.id,
            diamond=chain.diamond,
            language=platform.compiler.language,
            promised=platform.facts,
            prices={url: price for url, price in platform.paid_urls.items() if price is not None},
            payee=(platform.payments.payee or "").lower(),
            decimals=platform.payments.decimals,
            history=history or {},
            past=past or {},
        )

    def actual(self, spelled: str) -> str:
        """The URL that a repro's form stands for."""
        spelled = _FACE.sub(lambda hit: self.face.replace("{name}", hit[0][6:-1]), spelled)
        return spelled.replace("{site}", self.site.rstrip("/")).replace("{proxy}", self.proxy.rstrip("/"))

    def folded(self, signature: str) -> str:
        """A signature with every face in one spelling: a face may be a page of the site as well."""
        signature = _FACE.sub("{face}", signature)
        for place, base in (("{site}", self.site.rstrip("/")), ("{proxy}", self.proxy.rstrip("/"))):
            before, _, after = self.face.removeprefix(base).partition("{name}")
            if base and self.face.startswith(f"{base}/"):
                spelled = f"{re.escape(place + before)}[a-z0-9-]{{1,63}}{re.escape(after)}"
                signature = re.sub(spelled, "{face}", signature)
        return signature


@dataclass(frozen=True, slots=True)
class Observation:
    """What an oracle saw. `fields` are the result's fields that show it.

    `led` are the positions of the earlier exchanges that the observation rests on; acts before the last
    exchange are part of a repro anyway. `severity` and `forgeable` replace the oracle's own.
    """

    sighting: Sighting
    fields: frozenset[str]
    led: tuple[int, ...] = ()
    severity: Severity | None = None
    forgeable: bool | None = None


def observed(
    title: str,
    signature: str,
    *fields: str,
    led: tuple[int, ...] = (),
    severity: Severity | None = None,
    where: Mapping[str, str] | None = None,
) -> Observation:
    """An observation whose signature names the defect by itself.

    `where` are the parts of its kind's place that the last exchange does not tell (oracles/place.py).
    """
    found = Sighting(title, signature, whole=True, where=where or {})
    return Observation(found, frozenset(fields), led, severity)


Judge = Callable[[Sequence[Exchange], Facts], Iterator[Observation]]
"""Judges the last exchange, with those before it in the same question, and the platform's facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """One property, as the decorator of the function that judges it.

    `judges` are the words of tools' `judged_as` that it applies to.

    `forgeable`: a malicious driver could have put there what it shows (a name's greeting, say), so a person
    reviews it if a driver chose the calls. `example` is a question that violates it, `control` its benign
    twin, which must not: both are tried by the tests.
    """

    id: str
    says: str
    severity: Severity
    surface: Surface
    judges: tuple[str, ...]
    example: tuple[Exchange, ...]
    control: tuple[Exchange, ...]
    needs: tuple[str, ...] = ()
    """Facts without which it says nothing, e.g. `call_price_wei`."""
    yields_to: tuple[str, ...] = ()
    """Oracles that say more of the same answer: when one of them speaks, this one is silent."""
    forgeable: bool = False
    words: bool = False
    """Whether it judges words of an error, which a page or a gate may quote: compared before a proof."""
    given: Facts = field(default_factory=Facts)
    """What its example and its control presuppose."""
    judge: Judge = lambda _seen, _facts: iter(())
    """The function that is decorated."""

    def __call__(self, judge: Judge) -> Self:
        return replace(self, judge=judge)


oracle = Oracle
"""The decorator by its usual name; a module with several has a partial of it for what they share."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One answer that no healthy platform gives, in the words of the oracle that judged it."""

    oracle: str
    severity: Severity
    surface: Surface
    sighting: Sighting
    fields: frozenset[str]
    forgeable: bool = False
    led: tuple[int, ...] = ()
