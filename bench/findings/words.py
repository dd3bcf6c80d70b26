"""Words that a generated platform is made of; none of them is the devnet's."""

from __future__ import annotations

PRODUCTS = (
    "Almanac",
    "Beacon",
    "Carousel",
    "Dovecote",
    "Estuary",
    "Foundry",
    "Granary",
    "Harbour",
    "Ironwood",
    "Jetty",
    "Kiln",
    "Lantern",
    "Meridian",
    "Nettle",
    "Orchard",
    "Pantry",
    "Quarry",
    "Rookery",
    "Saltmarsh",
    "Tannery",
)
AGENTS = (
    "amber",
    "basil",
    "clove",
    "dahlia",
    "elder",
    "fennel",
    "ginger",
    "hazel",
    "iris",
    "juniper",
    "kelp",
    "lovage",
    "mallow",
    "nutmeg",
    "oleander",
    "poppy",
    "quince",
    "rowan",
    "sorrel",
    "tansy",
)
THINGS = ("crate", "parcel", "bobbin", "saddle", "kettle", "ledger", "barrel", "trunk", "casket", "spindle")
KEEPERS = ("steward", "warden", "porter", "bailiff", "factor", "usher")
FEES = ("toll", "tariff", "duty", "levy", "dues", "stipend")
CAPS = ("ceiling", "quota", "bound", "allowance", "ration")
TITLES = (
    "winter timetable",
    "boiler manual",
    "tide tables",
    "seed catalogue",
    "bell ringers",
    "ferry notices",
    "quarry map",
    "hedge survey",
    "lamp oil prices",
    "market days",
    "bridge works",
    "well depths",
)

PATHS: dict[str, tuple[str, ...]] = {
    "search": ("/find", "/lookup", "/browse", "/seek", "/discover"),
    "prefs": ("/preferences", "/account", "/options", "/profile", "/desk"),
    "gallery": ("/gallery", "/pictures", "/exhibits", "/showcase"),
    "about": ("/about", "/company", "/contact", "/imprint"),
    "handbook": ("/handbook", "/help", "/learn", "/how-it-works"),
    "session": ("/enter", "/signin", "/session", "/welcome"),
    "jump": ("/leave", "/go", "/out", "/continue"),
    "shelf": ("/shelf", "/downloads", "/papers", "/library"),
    "folder": ("/static/", "/media/", "/res/", "/public/"),
    "script": ("/bundle.js", "/main.js", "/kit.js", "/runtime.js"),
    "llms": ("/llms.txt",),
    "guide": ("/guide.md", "/manual.md", "/developers.md", "/api.md"),
    "openapi": ("/openapi.json",),
}
API = ("/v2", "/svc", "/data", "/rest", "/q")
SERVICES: dict[str, tuple[str, ...]] = {
    "status": ("health", "state", "pulse", "info"),
    "entries": ("notices", "articles", "records", "posts"),
    "convert": ("convert", "exchange", "units", "worth"),
    "render": ("preview", "card", "banner", "letterhead"),
    "profile": ("agent", "member", "who", "persona-of"),
    "credit": ("balance", "purse", "funds", "wallet"),
    "terms": ("terms", "conditions", "rates", "limits"),
}
PARAMS: dict[str, tuple[str, ...]] = {
    "term": ("term", "words", "needle", "text"),
    "limit": ("max", "size", "count", "top"),
    "next": ("next", "to", "target", "back"),
    "file": ("file", "doc", "name", "path"),
    "theme": ("theme", "colour", "style", "skin"),
    "view": ("view", "note", "mood", "from"),
    "amount": ("amount", "n", "value", "sum"),
    "line": ("line", "title", "caption", "label"),
    "name": ("name", "agent", "id", "handle"),
    "address": ("address", "account", "of", "holder"),
}
FACES = ("/at/{name}/", "/~{name}/", "/people/{name}/", "/n/{name}/", "/card/{name}/")
CALLS = (
    ("/agents/{model}/ask", "/agents/{model}/ask-live"),
    ("/dialogue/{model}:say", "/dialogue/{model}:sayStream?alt=sse"),
    ("/v3/{model}/messages", "/v3/{model}/messages/stream"),
    ("/talk/{model}", "/talk/{model}/events"),
)
HEADERS = ("x-call-token", "x-agent-auth", "x-visitor-proof", "x-signed-by")
MODELS = ("small-1", "parrot-2", "mistral-mini", "oak")
SCOPES = ("orchard-calls", "harbour-proxy", "kiln-gate", "talk-scope")
ROUTES = ("agents", "talk", "ask", "")

COMMANDS: dict[str, tuple[str, ...]] = {
    "help": ("help", "commands", "what can you do"),
    "whoami": ("who am i", "which address is mine", "name my account"),
    "keep": ("remember", "keep note", "store line"),
    "recall": ("recall", "read note", "show line"),
    "count": ("count up to", "recite to", "number to"),
    "tools": ("tools", "list tools", "which tools"),
    "price": ("price", "what does a message cost", "rates"),
    "use": ("run", "use", "invoke"),
}
HARMLESS = ("list_pages", "read_clock", "show_drafts", "look_up")
DESTRUCTIVE = ("wipe_drawer", "send_funds", "drop_page", "erase_diary", "revoke_keys", "close_account")
GHOSTS = ("translate", "forecast", "summarise", "subscribe", "undo", "history")
