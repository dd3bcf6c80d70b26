"""Which tool calls a build alone can answer, and what they are there. Pure.

The build's service is at one place, the loopback of its own jail; a profile's placeholders stand for it.
"""

from __future__ import annotations

from dataclasses import replace

from fleet.config.platform import Platform
from fleet.config.propose import RepositorySection
from fleet.drivers.template import Bindings
from fleet.errors import FixError
from fleet.findings.repro import ReproCall
from fleet.oracles.model import Facts
from fleet.text import line
from sandbox.spec import ToolSpec
from sandbox.tools import TOOLS

PORT = 8080
"""Of the build's service, on the loopback of its own jail."""
SITE = f"http://127.0.0.1:{PORT}"
_NOT_THERE = {
    "chain": "a chain, which is not there",
    "agent": "a token that is signed for its moment: a regression test can hold none",
    "browser": "a browser, which the jail of a build does not have",
}
"""By group of tools: what a build lacks."""


def answered_by(call: ReproCall) -> str:
    """The part of a build that answers a call: `compiler`, `service`; "" for none."""
    spec = TOOLS.get(call.tool)
    return spec.in_build if spec is not None else ""


def applicable(repository: RepositorySection, call: ReproCall) -> ToolSpec:
    """The tool of a call that a build alone can answer; FixError says why it cannot."""
    spec = TOOLS.get(call.tool)
    if spec is None or not spec.in_build:
        lacks = _NOT_THERE.get(spec.group if spec else "", "more than the build")
        raise FixError(
            f"not reproducible in a build: {line(call.tool, 48)} needs {lacks}",
            remedy="fix this item by hand",
        )
    if spec.starts_programs:
        loads = bool(call.args.get("module_hex"))
        compiler = repository.compiler
        if compiler is None or (loads and not compiler.loader):
            raise FixError(
                f"not reproducible in a build: the repository has no {'loader' if loads else 'compiler'}",
                remedy="give its `compiler` in [repositories.NAME]",
            )
        if call.args.get("other") or call.args.get("printed"):
            raise FixError("not reproducible in a build: it compares with another program")
    elif repository.service is None:
        raise FixError(
            "not reproducible in a build: the repository has no service",
            remedy="give its `service` in [repositories.NAME]",
        )
    return spec


def facts_of(platform: Platform) -> Facts:
    """What the oracles know of the build: the profile's words, at the build's place."""
    return replace(Facts.of(platform), site=SITE, proxy=SITE, face=_face(platform))


def resolved(platform: Platform, call: ReproCall) -> ReproCall:
    """A call with the build's place for its placeholders; FixError for what a build alone does not have."""
    bindings = Bindings(
        run="fix", name="", site=SITE, proxy=SITE, face=_face(platform), targets=platform.targets
    )
    args = bindings.resolve(dict(call.args))
    if "{listener}" in str(call.args):
        raise FixError("not reproducible in a build: it asks a listener of the fleet")
    if "{name}" in str(call.args) or (not platform.web.face and "{face:" in str(call.args)):
        raise FixError("not reproducible in a build: it needs a name that is registered on a chain")
    if answered_by(call) == "service":
        for key in ("url", "control"):
            if args.get(key) and not str(args[key]).startswith(f"{SITE}/"):
                raise FixError("not reproducible in a build: it asks another host than the platform's")
    return ReproCall(call.tool, args)


def _face(platform: Platform) -> str:
    web = platform.web
    for base in filter(None, (web.site.rstrip("/"), web.proxy.rstrip("/"))):
        if web.face.startswith(f"{base}/"):
            return SITE + web.face.removeprefix(base)
    return ""
