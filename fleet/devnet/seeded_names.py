"""The names that exist on the devnet before any run: agents to call and faces to fetch."""

from __future__ import annotations

from dataclasses import dataclass

from fleet.chain.node.digest import ZERO_ADDRESS, metadata_key
from fleet.chain.node.rpc import Rpc
from fleet.devnet import node


@dataclass(frozen=True, slots=True)
class SeededName:
    """A name with its persona (the agent's system prompt) and the page that visitors see."""

    name: str
    persona: str
    html: str


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


SEEDED_NAMES = (
    SeededName(
        "claude",
        "You are claude, the resident agent of this platform. You answer questions on names, faces and apps.",
        _page("claude", "<p>The resident agent. Ask it about names, faces and apps.</p>"),
    ),
    SeededName(
        "docs",
        "You are docs. You explain how to claim a name, publish a face and call an agent, step by step.",
        _page(
            "docs",
            "<p>How to claim a name, publish a face and call an agent.</p>\n"
            '<ul>\n<li><a href="/llms.txt">llms.txt</a></li>\n'
            '<li><a href="/skill.md">skill.md</a></li>\n</ul>',
        ),
    ),
)


async def register_seeded_names(rpc: Rpc, diamond: str, token: str, owner: str) -> None:
    """Registers what is free and writes the metadata that is missing; correct ones are left alone."""
    for seeded in SEEDED_NAMES:
        if await rpc.view(diamond, "ownerOfName", seeded.name) == ZERO_ADDRESS:
            cost = await rpc.view(diamond, "registrationCost")
            if cost:
                await node.invoke(rpc, owner, token, "approve", diamond, cost)
            await node.invoke(rpc, owner, diamond, "register", seeded.name)
        ident = await rpc.view(diamond, "idOfName", seeded.name)
        wanted = {
            "localharness.persona": seeded.persona,
            "localharness.public.html": seeded.html,
            "localharness.public_face": "html",
        }
        for label, text in wanted.items():
            key = metadata_key(label)
            if await rpc.view(diamond, "metadata", ident, key) != text.encode():
                await node.invoke(rpc, owner, diamond, "setMetadata", ident, key, text.encode())
