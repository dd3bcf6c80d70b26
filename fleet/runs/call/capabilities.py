"""A platform's capabilities (its profile, its diamond's loupe) matched with a probe's needs. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fleet.config import Platform
from fleet.jail.locate import BROWSER
from sandbox.browser.devtools import installed
from sandbox.chain.contract import VIEWS, WRITES

_SELECTORS = {name: one.selector for table in (VIEWS, WRITES) for name, one in table.items()}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """`selectors` (`0x` and 8 digits) are what the diamond offers; None when it cannot say: then each call
    is tried."""

    platform: Platform
    selectors: frozenset[str] | None = None
    browser: str = field(default_factory=installed)
    """The browser of this machine, "" for none."""

    @property
    def lacks(self) -> tuple[str, ...]:
        """Functions of the table that the diamond is known not to offer."""
        return tuple(name for name in _SELECTORS if not self.offers(name))

    def offers(self, name: str) -> bool:
        """Whether a function of the table may be called."""
        return self.selectors is None or _SELECTORS.get(name, "") in self.selectors

    def missing(self, needs: Iterable[str]) -> str:
        """Why a probe with these needs is not applicable here; "" when all are met."""
        return "; ".join(why for need in needs if (why := self._missing(need)))

    def _missing(self, need: str) -> str:
        kind, _, name = need.partition(":")
        profile, compiler = self.platform, self.platform.compiler
        parts = {
            "site": (profile.web.site, "the profile names no site"),
            "faces": (profile.web.face, "the profile names no faces"),
            "proxy": (profile.web.proxy, "the profile names no proxy"),
            "calls": (not profile.web.unstated, f"the profile states no {', '.join(profile.web.unstated)}"),
            "metadata": (name in profile.metadata.names, f"the profile names no metadata key {name!r}"),
            "browser": (self.browser, f"no browser is installed here: {BROWSER}"),
            "code": (getattr(compiler, f"{name}_code", ""), f"the profile states no {name}_code"),
            "compiler": (compiler.command, "the profile names no compiler"),
            "compiler.loader": (compiler.loader, "the profile names no loader"),
            "target": (name in profile.targets, f"the profile has no target for {name!r}"),
            "fact": (profile.facts.get(name, False) is not False, f"the profile does not state {name!r}"),
            "language": (name == compiler.language, f"the compiler's language is not stated to be {name!r}"),
            "view": (self.offers(name), f"the diamond does not offer {name}"),
            "call": (self.offers(name), f"the diamond does not offer {name}"),
        }
        met, why = parts[kind]
        return "" if met else why
