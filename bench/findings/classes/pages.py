"""Classes of pages: what a visitor of the site meets. Pure."""

from __future__ import annotations

from random import Random

from bench.findings.blueprint import Blueprint
from bench.findings.rules import EffectRule, EvidenceCall, Posted, answered, at, like, number, ran
from bench.findings.switches import Draw, Switch

BROKEN = {
    "lang": "lang",
    "title": "title",
    "label": "label",
    "alt": "alt",
    "button": "button",
    "link": "link",
}
DEAD = ("/press-kit", "/changelog", "/team/history", "/status-archive", "/old/terms")
SHOWN = ("search", "prefs", "gallery", "about", "handbook", "session")


def path_of(plan: Blueprint, role: str) -> str:
    """Template of a role's path."""
    special = {
        "index": "/",
        "face": plan.face,
        "entry": plan.paths["entries"] + "/{id}",
        "estimate": "/api/estimate",
    }
    return special.get(role) or plan.paths[role]


def accessibility(plan: Blueprint, chance: Random) -> Switch:
    place, kind = chance.choice((*SHOWN, "face", "index")), chance.choice(tuple(BROKEN))

    def faulty(one: EvidenceCall) -> bool:
        fields = [one.result.get(key) for key in ("a11y", "violations", "accessibility")]
        return any(BROKEN[kind] in str(found) for found in fields if found)

    return Switch(
        klass="accessibility",
        place=place,
        kind=kind,
        rung="observe",
        tool="qa_fetch",
        tell=f"the page {place} breaks the rule of accessibility about {kind}",
        rule=EffectRule(at(path_of(plan, place), faulty), r"a11y|accessib|label|alt|lang|title|name"),
        ground=frozenset({f"markup:{place}"}),
    )


def dead_link(plan: Blueprint, chance: Random) -> Switch:  # noqa: ARG001  every class is made by one call
    place, path = chance.choice((*SHOWN, "index", "llms", "guide")), chance.choice(DEAD)
    return Switch(
        klass="dead-link",
        place=place,
        rung="observe",
        tool="qa_fetch",
        tell=f"{place} links to {path}, which is not there",
        rule=EffectRule(answered(path, 404), r"404|dead|broken|missing|link|not (there|found)"),
        ground=frozenset({f"links:{place}"}),
        data={"path": path},
    )


def script_injection(plan: Blueprint, chance: Random) -> Switch:
    place, kind = (
        chance.choice(("search", "prefs", "face")),
        chance.choice(("element", "attribute", "script")),
    )
    return Switch(
        klass="script-injection",
        place=place,
        kind=kind,
        rung="observe",
        tool="qa_fetch",
        tell=f"a parameter of {place} reaches a context '{kind}' unescaped",
        rule=EffectRule(
            at(path_of(plan, place), lambda one: ran(one, kind)), r"script|canary|inject|xss|run"
        ),
        ground=frozenset({f"echo:{place}"}),
    )


def cookie_flags(plan: Blueprint, chance: Random) -> Switch:
    without = chance.choice((["HttpOnly"], ["SameSite=Lax"], ["HttpOnly", "SameSite=Lax"]))

    def lacking(one: EvidenceCall) -> bool:
        cookie = str(one.result.get("headers", {}).get("set-cookie", "")).lower()
        bare = [str(found) for key, found in one.result.items() if "cookie" in key and found]
        return any(flag.partition("=")[0].lower() not in cookie for flag in without) and bool(cookie or bare)

    return Switch(
        klass="cookie-flags",
        place="session",
        rung="observe",
        tool="qa_fetch",
        tell=f"the cookie of a visit lacks {', '.join(without)}",
        rule=EffectRule(at(plan.paths["session"], lacking), r"cookie"),
        ground=frozenset({"headers:session"}),
        data={"without": without},
    )


def directory_listing(plan: Blueprint, chance: Random) -> Switch:  # noqa: ARG001  every class is made by one call
    return Switch(
        klass="directory-listing",
        place="folder",
        rung="observe",
        tool="qa_fetch",
        tell=f"{plan.paths['folder']} lists its files",
        rule=EffectRule(
            at(plan.paths["folder"], lambda one: "Index of" in one.text), r"listing|lists|index of|director"
        ),
        ground=frozenset({"answer:folder"}),
    )


def latency(plan: Blueprint, chance: Random) -> Switch:
    place = chance.choice((*SHOWN, "face", "status", "terms"))
    kind = chance.choice(("constant", "tail"))
    seconds, every = chance.randint(4, 9) / 10, chance.randint(3, 5)
    there = like(path_of(plan, place))

    def slow(item: Posted) -> bool:
        for one in item.calls:
            figures = [number(one.result[key]) for key in one.result if key.endswith("_ms")]
            if there(one.path) and max(figures, default=0.0) >= 900 * seconds:
                return True
        return False

    return Switch(
        klass="latency",
        place=place,
        kind=kind,
        rung="observe",
        tool="qa_fetch",
        tell=f"{place} takes {seconds} s longer ({kind}, every {every})",
        rule=EffectRule(slow, r"p9\d|p50|latency|slow|\bms\b|takes|longer"),
        ground=frozenset({f"answer:{place}"}),
        data={"seconds": seconds, "every": every},
    )


CLASSES: dict[str, Draw] = {
    "accessibility": accessibility,
    "dead-link": dead_link,
    "script-injection": script_injection,
    "cookie-flags": cookie_flags,
    "directory-listing": directory_listing,
    "latency": latency,
}
