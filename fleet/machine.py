"""How busy this machine is, for records of the trusted side."""

from __future__ import annotations

from sandbox import machine

_last: dict[str, machine.Ticks] = {}


def pressure(proc: str = machine.PROC) -> str:
    """`load 7.9 on 2 cores, cpu pressure 43 %, steal 2 %`; "" when nothing can be read.

    Load is of the last minute, pressure of the last ten seconds, steal since the call before this one (of the
    first call: since boot).
    """
    earlier, _last[proc] = _last.get(proc, (0, 0)), machine.ticks(proc)
    return machine.pressure(earlier, proc)
