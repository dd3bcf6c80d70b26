"""The formats of the worklist for other tools: each is a file beside this one and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from types import MappingProxyType

from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import WorklistHeader
from fleet.triage.outputs.item_page import NO_PAGES, ItemPage


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """One format. `writer` is `module:function`, loaded when it is asked for; `state` the items it lists;
    `paged`: it shows the pages of items, which its function takes after the header."""

    says: str
    writer: str
    state: str = "open"
    paged: bool = False

    def written(
        self, items: Sequence[WorklistItem], header: WorklistHeader, pages: Mapping[str, ItemPage] = NO_PAGES
    ) -> bytes:
        """The items in this format."""
        write: Callable[..., bytes] = resolve_name(f"{__package__}.{self.writer}")
        return write(items, header, pages) if self.paged else write(items, header)


FORMATS: Mapping[str, OutputFormat] = MappingProxyType(
    {
        "sarif": OutputFormat("Print SARIF 2.1.0.", "sarif:to_sarif", paged=True),
        "csv": OutputFormat("Print CSV.", "csv_file:to_csv"),
        "junit": OutputFormat("Print JUnit XML: an open item fails.", "junit:to_junit", state="all"),
        "html": OutputFormat("Print one static page.", "html_page:to_html", paged=True),
    }
)
"""By name, which is also the option of `fleet items`."""
