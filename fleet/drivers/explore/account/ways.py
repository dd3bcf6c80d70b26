"""How accounts are made and sessions begun, by an API's description: the arguments of `qa_account`. Pure.

The description is a stranger's: every name and value in it is data, and a part without the expected form
leads to no way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from fleet.config import Platform
from fleet.drivers.explore.account.bodies import MAIL, NAME, PHRASE, SentBody, Start, filled
from fleet.oracles.account.rights import rights
from fleet.oracles.documents.openapi import (
    Operation,
    SecurityScheme,
    operations,
    security_schemes,
    server,
)

NO_SIGN_UP = "its description names no way to sign up"
MOST = 4
"""Ways of one description that are tried: each is a sign-up of its own, or shows its session differently."""
_NAMED = re.compile(f"{NAME.pattern}|{MAIL.pattern.removeprefix('(?i)')}")
_ENTER = re.compile(
    r"(?i)sessions?|log-?_?[io]n|sign-?_?in|tokens?|auth(?:enticate|entication|orize)?|credentials?"
)
_JOIN = re.compile(
    r"(?i)accounts?|users?|register|registrations?|sign-?_?up|join|members?(?:hips?)?|enrol+(?:ment)?s?|customers?"
    r"|people|persons?|subscribers?|developers?|clients?|applications?|players?|profiles?|onboard(?:ing)?"
)
_OTHER = re.compile(
    r"(?i)refresh|log-?_?out|sign-?_?out|revoke|reset|forg[eo]t|verif|confirm|recover|resend|change|invite|otp"
    r"|2fa|mfa|introspect|activat|validate|check|search|bulk|batch"
)
"""Words of a request that makes neither an account nor a session."""
_WHOM = r"(?:user|account|member|customer|profile|login)"
_JOINING = re.compile(
    r"(?i)\bsign[ -_]?up|\bregist(?:er|ration)|\benrol|\bjoin\b|\bbecome"
    rf"|\b(?:create[sd]?|new)[ _-]?(?:an?|the|your)?[ _-]?(?:new[ _-]?)?{_WHOM}"
)
_ENTERING = re.compile(
    r"(?i)\blog[ -_]?[io]n\b|\bsign[ -_]?in|authenticat|\bbegin\w*[ _-]a?[ _-]?session"
    r"|\b(?:obtain|issue|get|creat|request)\w*[ _-](?:an?[ _-])?(?:\w+[ _-])?(?:token|session|jwt)"
)


@dataclass(frozen=True, slots=True)
class ApiPlaces:
    """Where a description's operations are: `url` spells a path as in a repro, `path_of` gives the path of
    such a URL on its host, `may_act` says where acts are permitted, `listens` whether they reach the fleet's
    listener."""

    url: Callable[[str], str]
    path_of: Callable[[str], str]
    may_act: Callable[[str], bool]
    listens: bool = False
    pages: Callable[[], Sequence[str]] = tuple
    """Paths of pages for people on the same host, as far as they are known."""

    def at(self, path: str) -> str:
        """The path of an operation on its host."""
        return self.path_of(self.url(path))


def role_of(path: str) -> str:
    """`join` or `enter`, by the last word of a path that says."""
    for part in reversed(path.split("/")):
        for role, words in (("enter", _ENTER), ("join", _JOIN)):
            if words.fullmatch(part):
                return role
    return ""


def ways(document: Mapping[str, Any], places: ApiPlaces) -> tuple[list[Start], str]:
    """The ways to make accounts, the likeliest first; or why there is none, in words that end a sentence."""
    known = [one for one in operations(document) if one.method == "POST" and "{" not in one.path]
    schemes = security_schemes(document)
    tokens = [one.token_path for one in schemes if one.grant == "password"]
    joins = _ranked(known, lambda one: _joins(one))
    enters = _ranked(known, lambda one: _enters(one, tokens))
    joins = [one for one in joins if one not in enters[:1]]
    if not joins:
        return [], NO_SIGN_UP
    entrances: list[Operation | None] = list(enters[:1]) or [None]
    closed = [one for one in (*joins[:1], *entrances) if one and not places.may_act(places.url(one.path))]
    if closed:
        return [], f"acts are not permitted at {places.at(closed[0].path)} (act_paths in the profile)"
    made = [
        _way(join, enter, carried, places, _token_form(tokens, document))
        for join in joins[:2]
        for enter in entrances
        for carried in _carried(schemes, enter is not None or bool(tokens))
    ]
    return made[:MOST], ""


def known_ways(document: Mapping[str, Any], places: ApiPlaces, known_start: Start) -> tuple[list[Start], str]:
    """The same for accounts that the operator names: they sign in, and nothing is signed up; `known_start` is
    what the profile says of it."""
    if "url" in known_start:
        return [known_start], ""
    known = [one for one in operations(document) if one.method == "POST" and "{" not in one.path]
    schemes = security_schemes(document)
    found: list[Start] = []
    for scheme in schemes:
        if scheme.grant == "client_credentials":
            sent: Start = {"grant_type": scheme.grant, "client_id": "{user}", "client_secret": "{secret}"}
            path = _token_path(scheme.token_path, document)
            found.append({"url": places.url(path), "fields": sent, "bodies": {places.at(path): "form"}})
    tokens = [one.token_path for one in schemes if one.grant == "password"]
    for one in _ranked(known, lambda one: _enters(one, tokens))[:1]:
        kind, sent = one.sent[0], _as_known(entry_fields(one, {}))
        found.append({"url": places.url(one.path), "fields": sent} | _bodies({places.at(one.path): kind}))
    acts = next((url for one in known if places.may_act(url := places.url(one.path))), "")
    shown = [known_start["carried"]] if "carried" in known_start else [one.carried for one in schemes]
    for carried in (one for one in shown if one and acts):
        keys = {"login_fields": {"user": "{user}", "secret": "{secret}"}} if carried == "basic" else {}
        found.append({"url": acts, "fields": {}, "carried": carried, **keys})
    closed = [one for one in found if not places.may_act(one["url"])]
    found = [one for one in found if one not in closed]
    if not found and closed:
        return [], f"acts are not permitted at {places.path_of(closed[0]['url'])} (act_paths in the profile)"
    return found[:MOST], "" if found else "its description names no way to log in (login under [accounts])"


def _as_known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A log-in's fields with the words of an account that the operator names."""
    words = {"{handle": "{user}", "{email": "{user}", "{phrase": "{secret}"}
    known = {name: _as_known(one) if isinstance(one, dict) else one for name, one in fields.items()}
    return {name: words.get(re.split("[:}]", str(one))[0], one) for name, one in known.items()}


