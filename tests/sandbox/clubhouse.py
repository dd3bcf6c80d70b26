"""A web site with forms, cookies and accounts: a function from a request to an answer, with switches.

Each switch is one defect. Without any it is healthy, and odd: a second cookie that scripts may read, members'
handles on a public page, notes that every member may open and edit though only their writer's list has them,
a book that every visitor writes in without a token, titles that speak of what is yours, a query that stands
in a page, a search that answers with its reader's cookie and passphrase, a redirect that stays on the site,
uploads served as attachments.
"""

from __future__ import annotations

import re
import secrets
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.sandbox.doubles import Got, http_answer

HTML = "content-type: text/html; charset=utf-8"
HEAD = "<!doctype html><html lang=en><head><title>{0} - your club</title></head>"
PAGE = f"{HEAD}<body><h1>{{0}}</h1>{{1}}{{2}}</body></html>"
LINKS = (
    '<nav><a href="/">home</a> <a href="/members">members</a> <a href="/wall">wall</a> '
    '<a href="/guests">guests</a> '
    '<a href="/drafts">drafts</a> <a href="/drafts/new">new</a> <a href="/notes">notes</a> '
    '<a href="/papers">papers</a> <a href="/seats">seats</a> <a href="/search?q=moss">search</a> '
    '<a href="/enter">sign in</a> <a href="/join">join</a></nav>'
)
_KINDS = {"html": "text/html", "svg": "image/svg+xml", "txt": "text/plain"}


