"""The variables of one function body: block scoping and shadowing."""

from __future__ import annotations

from .nodes import Local


class LocalScope:
    """Nested scopes over one flat list of variables; a shadowed variable keeps its own slot."""

    def __init__(self) -> None:
        self.locals: list[Local] = []
        self._open: list[dict[str, Local]] = [{}]

    def open(self) -> None:
        self._open.append({})

    def close(self) -> None:
        self._open.pop()

    def find(self, name: str) -> Local | None:
        return next((names[name] for names in reversed(self._open) if name in names), None)

    def define(self, name: str, kind: str, mutable: bool) -> Local:
        local = self.hidden(kind, name, mutable)
        self._open[-1][name] = local
        return local

    def hidden(self, kind: str, name: str = "", mutable: bool = False) -> Local:
        """A variable that no name reaches."""
        local = Local(name, kind, mutable, len(self.locals))
        self.locals.append(local)
        return local
