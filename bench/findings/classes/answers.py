"""Classes of answers: errors, leaks, secrets, origins, redirects, routes. Pure."""

from __future__ import annotations

import re
from random import Random
from urllib.parse import urljoin, urlsplit

from bench.findings.blueprint import Blueprint
from bench.findings.classes.pages import path_of
from bench.findings.rules import EffectRule, EvidenceCall, Posted, at, like
from bench.findings.site.routes import JSON, documented
from bench.findings.switches import Draw, Switch

EDGES = {
    "search": ("term", ("long", "nul", "foreign", "percent", "bracket")),
    "entries": ("term", ("long", "nul", "foreign", "percent")),
    "entry": ("id", ("negative", "huge", "long", "foreign")),
    "convert": ("amount", ("empty", "negative", "huge", "foreign")),
    "render": ("line", ("long", "empty", "nul", "bracket")),
    "profile": ("name", ("empty", "long", "foreign", "bracket")),
    "credit": ("address", ("empty", "long", "foreign")),
    "prefs": ("theme", ("long", "empty", "nul", "percent")),
    "jump": ("next", ("empty", "long", "nul", "foreign")),
    "estimate": ("bytes", ("empty", "negative", "huge")),
}
LEAKS = {
    "python": 'Traceback (most recent call last):\n  File "/srv/app/views.py", line 41, in show\nKeyError: 3',
    "java": "java.lang.NullPointerException\n\tat org.example.shop.Views.show(Views.java:41)",
    "go": "panic: runtime error: index out of range [3]\n\ngoroutine 17 [running]:\nmain.show(0x4)\n",
    "node": "TypeError: Cannot read properties of undefined\n    at show (/srv/app/views.js:41:17)",
    "rust": "thread 'main' panicked at src/views.rs:41:9:\ncalled `Option::unwrap()` on a `None` value",
    "php": "Warning: include(parts/show.php): failed to open stream in /var/www/html/index.php on line 41",
    "sqlite": 'sqlite3.OperationalError: near "x": syntax error',
    "postgres": 'ERROR:  relation "notices" does not exist\nLINE 1: SELECT * FROM notices',
    "mysql": "You have an error in your SQL syntax; check the manual of your MySQL server version",
    "os": "[Errno 2] No such file or directory: '/srv/app/papers/x'",
}
TELLTALE = (
    r"Traceback|\.java:\d|goroutine \d|\.js:\d+:\d+|panicked at|on line \d"
    r"|OperationalError|LINE 1:|SQL syntax|Errno \d"
)
CAUSES = (
    "unknown-page",
    "entries",
    "shelf",
    "face",
    "convert",
    "profile",
    "call-json",
    "call-contents",
    "call-agent",
)
HIDING = ("script", "map", "status", "llms", "guide", "about", "gallery")
ORIGINS = ("prefix", "suffix", "substring", "null", "any")


_USER = re.compile(r"//[^/@]*@")
"""The user of a URL: redaction puts brackets there, and the host is what counts."""


def server_error(plan: Blueprint, chance: Random) -> Switch:
    place = chance.choice(tuple(EDGES))
    role, kinds = EDGES[place]
    kind = chance.choice(kinds)
    over = chance.choice((31, 32, 53, 63)) if kind == "huge" else chance.choice((100, 255, 400, 1000))
    name = role if role in ("id", "bytes") else plan.params[role]
    return Switch(
        klass="server-error",
        place=place,
        kind=kind,
        rung="observe",
        tool="qa_fetch",
        tell=f"{place} answers 500 when {name} is {kind}",
        rule=EffectRule(at(path_of(plan, place), lambda one: one.status >= 500), r"\b5\d\d\b|server error"),
        ground=frozenset({f"answer:{place}", f"answer:{place}.{name}"}),
        data={"param": name, "over": over},
    )


def trace_leak(plan: Blueprint, chance: Random) -> Switch:
    place, kind = chance.choice(CAUSES), chance.choice(tuple(LEAKS))

    def leaks(one: EvidenceCall) -> bool:
        return re.search(TELLTALE, one.text) is not None and one.status >= 400

    def shows(item: Posted) -> bool:
        if place.startswith("call-"):
            return any(one.is_call and leaks(one) for one in item.calls)
        if place == "unknown-page":
            return any("url" in one.args and one.status == 404 and leaks(one) for one in item.calls)
        return at(path_of(plan, place), leaks)(item)

    return Switch(
        klass="trace-leak",
        place=place,
        kind=kind,
        rung="exercise" if place.startswith("call-") else "observe",
        tool="qa_call" if place.startswith("call-") else "qa_fetch",
        tell=f"a refusal at {place} shows an error of the inside ({kind})",
        rule=EffectRule(
            shows, r"trace|panic|error of|\ban? [A-Z.]\w+ error|operating|database|sql|leak|exception|path"
        ),
        ground=frozenset({f"answer:{place}"}),
        data={"text": LEAKS[kind]},
    )


