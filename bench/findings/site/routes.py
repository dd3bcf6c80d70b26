"""Every route that a generated platform documents: the one table behind all its documents. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bench.findings.blueprint import Blueprint

HTML, JSON, TEXT, MARKDOWN = "text/html", "application/json", "text/plain", "text/markdown"
SCRIPT, REDIRECT = "text/javascript", "a redirect"


@dataclass(frozen=True, slots=True)
class Documented:
    """`query` is (parameter, what it takes, an example) for each parameter."""

    role: str
    path: str
    kind: str
    about: str
    query: tuple[tuple[str, str, str], ...] = ()

    @property
    def example(self) -> str:
        """The path with example values."""
        path = self.path.replace("{id}", "1")
        given = "&".join(f"{name}={value}" for name, _, value in self.query)
        return f"{path}?{given}" if given else path


def documented(plan: Blueprint) -> tuple[Documented, ...]:
    """All GET routes that the documents name, in their order."""
    at, name = plan.paths, plan.params
    agent, word = plan.agents[0], plan.titles[0].split()[0]
    zero = "0x" + "0" * 40
    pages = (
        Documented("search", at["search"], HTML, "finds notices", ((name["term"], "words", word),)),
        Documented("prefs", at["prefs"], HTML, "shows how pages look", ((name["theme"], "a word", "plain"),)),
        Documented("gallery", at["gallery"], HTML, "shows pictures"),
        Documented("about", at["about"], HTML, "says who runs this"),
        Documented("handbook", at["handbook"], HTML, "explains everything to people"),
        Documented("session", at["session"], HTML, "begins a visit"),
        Documented(
            "jump", at["jump"], REDIRECT, "goes to a page of this site", ((name["next"], "a path", "/"),)
        ),
        Documented(
            "shelf", at["shelf"], TEXT, "reads a paper", ((name["file"], "a file name", "rules.txt"),)
        ),
        Documented("script", at["script"], SCRIPT, "is the script of all pages"),
        Documented(
            "face", plan.face_of(agent), HTML, "is the face of a name", ((name["view"], "a word", "calm"),)
        ),
    )
    data = (
        Documented("status", at["status"], JSON, "says that all is well, and the terms"),
        Documented("terms", at["terms"], JSON, "states the terms"),
        Documented(
            "entries",
            at["entries"],
            JSON,
            "lists notices",
            ((name["term"], "words", word), (name["limit"], "a number", "5")),
        ),
        Documented("entry", at["entries"] + "/{id}", JSON, "is one notice"),
        Documented(
            "convert", at["convert"], JSON, "turns credits into wei", ((name["amount"], "a number", "3"),)
        ),
        Documented("render", at["render"], JSON, "previews a heading", ((name["line"], "a text", "Hello"),)),
        Documented(
            "profile", at["profile"], JSON, "tells what an agent is", ((name["name"], "a name", agent),)
        ),
        Documented(
            "credit", at["credit"], JSON, "is the credit of an address", ((name["address"], "0x", zero),)
        ),
        Documented(
            "estimate", "/api/estimate", JSON, "is the gas of writing an app", (("bytes", "a number", "200"),)
        ),
    )
    spec = (Documented("openapi", at["openapi"], JSON, "describes this interface"),) if plan.openapi else ()
    return pages + data + spec
