"""String literals in the module's memory."""

from __future__ import annotations

from collections.abc import Iterator

PAGE = 65_536
BASE = 8
"""First address used, so that no text is at address 0."""


class Strings:
    """Texts by address; equal texts share one."""

    def __init__(self) -> None:
        self.used = False
        self._at: dict[bytes, int] = {}
        self._end = BASE

    def address(self, text: bytes) -> int:
        self.used = True
        if text not in self._at:
            self._at[text] = self._end
            self._end += len(text)
        return self._at[text]

    @property
    def pages(self) -> int:
        return -(-self._end // PAGE)

    def segments(self) -> Iterator[tuple[int, str]]:
        """Address and WAT-escaped text of each."""
        for text, at in self._at.items():
            yield at, "".join(f"\\{byte:02x}" for byte in text)
