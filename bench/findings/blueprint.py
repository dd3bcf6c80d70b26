"""The plan of one generated platform: all its words, paths, prices and limits, drawn from a seed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Self

from bench.findings import words

CREDIT = 10**18


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """`paths`, `params` and `commands` are by role. The same seed gives the same blueprint."""

    seed: int
    product: str
    paths: Mapping[str, str]
    params: Mapping[str, str]
    face: str
    calls: tuple[str, str]
    """Paths of a whole and of a streamed call."""
    header: str
    model: str
    scope: str
    route: str
    agents: tuple[str, str]
    commands: Mapping[str, str]
    harmless: tuple[str, ...]
    destructive: tuple[str, ...]
    titles: tuple[str, ...]
    price_wei: int
    lifetime_s: int
    """How long a call token is good, either side of its time."""
    top: int
    """Most entries of one listing."""
    longest: int
    """Most characters of a message."""
    openapi: bool
    source_map: bool
    thing: str
    keeper: str
    fee: str
    cap: str
    cap_value: int

    @classmethod
    def drawn(cls, seed: int) -> Self:
        """The blueprint of a seed."""
        chance = Random(f"blueprint/{seed}")

        def one(options: tuple[str, ...]) -> str:
            return chance.choice(options)

        api = one(words.API)
        paths = {role: one(options) for role, options in words.PATHS.items()}
        paths |= {role: f"{api}/{one(options)}" for role, options in words.SERVICES.items()}
        paths["map"] = paths["script"] + ".map"
        return cls(
            seed=seed,
            product=one(words.PRODUCTS),
            paths=paths,
            params={role: one(options) for role, options in words.PARAMS.items()},
            face=one(words.FACES),
            calls=chance.choice(words.CALLS),
            header=one(words.HEADERS),
            model=one(words.MODELS),
            scope=one(words.SCOPES),
            route=one(words.ROUTES),
            agents=tuple(chance.sample(words.AGENTS, 2)),  # type: ignore[arg-type]
            commands={role: one(options) for role, options in words.COMMANDS.items()},
            harmless=tuple(chance.sample(words.HARMLESS, 2)),
            destructive=tuple(chance.sample(words.DESTRUCTIVE, 3)),
            titles=tuple(chance.sample(words.TITLES, 8)),
            price_wei=CREDIT // 1000 * chance.randint(11, 90),
            lifetime_s=60 * chance.randint(3, 9),
            top=5 * chance.randint(4, 20),
            longest=100 * chance.randint(15, 60),
            openapi=chance.random() < 0.5,
            source_map=True,
            thing=one(words.THINGS),
            keeper=one(words.KEEPERS),
            fee=one(words.FEES),
            cap=one(words.CAPS),
            cap_value=chance.randint(12, 400),
        )

    @property
    def price(self) -> str:
        """The price of a message in credits."""
        return display(self.price_wei)

    def face_of(self, name: str) -> str:
        """Path of a name's face."""
        return self.face.replace("{name}", name)

    def call_path(self, *, stream: bool = False) -> str:
        """Path of a call, with the model."""
        return self.calls[stream].replace("{model}", self.model)


def display(wei: int) -> str:
    """Credits in full."""
    whole, rest = divmod(wei, CREDIT)
    return f"{whole}.{rest:018d}".rstrip("0").removesuffix(".") if rest else str(whole)
