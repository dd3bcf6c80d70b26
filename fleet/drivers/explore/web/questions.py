"""The questions of the explorer of pages, each with what its answers are for."""

from __future__ import annotations

from dataclasses import dataclass

from fleet.drivers.desk import Question
from fleet.drivers.explore.web.site_map import Places


@dataclass(frozen=True, slots=True)
class PageVisit(Question):
    """One page, read for what it refers to."""

    url: str = ""


@dataclass(frozen=True, slots=True)
class RouteCheck(Question):
    """A document, then a route that it writes down, with the places of the route's values."""

    url: str = ""
    places: Places = ()


@dataclass(frozen=True, slots=True)
class DeadLink(Question):
    """A page, then what it links to, which was not there."""

    url: str = ""


@dataclass(frozen=True, slots=True)
class Comparison(Question):
    """All documents; the digest of what they were when last seen."""

    digest: str = ""