def _ranked(known: Sequence[Operation], score: Callable[[Operation], int]) -> list[Operation]:
    """Those that count at all, the highest first, else in their order."""
    scored = [(score(one), one) for one in known]
    return [one for points, one in sorted(scored, key=lambda pair: -pair[0]) if points >= 5]


def _words(one: Operation) -> tuple[str, str]:
    """The last word of an operation's path, and what it is called."""
    last = one.path.rstrip("/").rpartition("/")[2]
    named = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(one.raw.get("operationId", ""))).replace("_", " ")
    return last, f"{one.raw.get('summary', '')} {named} {str(one.raw.get('description', ''))[:120]}"


def _joins(one: Operation) -> int:
    """How much an operation looks like a sign-up; 5 and more is one."""
    (last, said), role = _words(one), role_of(one.path)
    fields = SentBody.of(one).fields
    if _OTHER.search(last) or (_ENTER.fullmatch(last) and not _JOINING.search(said)) or not fields:
        return 0
    named = any(_NAMED.search(name) or said.get("format") == "email" for name, said in fields.items())
    secret = bool(_phrases(one))
    points = 3 * (role == "join") + 3 * bool(_JOINING.search(said) or _JOINING.search(last))
    said_own = one.raw.get("security")
    own = said_own if isinstance(said_own, list) else None
    points += 3 * secret + named - 3 * (bool(own) and {} not in (own or ())) + 2 * (own == [])
    return points if points and (secret or (named and points >= 5)) else 0


def _enters(one: Operation, tokens: Sequence[str]) -> int:
    """How much an operation looks like a log-in; 5 and more is one."""
    last, said = _words(one)
    issues = any(
        one.path.rstrip("/").endswith("/" + path.strip("/").rpartition("/")[2]) for path in tokens if path
    )
    if issues:
        return 12
    if _OTHER.search(last) or not _phrases(one) or (_JOINING.search(last) and not _ENTER.fullmatch(last)):
        return 0
    points = 3 * bool(_ENTER.fullmatch(last)) + 2 * (role_of(one.path) == "enter") + 3
    return points + 3 * bool(_ENTERING.search(said)) - 3 * bool(_JOINING.search(said))


def _phrases(one: Operation) -> list[str]:
    """The fields of a body that hold a passphrase: by name or format; or the other one of two texts, one of
    which is a name, where the path speaks of accounts."""
    fields = SentBody.of(one).fields
    found = [name for name, said in fields.items() if PHRASE.match(name) or said.get("format") == "password"]
    texts = [name for name, said in fields.items() if said.get("type") == "string"]
    given = [name for name in texts if _NAMED.search(name)]
    other = [name for name in texts if name not in given and "const" not in fields[name]]
    paired = len(fields) == 2 and len(given) == len(other) == 1 and bool(role_of(one.path))
    return found or (other if paired else [])


