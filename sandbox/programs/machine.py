"""How busy this machine is, in words, from /proc: values missing in a jail are omitted."""

from __future__ import annotations

import contextlib

PROC = "/proc"

Ticks = tuple[int, int]
"""(stolen by the hypervisor, all): processor time since boot, in clock ticks."""


def pressure(earlier: Ticks = (0, 0), proc: str = PROC) -> str:
    """`load 7.9 on 2 cores, cpu pressure 43 %, steal 2 %`: of the last minute, the last ten seconds, and
    since `earlier`; "" when nothing can be read."""
    load, stall, stat = (_read(f"{proc}/{name}") for name in ("loadavg", "pressure/cpu", "stat"))
    cores = sum(line[:3] == "cpu" and line[3:4].isdigit() for line in stat.splitlines())
    parts = (_load(load, cores), _stalled(stall), _stolen(earlier, _ticks(stat)))
    return ", ".join(part for part in parts if part)


def ticks(proc: str = PROC) -> Ticks:
    """What to hand to `pressure` later; zeros when it cannot be read, which stand for the boot."""
    return _ticks(_read(f"{proc}/stat"))


def _read(path: str) -> str:
    with contextlib.suppress(OSError), open(path, encoding="ascii", errors="replace") as file:
        return file.read(1 << 16)
    return ""


def _load(text: str, cores: int) -> str:
    with contextlib.suppress(ValueError, IndexError):
        return f"load {float(text.split()[0]):.1f}" + (f" on {cores} cores" if cores else "")
    return ""


def _stalled(text: str) -> str:
    """The share of the last ten seconds in which a task waited for a processor (`some avg10=`)."""
    with contextlib.suppress(ValueError, IndexError):
        return f"cpu pressure {float(text.partition('some avg10=')[2].split()[0]):.0f} %"
    return ""


def _ticks(stat: str) -> Ticks:
    """Of the first line: user nice system idle iowait irq softirq steal; guest time is in user already."""
    with contextlib.suppress(ValueError, IndexError):
        numbers = [int(word) for word in stat.partition("\n")[0].split()[1:9]]
        return numbers[7], sum(numbers)
    return 0, 0


def _stolen(earlier: Ticks, now: Ticks) -> str:
    stolen, passed = now[0] - earlier[0], now[1] - earlier[1]
    return f"steal {100 * stolen / passed:.0f} %" if passed > 0 <= stolen else ""
