"""How busy this machine is, for records of the trusted side."""

from __future__ import annotations

from sandbox import machine

_last: dict[str, machine.Ticks] = {}


def pressure(proc: str = machine.PROC) -> str:
    """`load 7.9 on 2 cores, cpu pressure 43 %, steal 2 %`; "" when nothing can be read.

    Load covers the last minute, pressure the last ten seconds, steal the time since the previous call (for
    the first call: since boot).
    """
    earlier, _last[proc] = _last.get(proc, (0, 0)), machine.ticks(proc)
    return machine.pressure(earlier, proc)
