"""The pages of a generated platform: a site with forms, accessible unless the switch says otherwise."""

from __future__ import annotations

import json
from html import escape
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from bench.findings.site.house import GeneratedSite
from fleet.devnet.platform.names import is_name

PAPERS = {
    "rules.txt": "House rules.\nBe kind. Close the gate.\n",
    "hours.txt": "Open from eight to six.\n",
}
OUTSIDE = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n",
    "proc/self/environ": "PATH=/usr/bin\0HOME=/srv\0",
}
STYLE = "body { font-family: serif; max-width: 60ch; }\n"
SVG = "http://www.w3.org/2000/svg"
PICTURE = f'<svg xmlns="{SVG}" viewBox="0 0 8 8"><title>a mark</title><path d="M1 1h6v6z"/></svg>'
URL_SAFE = ":/%#?=@[]!$&'()*+,;"
FLAGS = ("HttpOnly", "Secure", "SameSite=Lax")


def house_of(request: Request) -> GeneratedSite:
    """The platform that serves this request."""
    house: GeneratedSite = request.app.state.house
    return house


def page(house: GeneratedSite, role: str, title: str, body: str) -> HTMLResponse:
    """A whole page with the site's frame; faults of the accessibility switch go in here."""
    plan, at = house.blueprint, house.blueprint.paths
    links = ((at[one], one) for one in ("search", "prefs", "gallery", "about", "handbook", "session"))
    nav = "".join(f'<li><a href="{path}">{plan.product} {label}</a></li>' for path, label in links)
    lang, head = ' lang="en"', f"<title>{escape(title)} - {plan.product}</title>"
    if fault := house.on("accessibility", role):
        lang, head, body = _spoilt(fault.kind, lang, head, body)
    if secret := house.on("secret", role):
        body += f"<!-- {secret.data['text']} -->"
    if dead := house.on("dead-link", role):
        body += f'<p><a href="{dead.data["path"]}">More on this</a></p>'
    return HTMLResponse(
        f'<!doctype html>\n<html{lang}>\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n{head}\n'
        f'<link rel="stylesheet" href="{at["folder"]}site.css">\n'
        f'<script src="{at["script"]}" defer></script>\n'
        f'</head>\n<body>\n<nav aria-label="Main"><ul><li><a href="/">Home</a></li>{nav}</ul></nav>\n'
        f"<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _spoilt(kind: str, lang: str, head: str, body: str) -> tuple[str, str, str]:
    """The parts of a page with one rule of accessibility broken."""
    if kind == "lang":
        return "", head, body
    if kind == "title":
        return lang, "", body
    more = {
        "label": '<form action="/"><input type="text" name="extra"></form>',
        "alt": '<img src="/mark.svg" width="40" height="40">',
        "button": '<form action="/"><button type="submit"></button></form>',
        "link": '<p><a href="/"></a></p>',
    }
    return lang, head, body + more[kind]


def echo(house: GeneratedSite, role: str, value: str) -> str:
    """A visitor's text as a page shows it again: in element, attribute and script, escaped for each."""
    loose = house.on("script-injection", role)
    context = loose.kind if loose else ""
    value = house.computed(role, value)
    inside = value if context == "element" else escape(value)
    quoted = escape(value, quote=False) if context == "attribute" else escape(value)
    code = json.dumps(value).replace("<", "\\u003c")
    if context == "script":
        code = '"' + value.replace("<", "\\u003c").replace("\n", " ") + '"'
    return (
        f'<p>You asked for: {inside}</p>\n<p data-asked="{quoted}">Thank you.</p>\n'
        f"<script>window.asked = {code};</script>"
    )


async def index(request: Request) -> Response:
    house = house_of(request)
    plan = house.blueprint
    faces = "".join(f'<li><a href="{plan.face_of(one)}">The face of {one}</a></li>' for one in plan.agents)
    docs = "".join(
        f'<li><a href="{plan.paths[role]}">Document {plan.paths[role]}</a></li>' for role in ("llms", "guide")
    )
    return page(house, "index", f"{plan.product}: agents and notices", f"<ul>{faces}{docs}</ul>")


async def search(request: Request) -> Response:
    """A form, what was asked, and what was found."""
    house = house_of(request)
    name, at = house.blueprint.params["term"], house.blueprint.paths
    term = request.query_params.get(name, "")
    rows = house.select("search", term, 20) if term else []
    found = "".join(
        f'<li><a href="{at["entries"]}/{one["id"]}">{escape(str(one["title"]))}</a></li>' for one in rows
    )
    form = (
        f'<form action="{at["search"]}" method="get"><label for="w">Words</label>'
        f'<input id="w" name="{name}" type="search"><button type="submit">Find</button></form>'
    )
    return page(house, "search", "Find a notice", f"{form}\n{echo(house, 'search', term)}\n<ul>{found}</ul>")


async def prefs(request: Request) -> Response:
    house = house_of(request)
    name, at = house.blueprint.params["theme"], house.blueprint.paths
    form = (
        f'<form action="{at["prefs"]}" method="get"><label for="t">Theme</label>'
        f'<input id="t" name="{name}" type="text"><button type="submit">Show</button></form>'
    )
    return page(
        house, "prefs", "How pages look", form + echo(house, "prefs", request.query_params.get(name, "plain"))
    )


async def gallery(request: Request) -> Response:
    house = house_of(request)
    pictures = "".join(
        f'<li><img src="/mark.svg" alt="Picture {n}" width="40" height="40"></li>' for n in (1, 2)
    )
    return page(house, "gallery", "Pictures", f"<ul>{pictures}</ul>")


async def about(request: Request) -> Response:
    house = house_of(request)
    body = f'<p>{house.blueprint.product} is run by four people.</p><p><a href="/">Back home</a></p>'
    return page(house, "about", "Who we are", body)


async def session(request: Request) -> Response:
    """Begins a visit: a cookie that scripts cannot read."""
    house = house_of(request)
    answer = page(house, "session", "Welcome", "<p>Your visit has begun.</p>")
    missing = house.on("cookie-flags", "session")
    flags = [one for one in FLAGS if not missing or one not in missing.data["without"]]
    answer.headers["set-cookie"] = "; ".join(["sid=5f0c9a7be1d24c33", "Path=/", *flags])
    return answer


async def jump(request: Request) -> Response:
    """Goes to a page of this site; anything else goes home."""
    house = house_of(request)
    target = request.query_params.get(house.blueprint.params["next"], "/")
    loose = house.on("open-redirect", "jump")
    kind = loose.kind if loose else ""
    local = target.startswith("/") and target[1:2] not in ("/", "\\") and target.isprintable()
    let = {
        "absolute": target.startswith(("http://", "https://")),
        "slashes": target.startswith("//"),
        "prefix": target.startswith(house.url.rpartition(":")[0]),
        "backslash": target.startswith("/\\"),
    }
    to = target if local or let.get(kind, False) else "/"
    kept = URL_SAFE + "\\" * (kind == "backslash")  # a browser reads one as a slash, but not its escape
    return Response(status_code=302, headers={"location": quote(to, safe=kept)})


async def shelf(request: Request) -> Response:
    """A paper by its file name, from one folder."""
    house = house_of(request)
    name = request.query_params.get(house.blueprint.params["file"], "rules.txt")
    if name in PAPERS:
        return PlainTextResponse(PAPERS[name])
    if climbed := climb(house, "shelf", name):
        return PlainTextResponse(climbed)
    raise HTTPException(404, "there is no such paper")


async def folder(request: Request) -> Response:
    """Style sheets and pictures; the folder itself is not shown."""
    house = house_of(request)
    rest = request.path_params["rest"]
    if rest == "" and house.on("directory-listing", "folder"):
        path = house.blueprint.paths["folder"]
        rows = "".join(f'<li><a href="{path}{one}">{one}</a></li>' for one in ("mark.svg", "site.css"))
        return HTMLResponse(
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Index of {path}</title>'
            f"</head><body><h1>Index of {path}</h1><ul>{rows}</ul></body></html>\n"
        )
    if rest == "site.css":
        return Response(STYLE, media_type="text/css")
    if rest == "mark.svg":
        return Response(PICTURE, media_type="image/svg+xml")
    if climbed := climb(house, "folder", rest):
        return PlainTextResponse(climbed)
    raise HTTPException(404, "there is no such page")


def climb(house: GeneratedSite, place: str, name: str) -> str:
    """What a path outside the folder leads to, on a file system of our own; "" when it leads nowhere."""
    loose = house.on("path-climb", place)
    if not loose:
        return ""
    if loose.kind == "once":  # removes `../` once, so that `....//` becomes it
        name = name.replace("../", "")
    elif loose.kind == "encoded":
        if "../" in name:
            return ""
        name = name.replace("%2e", ".").replace("%2E", ".").replace("%2f", "/").replace("%2F", "/")
    parts = ["srv", "site", "papers"]
    for one in name.split("/"):
        if one == "..":
            parts = parts[:-1]
        elif one not in ("", "."):
            parts.append(one)
    return OUTSIDE.get("/".join(parts), "")


async def mark(request: Request) -> Response:  # noqa: ARG001  the framework's own signature
    return Response(PICTURE, media_type="image/svg+xml")


async def face(request: Request) -> Response:
    """`GET /…/{name}/`: the public face of a name."""
    house = house_of(request)
    name = request.path_params["name"]
    if not is_name(name) or await house.chain.id_of_name(name) == 0:
        raise HTTPException(404, "no such name")
    asked = request.query_params.get(house.blueprint.params["view"], "")
    body = f"<p>This is the face of {escape(name)}.</p>" + (echo(house, "face", asked) if asked else "")
    return page(house, "face", name, body)