class Clubhouse:
    """Switches: `readable`, `fixed`, `kept` of the session; `reads`, `exports`, `writes` of another's drafts,
    `rewrites` of another's profile; `ranks` by its own; `sums`, `opens` and `echoes` what stands in a
    query of the drafts, `previews` what stands in a new one, `breaks` on a quote in a note; `tickets` and
    `cancels` of another's seat, which is taken in two steps; `scripts` on the wall; `tokenless`; `away`;
    `served` and `climbs` of uploads; `cached` what is inside. `astray` leads to a stranger's thing."""

    def __init__(self, *switches: str) -> None:
        self.on = frozenset(switches)
        self.people: dict[str, str] = {}
        self.mottos: dict[str, str] = {}
        self.managers: set[str] = set()
        self.sessions: dict[str, str] = {}
        """By the value of the cookie; "" for a visitor."""
        self.wall: list[str] = []
        self.guests: list[str] = []
        self.drafts = {"9001": ("a stranger", "a stranger's")}
        self.notes: dict[str, tuple[str, str]] = {}
        self.seats: dict[str, str] = {"9001": ""}
        """By number; "" is a stranger's, which every member sees."""
        self.cancelled: set[str] = set()
        self.files: dict[str, tuple[str, bytes]] = {}
        self.acts: list[str] = []
        self._set: list[str] = []
        self._count = 100

    def __call__(self, got: Got) -> bytes:
        parts = urlsplit(got.path)
        cookies = dict(
            one.strip().split("=", 1) for one in got.headers.get("cookie", "").split(";") if "=" in one
        )
        sid = cookies.get("club", "")
        self._set = []
        if sid not in self.sessions:
            sid = self._session("")
        if got.method == "POST":
            self.acts.append(parts.path)
            status, page, *more = self._post(parts.path, parts.query, sid, *_fields(got))
        else:
            status, page, *more = self._get(unquote(parts.path), parts.query, sid)
        kind = () if any(one.startswith("content-type") for one in more) else (HTML,)
        body = page if isinstance(page, bytes) else page.encode()
        public = {"/", "/members", *({"/drafts"} if "cached" in self.on else ())}
        kept = ("cache-control: public, max-age=60",) if parts.path in public else ()
        return http_answer(status, body, *kind, *more, *kept, *self._set)

    def _session(self, user: str) -> str:
        sid = f"{user}{secrets.token_hex(12)}"
        self.sessions[sid] = user
        flags = "" if "readable" in self.on else "; HttpOnly"
        self._set = [
            f"set-cookie: club={sid}; Path=/{flags}",
            "set-cookie: theme=dark-and-long-1; Path=/",
        ]
        return sid

    def _page(self, title: str, text: str, sid: str) -> tuple[int, str]:
        user = self.sessions[sid]
        me = f'<p>Signed in as <a href="/people/{self._number(user)}">{user}</a></p>'
        leave = f"{me}{self._form('/leave', sid, '')}" if user else ""
        ledger = '<a href="/ledger">ledger</a>' if user in self.managers else ""
        return 200, PAGE.format(title, LINKS + leave + ledger, text)

    def _form(self, action: str, sid: str, controls: str, *, token: bool = True, more: str = "") -> str:
        hidden = f'<input type=hidden name=proof value="{_token(sid)}">' if token else ""
        return f'<form method=post action="{action}"{more}>{hidden}{controls}<button>go</button></form>'

    def _get(self, path: str, query: str, sid: str) -> tuple[Any, ...]:
        user = self.sessions[sid]
        guests = escape(" ".join(self.guests)) + self._form("/guests", sid, "<input name=text>", token=False)
        public = {
            "/": "Welcome",
            "/members": " ".join(self.people),
            "/wall": self._wall(sid),
            "/guests": guests,
        }
        if path in public:
            return self._page("Club", public[path], sid)
        if path == "/search":
            return self._page("Search", escape(unquote(query)), sid)
        if path in ("/join", "/enter"):
            names = "<input name=user required><input name=secret_password type=password required>"
            terms = "<input name=mail type=email required><input type=checkbox name=terms required>"
            action = "" if path == "/enter" else path
            return self._page(
                "Door", self._form(action, sid, names + (terms if path == "/join" else "")), sid
            )
        if found := re.fullmatch(r"/people/(\d+)", path):
            return self._page("Member", self._motto(found[1], user), sid)
        if path in self.files:
            return self._file(path)
        if not user:
            return 303, "", f"location: /enter?next={quote(path)}"
        return self._inside(path, user, sid, query)

    def _inside(self, path: str, user: str, sid: str, query: str) -> tuple[Any, ...]:
        if found := re.fullmatch(r"/people/(\d+)/edit", path):
            if found[1] != self._number(user):
                return 404, "gone"
            text = f"<textarea name=motto>{escape(self.mottos.get(found[1], ''))}</textarea>"
            form = self._form(f"/people/{found[1]}", sid, text, token="tokenless" not in self.on)
            return self._page("Your profile", form, sid)
        if path == "/drafts":
            asked = parse_qs(query)
            if "opens" in self.on and "etc/passwd" in asked.get("sort", [""])[0].replace("....//", "../"):
                return self._page("Drafts", Path("/etc/passwd").read_text(), sid)
            words = asked.get("words", [""])[0]
            if "sums" in self.on and (found := re.fullmatch(r"(\d+)\*(\d+)", words)):
                return self._page("Drafts", f"<p>of {int(found[1]) * int(found[2])}</p>", sid)
            mine = [key for key, (owner, _) in self.drafts.items() if owner == user]
            told = f"<p>{sid} {_token(sid)} {user} {self.people[user]}</p>" if words else ""
            shown = words if "echoes" in self.on else escape(words)
            search = f'<form action=/drafts><input name=words value="{shown}"></form>'
            order = '<a href="/drafts?sort=age">by age</a>'
            return self._page("My drafts", search + told + order + "".join(map(self._draft_link, mine)), sid)
        if path == "/drafts/new":
            return self._page(
                "New",
                self._form(
                    "/drafts",
                    sid,
                    "<textarea name=text required></textarea><button name=look>Preview</button>",
                ),
                sid,
            )
        if path == "/seats":
            return self._page(
                "Seats",
                "".join(
                    self._form("/seats/choose", sid, f"<input type=hidden name=row value={row}>")
                    for row in ("full", "3")
                ),
                sid,
            )
        if path == "/seats/confirm":
            return self._page(
                "Sure?", self._form("/seats/confirm", sid, "<input type=hidden name=row value=3>"), sid
            )
        if found := re.fullmatch(r"/seats/(\d+)(/ticket)?", path):
            owner = self.seats.get(found[1])
            if owner is None or (owner not in ("", user) and not (found[2] and "tickets" in self.on)):
                return 404, "gone"
            kept = found[1] not in self.cancelled
            cancel = self._form(f"/seats/{found[1]}/cancel", sid, "") if kept else "cancelled"
            return self._page("Seat", f'<a href="/seats/{found[1]}/ticket">ticket</a>{cancel}', sid)
        if path == "/notes":
            noted = [(key, text) for key, (writer, text) in self.notes.items() if writer == user]
            listed = "".join(f'<a href="/notes/{key}">{escape(text)}</a>' for key, text in noted)
            return self._page("Notes", listed + self._form("/notes", sid, "<input name=text>"), sid)
        if path == "/papers":
            listed = "".join(f'<a href="{escape(name)}">{escape(name)}</a>' for name in self.files)
            form = self._form(
                "/papers", sid, "<input type=file name=paper>", more=" enctype=multipart/form-data"
            )
            return self._page("Your papers", listed + form, sid)
        found = re.fullmatch(r"/(drafts|notes)/(\d+)(/edit|/export)?", path)
        return self._thing(found[1], found[2], found[3] or "", user, sid) if found else (404, "gone")

    def _thing(self, kind: str, key: str, view: str, user: str, sid: str) -> tuple[Any, ...]:
        owner, text = (
            self.drafts.get(key, ("", "")) if kind == "drafts" else (user, self.notes.get(key, ("", ""))[1])
        )
        freed = {"": "reads", "/export": "exports"}.get(view, "") in self.on
        if not text or (owner != user and not freed):
            return 404, "gone"
        edit = self._form(f"/{kind}/{key}", sid, f"<textarea name=text>{escape(text)}</textarea>")
        link = f'<a href="/{kind}/{key}/edit">edit</a><a href="/{kind}/{key}/export">export</a>'
        return self._page("Thing", edit if view == "/edit" else escape(text) + link, sid)

    def _post(
        self, path: str, query: str, sid: str, sent: dict[str, str], files: dict[str, Any]
    ) -> tuple[Any, ...]:
        user = self.sessions[sid]
        if path == "/guests":
            self.guests.append(sent["text"])
            return 303, "", "location: /guests"
        unproven = "tokenless" in self.on and path.startswith("/people/")
        if sent.get("proof") != _token(sid) and not unproven:
            return 403, "no proof"
        if path == "/join" and sent.get("terms") and "@" in sent.get("mail", ""):
            self.people[sent["user"]] = sent["secret_password"]
            return 303, "", "location: /enter"
        if path == "/enter":
            return self._enter(query, sid, sent)
        if not user:
            return 303, "", "location: /enter"
        if path == "/leave":
            if "kept" not in self.on:
                self.sessions[sid] = ""
            self._set = ["set-cookie: club=; Path=/; Max-Age=0"]
            return 303, "", "location: /"
        return self._write(path, user, sent, files)

    def _enter(self, query: str, sid: str, sent: dict[str, str]) -> tuple[Any, ...]:
        if self.people.get(sent["user"]) != sent["secret_password"]:
            return 200, "no such member"
        if "fixed" in self.on:
            self.sessions[sid] = sent["user"]
        else:
            self._session(sent["user"])
        to = parse_qs(query).get("next", ["/"])[0]
        local = to.startswith("/") and not to.startswith(("//", "/\\"))
        return 303, "", f"location: {to if local or 'away' in self.on else '/'}"

    def _write(self, path: str, user: str, sent: dict[str, str], files: dict[str, Any]) -> tuple[Any, ...]:
        self._count += 1
        key, text = str(self._count), sent.get("text", "")
        if found := re.fullmatch(r"/people/(\d+)", path):
            if found[1] != self._number(user) and "rewrites" not in self.on:
                return 403, "not yours"
            self.mottos[found[1]] = sent["motto"]
            self.managers |= {user} if "ranks" in self.on and sent.get("role") == "manager" else set()
            return 303, "", f"location: {path}"
        if path == "/wall":
            self.wall.append(sent["words"])
            return 303, "", "location: /wall"
        if path == "/drafts" and "look" in sent:
            sum_ = re.search(r"\{\{(\d+)\*(\d+)\}\}", text) if "previews" in self.on else None
            return 200, f"<p>{int(sum_[1]) * int(sum_[2]) if sum_ else escape(text)}</p>"
        if path == "/drafts" and text:
            self.drafts[key] = (user, text)
            return 303, "", f"location: /drafts/{9001 if 'astray' in self.on else key}"
        if path == "/seats/choose" and sent["row"] == "full":
            return 409, "it was just taken"
        if path == "/seats/choose":
            return 303, "", "location: /seats/confirm"
        if path == "/seats/confirm":
            self.seats[key] = user
            return 303, "", f"location: /seats/{9001 if 'astray' in self.on else key}"
        if (found := re.fullmatch(r"/seats/(\d+)/cancel", path)) and found[1] in self.seats:
            if self.seats[found[1]] != user and "cancels" not in self.on:
                return 403, "not yours"
            self.cancelled.add(found[1])
            return 303, "", "location: /seats"
        if path == "/notes" and "breaks" in self.on and text.count("'") % 2:
            return 500, "something went wrong"
        if path == "/notes" and text:
            self.notes[key] = (user, text)
            return 303, "", "location: /notes"
        if path == "/papers" and files:
            return self._keep(*files["paper"])
        kind, _, key = path[1:].partition("/")
        owner = self.drafts.get(key, ("", ""))[0]
        if kind == "drafts" and owner and (owner == user or "writes" in self.on):
            self.drafts[key] = (owner, text)
            return 303, "", f"location: {path}"
        if kind == "notes" and key in self.notes:
            self.notes[key] = (self.notes[key][0], text)
            return 303, "", f"location: {path}"
        return 404, "gone"

    def _keep(self, name: str, body: bytes) -> tuple[Any, ...]:
        folder = ["papers", "of"]
        for part in name.replace("\\", "/").split("/")[:-1] if "climbs" in self.on else ():
            folder = folder[:-1] if part == ".." else [*folder, part]
        self.files["/" + "/".join([*folder, name.replace("\\", "/").rpartition("/")[2]])] = (name, body)
        return 303, "", "location: /papers"

    def _file(self, path: str) -> tuple[Any, ...]:
        kind = _KINDS.get(path.rpartition(".")[2], "text/plain")
        if "served" in self.on:
            return 200, self.files[path][1], f"content-type: {kind}"
        headers = (
            "content-type: text/plain",
            "content-disposition: attachment",
            "x-content-type-options: nosniff",
        )
        return 200, self.files[path][1], *headers

    def _wall(self, sid: str) -> str:
        shown = self.wall if "scripts" in self.on else map(escape, self.wall)
        write = self._form("/wall", sid, "<textarea name=words></textarea>") if self.sessions[sid] else ""
        return write + "".join(f"<p>{one}</p>" for one in shown)

    def _motto(self, number: str, user: str) -> str:
        motto = self.mottos.get(number, "")
        edit = f'<a href="/people/{number}/edit">edit</a>' if number == self._number(user) else ""
        return f'<p title="{escape(motto)}">a member</p>{edit}'

    def _number(self, user: str) -> str:
        return str(list(self.people).index(user) + 7) if user in self.people else ""

    def _draft_link(self, key: str) -> str:
        return f'<a href="/drafts/{key}">{escape(self.drafts[key][1])}</a>'


def _token(sid: str) -> str:
    return f"proof-{sid[::-1]}"


def _fields(got: Got) -> tuple[dict[str, str], dict[str, tuple[str, bytes]]]:
    """The texts and the files of a form."""
    kind = got.headers.get("content-type", "")
    if not kind.startswith("multipart/"):
        read = parse_qs(got.body.decode(), keep_blank_values=True)
        return {name: values[0] for name, values in read.items()}, {}
    sent: dict[str, str] = {}
    files: dict[str, tuple[str, bytes]] = {}
    for part in got.body.split(b"--" + kind.partition("boundary=")[2].encode())[1:-1]:
        head, _, body = part.strip(b"\r\n").partition(b"\r\n\r\n")
        name = re.search(r' name="([^"]*)"', head.decode())
        file = re.search(r'filename="([^"]*)"', head.decode())
        assert name
        if file:
            files[name[1]] = (file[1], body)
        else:
            sent[name[1]] = body.decode()
    return sent, files