def secret(plan: Blueprint, chance: Random) -> Switch:
    place = chance.choice(HIDING)
    digits = "".join(chance.choice("0123456789abcdef") for _ in range(64))
    big = "".join(chance.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") for _ in range(16))
    small = "".join(chance.choice("abcdefghijklmnopqrstuvwxyzABCDEFGHJK0123456789") for _ in range(36))
    kinds = {
        "hex-key": f'deployer_private_key = "0x{digits}"',
        "cloud-key": f"AKIA{big}",
        "forge-token": f"ghp_{small}",
        "live-key": f"sk_live_{small[:28]}",
        "pem": f"-----BEGIN EC PRIVATE KEY----- {small}{small} -----END EC PRIVATE KEY-----",
    }
    kind = chance.choice(tuple(kinds))
    value = kinds[kind]

    def found(one: EvidenceCall) -> bool:
        return bool(one.result.get("secrets")) or value in one.text or "[private-key]" in one.text

    return Switch(
        klass="secret",
        place=place,
        kind=kind,
        rung="observe",
        tool="qa_fetch",
        tell=f"{place} shows a secret ({kind})",
        rule=EffectRule(at(path_of(plan, place), found), r"secret|key|token|credential"),
        ground=frozenset({f"secret:{place}"}),
        data={"text": value},
    )


def origin_rule(plan: Blueprint, chance: Random) -> Switch:
    place, kind = chance.choice(("status", "entries", "profile", "credit", "terms")), chance.choice(ORIGINS)

    def echoed(one: EvidenceCall) -> bool:
        url = urlsplit(str(one.args.get("url", "")))
        own = f"{url.scheme}://{url.netloc}"
        let = str(one.result.get("allow_origin", ""))
        return let not in ("", own) and let in one.sent

    return Switch(
        klass="origin-rule",
        place=place,
        kind=kind,
        rung="observe",
        tool="qa_fetch",
        tell=f"{place} lets foreign origins read by the rule '{kind}'",
        rule=EffectRule(at(plan.paths[place], echoed), r"origin|cors"),
        ground=frozenset({f"origin:{place}"}),
    )


def open_redirect(plan: Blueprint, chance: Random) -> Switch:
    kind = chance.choice(("absolute", "slashes", "prefix", "backslash"))

    def leaves(one: EvidenceCall) -> bool:
        url, to = str(one.args.get("url", "")), str(one.result.get("location", ""))
        try:
            target = urlsplit(urljoin(url, _USER.sub("//", to.replace("\\", "/"))))
        except ValueError:
            return False
        return 300 <= one.status < 400 and target.netloc != urlsplit(url).netloc

    return Switch(
        klass="open-redirect",
        place="jump",
        kind=kind,
        rung="observe",
        tool="qa_fetch",
        tell=f"{plan.paths['jump']} redirects to a foreign host ({kind})",
        rule=EffectRule(at(plan.paths["jump"], leaves), r"redirect|location|foreign"),
        ground=frozenset({"answer:jump"}),
    )


def route_missing(plan: Blueprint, chance: Random) -> Switch:
    place = chance.choice(("gallery", "about", "convert", "render", "profile", "credit", "terms", "handbook"))
    is_json = next(one for one in documented(plan) if one.role == place).kind == JSON
    kind = chance.choice(("404", "405", "type") if is_json else ("404", "405"))

    def fails(one: EvidenceCall) -> bool:
        if kind == "type":
            return one.status == 200 and "json" not in str(one.result.get("content_type", "json"))
        return one.status == int(kind)

    return Switch(
        klass="route-missing",
        place=place,
        kind=kind,
        rung="observe",
        tool="qa_fetch",
        tell=f"the documented route {place} fails: {kind}",
        rule=EffectRule(
            at(path_of(plan, place), fails), r"404|405|content.type|html|json|document|guide|missing"
        ),
        ground=frozenset({f"answer:{place}", f"markup:{place}", f"links:{place}", f"secret:{place}"}),
    )


def path_climb(plan: Blueprint, chance: Random) -> Switch:
    place = chance.choice(("shelf", "folder"))
    kind = chance.choice(("plain", "encoded", "once"))
    there = (
        like(plan.paths["shelf"]) if place == "shelf" else lambda path: path.startswith(plan.paths["folder"])
    )

    def shows(item: Posted) -> bool:
        return any(there(one.path) and "root:x:0:0" in one.text for one in item.calls)

    return Switch(
        klass="path-climb",
        place=place,
        kind=kind,
        rung="observe",
        tool="qa_fetch",
        tell=f"{place} gives files outside its folder ({kind})",
        rule=EffectRule(shows, r"climb|travers|outside|passwd|path|file"),
        ground=frozenset({f"answer:{place}"}),
    )


CLASSES: dict[str, Draw] = {
    "server-error": server_error,
    "trace-leak": trace_leak,
    "secret": secret,
    "origin-rule": origin_rule,
    "open-redirect": open_redirect,
    "route-missing": route_missing,
    "path-climb": path_climb,
}
