"""The platform's own pages, documents and assets."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from fleet.devnet.platform.api import display
from fleet.devnet.platform.site import CREDIT, TEMPLATES, site_of

SPONSOR_KEY = "0x" + "5e" * 32
"""The key that the defect `sponsor-key-exposed` ships in the client. A decoy without funds on any chain."""

CLIENT = """"use strict";
const PROXY = "/v1beta/models/gemini-flash:generateContent";
"""

SKILL_HEAD = """---
name: devnet-platform
description: Call agents, read faces and publish apps on this platform.
---
"""

MARK = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" role="img"><title>Devnet</title>'
    '<circle cx="16" cy="16" r="12" fill="#2a6f4e"/></svg>'
)


async def index(request: Request) -> Response:
    return TEMPLATES.TemplateResponse(request, "index.html")


async def settings_page(request: Request) -> Response:
    """`GET /settings`: a form and an image, so a page that can be got wrong for some of its readers."""
    broken = "a11y-violations" in site_of(request).defects
    return TEMPLATES.TemplateResponse(request, "settings_broken.html" if broken else "settings.html")


async def llms(request: Request) -> Response:
    return PlainTextResponse(_document(request))


async def skill(request: Request) -> Response:
    """The same document with the front matter of a skill."""
    price = CREDIT if "confusing-copy" in site_of(request).defects else None
    return PlainTextResponse(SKILL_HEAD + _document(request, price), media_type="text/markdown")


def _document(request: Request, price_wei: int | None = None) -> str:
    """The one source of both documents."""
    settings = site_of(request).settings
    price = display(settings.price_wei if price_wei is None else price_wei)
    context = {"url": settings.public_url, "price": price, "settings": settings}
    return str(TEMPLATES.get_template("guide.md").render(context))


async def client_js(request: Request) -> Response:
    """The script that pages load."""
    leaked = f'const SPONSOR_PRIVATE_KEY = "{SPONSOR_KEY}";\n'
    script = CLIENT + leaked if "sponsor-key-exposed" in site_of(request).defects else CLIENT
    return Response(script, media_type="text/javascript")


async def mark_svg(_request: Request) -> Response:
    return Response(MARK, media_type="image/svg+xml")
