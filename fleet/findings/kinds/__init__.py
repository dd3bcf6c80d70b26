"""Kinds of findings: what each is called, why it matters, what is healthy, how it is usually fixed.

One table for each thing that an oracle, a probe or an outage can report, in the files beside this one. A kind
belongs to one defect as people speak of it; several oracles may show it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from fleet.config import Section
from fleet.findings.sighting import NAME_CHARS
from fleet.severity import Severity

SUBJECTS = ("web", "agent", "chain", "account", "program", "documents", "operation")
Sentence = Annotated[str, StringConstraints(min_length=12, max_length=200, pattern=r"^[A-Z][\s\S]*\.$")]
Part = Literal[
    "host",
    "route",
    "parameter",
    "field",
    "endpoint",
    "claim",
    "command",
    "function",
    "crash",
    "input",
    "act",
    "secret",
    "trace",
    "rule",
    "script",
    "link",
    "fact",
    "cookie",
]
"""What of an observation makes two of them one defect; everything else is an instance of it."""


class Kind(Section):
    """One kind, as its table has it. `oracles` are the ids of those that show it."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{2,39}$")]
    subject: str
    name: Annotated[str, StringConstraints(min_length=8, max_length=NAME_CHARS, pattern=r"^[A-Z].*[^.]$")]
    """What people call it; begins the title of a finding."""
    wrong: Sentence
    why: Sentence
    """Why it matters."""
    healthy: Sentence
    """What a healthy platform does."""
    expected: Mapping[str, str] = {}
    """The same of the fields of a tool's result that decide, in a few words each."""
    fix: Sentence
    """How it is usually fixed."""
    effort: Literal["quick win", "moderate", "significant"] = "moderate"
    """Of that, where the cause is as usual: a setting or a line; a change with tests; work on a design, or a
    search for the cause first."""
    references: tuple[str, ...] = Field(min_length=1, max_length=6)
    """CWE, OWASP, WCAG, SWC, RFC, or a URL; the most exact one first."""
    severity: Severity
    """By default: an oracle may rate one observation lower or higher, with its reason."""
    reason: Sentence
    """Why this severity."""
    place: tuple[Part, ...] = Field(min_length=1)
    """What makes two observations one defect, the fingerprint of version 3 (findings/fingerprint.py)."""
    covers: tuple[str, ...] = ()
    """Kinds that are its consequences where the parts that both have are the same: one defect, this one."""
    same_as: str = ""
    """The kind that is the same defect seen in another way, under whose id both have one fingerprint."""
    oracles: tuple[str, ...] = Field(min_length=1)

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """What a page about a finding of this kind says of it: heading and sentence."""
        return (
            ("What is wrong", self.wrong),
            ("Why it matters", self.why),
            ("Healthy", self.healthy),
            ("How it is usually fixed", self.fix),
        )

    @property
    def security(self) -> bool:
        """Whether an attacker gains by it, by a list of those who know (OWASP, SWC)."""
        return any(one.startswith(("OWASP ", "SWC-")) for one in self.references)

    @property
    def links(self) -> tuple[str, ...]:
        """The pages of its references."""
        return tuple(filter(None, map(link, self.references)))


@lru_cache(maxsize=1)
def kinds() -> Mapping[str, Kind]:
    """All kinds by id, in the order of the subjects."""
    found: dict[str, Kind] = {}
    for subject in SUBJECTS:
        text = files(__name__).joinpath(f"{subject}.toml").read_text("utf-8")
        for name, table in tomllib.loads(text).items():
            if name in found:
                raise ValueError(
                    f"findings/kinds/{subject}.toml: {name} is in {found[name].subject}.toml too"
                )
            found[name] = Kind(id=name, subject=subject, **table)
    for kind in found.values():
        if kind.same_as and (kind.same_as not in found or found[kind.same_as].place != kind.place):
            raise ValueError(f"findings/kinds/{kind.subject}.toml: {kind.id} is not one with {kind.same_as}")
        for other in kind.covers:
            if other not in found or not set(kind.place) & set(found[other].place):
                raise ValueError(
                    f"findings/kinds/{kind.subject}.toml: {kind.id} covers {other}: not a kind, or one"
                    " without a part of its place"
                )
    return found


@lru_cache(maxsize=1)
def _by_oracle() -> Mapping[str, Kind]:
    return {oracle: kind for kind in kinds().values() for oracle in kind.oracles}


def kind_of(oracle: str) -> Kind | None:
    """The kind that an oracle shows; None for a name that no kind has."""
    return _by_oracle().get(oracle)


RIGHTS = frozenset(
    {"CWE-250", "CWE-269", "CWE-285", "CWE-288", "CWE-290", "CWE-639", "CWE-862", "CWE-863", "CWE-915"}
)
"""What shows that a caller had rights beyond those it was given."""


def beyond_rights(title: str) -> bool:
    """Whether a finding is that a call was served which its caller had no right to."""
    kind = kind_titled(title)
    return kind is not None and not RIGHTS.isdisjoint(kind.references)


@lru_cache(maxsize=1)
def _by_name() -> Mapping[str, Kind]:
    return {kind.name: kind for kind in kinds().values()}


def kind_titled(title: str) -> Kind | None:
    """The kind whose name begins a title (`sighting.titled`); an older title has none."""
    return _by_name().get(title.partition(": ")[0])


def link(reference: str) -> str:
    """The page of a reference, where it has a stable one; "" otherwise."""
    if reference.startswith("https://"):
        return reference
    if reference.startswith("CWE-"):
        return f"https://cwe.mitre.org/data/definitions/{reference[4:]}.html"
    if reference.startswith("RFC "):
        return f"https://www.rfc-editor.org/rfc/rfc{reference[4:].partition(',')[0]}"
    if reference.startswith("SWC-"):
        return f"https://swcregistry.io/docs/{reference}"
    if reference.startswith(("EIP-", "ERC-")):
        return f"https://eips.ethereum.org/EIPS/eip-{reference[4:]}"
    return ""


def markdown() -> str:
    """The reference of all kinds, as docs/reference/findings.md has it."""
    lines = [
        "# Kinds of findings",
        "",
        "What the fleet can find, one section for each kind; generated by `fleet items kinds --markdown`.",
    ]
    subject = ""
    for kind in kinds().values():
        if kind.subject != subject:
            subject = kind.subject
            lines += ["", f"## {subject.capitalize()}"]
        lines += ["", f"### {kind.name}", "", f"`{kind.id}` · {kind.severity}: {kind.reason}", "", kind.wrong]
        lines += [
            "",
            f"- Why it matters: {kind.why}",
            f"- Healthy: {kind.healthy}",
            f"- Usual fix: {kind.fix}",
        ]
        lines += [f"- One defect for each: {', '.join(kind.place)}"]
        if kind.same_as:
            lines += [f"- The same defect as: `{kind.same_as}`"]
        if kind.covers:
            lines += [f"- Covers at the same place: {', '.join(f'`{one}`' for one in kind.covers)}"]
        lines += [f"- Shown by: {', '.join(f'`{one}`' for one in kind.oracles)}"]
        shown = (f"[{one}]({link(one)})" if link(one) else one for one in kind.references)
        lines += [f"- References: {', '.join(shown)}"]
    return "\n".join(lines) + "\n"
