"""The notices that the pages show until a person dismisses them."""

from __future__ import annotations

from fleet.service.notify.state import FACTS, ShownNotice, read_state
from fleet.store.journal import Journal


async def shown_notices(journal: Journal) -> list[ShownNotice]:
    """Those of every platform of the journal, newest first, dismissed ones too."""
    documents = (await journal.facts(FACTS)).values()
    found = [one for text in documents for one in read_state(text).shown]
    return sorted(found, key=lambda one: one.at, reverse=True)


async def dismiss(journal: Journal, ident: str, who: str, at: str) -> bool:
    """Take it off the pages; False for one that is not open. A round of the watch meanwhile loses nothing."""
    for key in await journal.facts(FACTS):
        while True:
            text = await journal.get(key)
            state = read_state(text)
            if not any(one.id == ident and not one.dismissed for one in state.shown):
                break
            shown = tuple(
                one.model_copy(update={"dismissed": at, "dismissed_by": who}) if one.id == ident else one
                for one in state.shown
            )
            after = state.model_copy(update={"shown": shown})
            if await journal.swap(key, text, after.model_dump_json()):
                return True
    return False
