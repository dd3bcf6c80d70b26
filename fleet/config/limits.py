"""Figures at which tests end by themselves, and how long and how large one answer may be: `[limits]`."""

from __future__ import annotations

from pydantic import Field

from fleet.config.section import Section


class LimitsSection(Section):
    """Stated in the header of each run. Three quarters of a figure is reported (notice `strain`)."""

    slower: float = Field(default=1.2, ge=1.05, le=10)
    """How many times its usual time a page of another machine's host may take before that host is asked less;
    twice on this machine, whose pages take milliseconds."""
    error_share: float = Field(default=0.5, gt=0, le=1)
    """The share of requests to a host without an answer, or answered 502, 503 or 504, at which a run ends as
    `target_degraded`."""
    error_s: float = Field(default=120.0, ge=1, le=86_400)
    """Seconds for which that share must last."""
    memory_megabytes: int = Field(default=4_096, strict=True, ge=64, le=1_000_000)
    """Memory of the service itself at which STOP is set."""
    load: float = Field(default=32.0, ge=1, le=1_000)
    """Processes that wait for each processor of this machine, over a minute, at which STOP is set."""
    feeds: dict[str, tuple[str, ...]] = {}
    """Which targets others depend on, by their names in `fleet runs show`: `site = ["proxy"]`. While one of
    those is not well, the first is asked nothing but looks, and they nothing while it does not answer."""
    risk_most: int = Field(default=15, strict=True, ge=1, le=25)
    """The most that one call may risk by the method of docs/safety.md, from 1 to 25; more is refused."""
    connect_s: float = Field(default=10.0, ge=0.1, le=60)
    """Seconds until a connection must be there."""
    read_s: float = Field(default=30.0, ge=0.1, le=600)
    """Longest wait for the first bytes of an answer."""
    request_s: float = Field(default=30.0, ge=0.1, le=600)
    """Longest time of one request, its answer included."""
    answer_megabytes: int = Field(default=16, strict=True, ge=1, le=64)
    """Longest answer; what is longer is cut, and does not count as one."""
    pages: int = Field(default=600, strict=True, ge=1, le=10_000)
    """Most pages that an explorer knows of one platform: endless lists of pages end there."""