def _way(
    join: Operation,
    enter: Operation | None,
    carried: str,
    places: ApiPlaces,
    token_form: tuple[str, Start] | None,
) -> Start:
    """The arguments of one way."""
    fields, more = joining_fields(join)
    made: Start = {"url": places.url(join.path), "fields": fields} | ({"more": more} if more else {})
    kinds = {places.at(join.path): join.sent[0]}
    if enter is not None:
        made |= {"login": places.at(enter.path), "login_fields": entry_fields(enter, fields | more)}
        kinds[places.at(enter.path)] = enter.sent[0]
    elif token_form and carried != "basic":
        made |= {"login": places.at(token_form[0]), "login_fields": token_form[1]}
        kinds[places.at(token_form[0])] = "form"
    elif carried == "basic":
        user = next(
            (one for one in fields.values() if str(one).startswith(("{handle", "{email"))), "{handle}"
        )
        made |= {"login_fields": {"user": user, "secret": "{phrase}"}}
    return made | _bodies(kinds) | ({"carried": carried} if carried else {})


def _bodies(kinds: Mapping[str, str]) -> Start:
    """The argument that says what is not sent as JSON, where anything is."""
    other = {path: kind for path, kind in kinds.items() if kind not in ("", "json")}
    return {"bodies": other} if other else {}


def _carried(schemes: Sequence[SecurityScheme], enters: bool) -> list[str]:
    """How a session may be shown, the likeliest first: a token of a log-in as such, a key where none is."""
    found = [one.carried for one in schemes if one.grant != "client_credentials"]
    found = [one for one in found if not (enters and one == "basic")] or found
    headers = [f"{one} Token" for one in found if one.lower() == "header authorization"]
    return list(dict.fromkeys([*sorted(found, key=lambda one: one != "" and enters), *headers])) or [""]


def _token_form(tokens: Sequence[str], document: Mapping[str, Any]) -> tuple[str, Start] | None:
    """The token endpoint of a scheme that the paths do not have, and its form (RFC 6749, 4.3)."""
    if not tokens or not tokens[0]:
        return None
    sent = {"grant_type": "password", "username": "{handle}", "password": "{phrase}"}
    return _token_path(tokens[0], document), sent


def _token_path(url: str, document: Mapping[str, Any]) -> str:
    """A token endpoint as a path below the server of a description."""
    path = re.sub(r"^https?://[^/]{1,200}", "", url)
    return "/" + path.removeprefix(server(document)[1]).lstrip("/")


def joining_fields(one: Operation) -> tuple[Start, Start]:
    """What a sign-up is sent: what is required, and what may be sent besides; all of it where nothing is."""
    body = SentBody.of(one)
    secret = _phrases(one)
    made = {
        name: "{phrase}" if name in secret and not PHRASE.match(name) else filled(name, said, one.document)
        for name, said in body.fields.items()
        if said.get("readOnly") is not True
        and (name in body.required or not rights(name.removeprefix("is_")))
    }
    made = {name: value for name, value in made.items() if value is not None}
    shaped = next((str(made[name]) for name in secret if "{phrase:" in str(made.get(name))), "{phrase}")
    made |= {name: shaped for name in secret if name in made}  # it is repeated
    first = {name for name in made if name in body.required or name in secret}
    first = first if body.required else set(made)
    fields = {name: value for name, value in made.items() if name in first}
    return body.wrapped(fields), {name: value for name, value in made.items() if name not in first}


def entry_fields(one: Operation, joined: Mapping[str, Any]) -> Start:
    """What a log-in is sent: what names an account and its passphrase, and what is required besides."""
    body, texts = SentBody.of(one), str(joined)
    mail_only = bool(joined) and "{handle" not in texts
    secret, made = _phrases(one), Start()
    for name, said in body.fields.items():
        needed = name in body.required or _NAMED.search(name) or name in secret
        if name == "grant_type":
            made[name] = "password"
        elif needed and name not in ("client_id", "client_secret"):
            unnamed = name in secret and not PHRASE.match(name)
            value = "{phrase}" if unnamed else filled(name, said, one.document)
            mail = mail_only and isinstance(value, str) and value.startswith("{handle")
            made[name] = "{email}" if mail else value
    if not body.required:  # by name or by e-mail: one of the two is enough
        mails = [name for name, value in made.items() if value == "{email}"]
        handles = [name for name, value in made.items() if str(value).startswith("{handle")]
        for name in handles[1:] + (mails if handles else mails[1:]):
            del made[name]
    return body.wrapped({name: value for name, value in made.items() if value is not None})


def known_start(platform: Platform) -> Start | None:
    """The arguments that the profile has of its accounts; None where it names none."""
    accounts = platform.accounts
    if accounts is None:
        return None
    made: Start = {"carried": accounts.carried} if accounts.carried else {}
    if accounts.login:
        made |= {"url": accounts.login, "fields": dict(accounts.fields)}
        made |= _bodies({urlsplit(platform.web.filled(accounts.login)).path: accounts.sends})
    return made | ({"page": accounts.page} if accounts.page else {})
