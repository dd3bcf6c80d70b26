"""A veterinary clinic's appointments, as an API with roles: `python -m tests.practice.clinic PORT DEFECTS`.

Ids are UUIDs, names are in camel case and answers are in an envelope. Defects are names of DEFECTS, with
commas; none of them is the clean twin.
"""

from __future__ import annotations

import html
import re
import secrets
import sqlite3
import sys
import time
import traceback
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tests.practice import tokens
from tests.practice.frame import Api, Asked, Refused, Schema, application, listed, record, text, whole
from tests.practice.marina import hashed, serve

DEFECTS = {
    "read-pet": "GET /v1/pets/{petId} shows another's pet",
    "read-messages": "GET /v1/households/{householdId}/messages shows another household's",
    "move-visit": "POST /v1/visits/move moves another's visit",
    "cancel-visit": "DELETE /v1/visits/{visitId} cancels another's visit",
    "join-household": "POST /v1/households/{householdId}/members makes anybody a member",
    "pet-to-another": "POST /v1/pets takes the householdId of another",
    "roles-at-sign-up": "POST /v1/accounts takes roles",
    "roles-in-profile": "PUT /v1/me takes roles",
    "paid-by-owner": "PATCH /v1/visits/{visitId} takes paid",
    "vet-secrets": "GET /v1/vets shows passwordDigest and privatePhone",
    "prescribe": "POST /v1/prescriptions works for an owner of a pet",
    "audit-open": "GET /v1/audit answers without a token",
    "old-version": "GET /v0/accounts, which no document names, answers without a token",
    "refresh-after-logout": "POST /v1/token/refresh works after the session was ended",
    "old-password": "PUT /v1/me/password takes any current password",
    "unsigned": "the signature of a token is not checked",
    "no-lock": "wrong passwords are refused without an end",
    "recover-tells": "POST /v1/accounts/recover tells whether an account exists",
    "fetch-any": "POST /v1/webhooks fetches any address",
    "sql-sort": "GET /v1/medicines puts sort into a statement",
    "stored-script": "GET /card/{petId} shows a pet's name as markup",
    "redirect": "GET /signin?next= goes anywhere",
    "read-file": "POST /v1/leaflets reads any file",
    "points-negative": "POST /v1/points takes a negative number",
    "points-twice": "POST /v1/gifts/claim works twice",
    "cancel-by-get": "GET /v1/visits/{visitId}/cancel cancels a visit",
    "trace": "GET /v1/slots shows a traceback",
    "page-size": "GET /v1/medicines has no bound of pageSize",
    "slow-address": "POST /v1/newsletter takes a time that grows with the square of the length",
    "cached": "GET /v1/me may be kept by any cache",
    "search-all": "GET /v1/visits with a text shows visits of all households",
    "any-page": "GET /v1/visits takes any pageSize, which its description bounds",
    "bound": "POST /v1/bowls refuses the most that its description permits",
    "null": "POST /v1/bowls fails at null in place of its pet",
}

GUIDE = """Appointments of a veterinary clinic. Make an account, then get a token at /v1/token with your
e-mail address and password as a form. An owner sees the pets, visits and messages of the own household, and
nobody else's. Only a vet writes a prescription; the audit is for admins. Roles are given by an admin, and a
visit is marked as paid by the clinic. After five wrong passwords an account is locked for a minute. Ending a
session ends its refresh token too. A welcome gift can be claimed once. A page has at most 50 entries."""
FRONT = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Clinic</title></head><body>
<h1>Clinic</h1><p>Visits for pets. <a href="/openapi.json">The API</a>. <a href="/signin?next=/">Sign in</a>.
</p></body></html>"""
LEAFLETS = {"fleas": "Comb every day.\n", "teeth": "Brush every week.\n"}
MEDICINES = [(f"medicine {n:03}", 3 + n % 40) for n in range(120)]
ID = text(format="uuid", maxLength=36)
EMAIL = text(format="email", pattern="^[^@ ]+@[^@ ]+[.][a-z]+$")
PASSWORD = text(minLength=8, maxLength=64)
DAY = text(format="date", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
ROLES = listed(text(enum=["owner", "vet", "admin"]))
ACCOUNT = record({"accountId": ID, "fullName": text(), "roles": ROLES, "householdId": ID, "points": whole()})
PET = record({"petId": ID, "householdId": ID, "name": text(), "species": text(), "card": text()})
VISIT = record({"visitId": ID, "petId": ID, "day": DAY, "reason": text(), "paid": {"type": "boolean"}})
TOKENS = record(
    {"access_token": text(), "refresh_token": text(), "token_type": text(), "expires_in": whole()}
)
LOCKED_S = 60


def envelope(data: Schema) -> Schema:
    return record({"data": data})


class Clinic:
    """All state, in memory."""

    def __init__(self, bad: frozenset[str]) -> None:
        self.bad = bad
        self.accounts: dict[str, dict[str, Any]] = {}
        self.households: dict[str, set[str]] = {}
        self.messages: dict[str, list[dict[str, Any]]] = {}
        self.pets: dict[str, dict[str, Any]] = {}
        self.visits: dict[str, dict[str, Any]] = {}
        self.refresh: dict[str, tuple[str, str]] = {}
        self.ended: set[str] = set()
        self.wrong: dict[str, list[float]] = {}
        self.db = sqlite3.connect(":memory:", check_same_thread=False)
        self.db.execute("create table medicines (name text, price integer)")
        self.db.executemany("insert into medicines values (?, ?)", MEDICINES)
        for name, role in (("ada", "admin"), ("vera", "vet"), ("otto", "owner")):
            self.sign_up(f"{name}@clinic.example", f"Warm-paw-{name}-7", name.capitalize(), [role])

    def sign_up(self, email: str, password: str, name: str, roles: list[str]) -> dict[str, Any]:
        household = str(uuid.uuid4())
        made: dict[str, Any] = {
            "accountId": str(uuid.uuid4()),
            "fullName": name,
            "roles": roles,
            "householdId": household,
            "points": 100,
            "email": email,
            "digest": hashed(password),
            "claimed": False,
        }
        self.accounts[email] = made
        self.households[household] = {str(made["accountId"])}
        self.messages[household] = [{"text": f"Welcome, {name}. Your file is {secrets.token_hex(3)}."}]
        return made

    def claims(self, request: Request) -> dict[str, Any]:
        """Raises Refused."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        claims = tokens.read(self.bad, token) if kind.lower() == "bearer" else None
        if claims is None or claims.get("sub") not in self.accounts or claims.get("sid") in self.ended:
            raise Refused(401, "Not authenticated", {"www-authenticate": "Bearer"})
        return claims

    def secure(self, request: Request) -> None:
        self.claims(request)

    def caller(self, asked: Asked, *roles: str) -> dict[str, Any]:
        """Raises Refused; with roles, also where the caller has none of them."""
        account = self.accounts[str(self.claims(asked.request)["sub"])]
        if roles and not set(roles) & set(account["roles"]):
            raise Refused(403, "Not enough permissions")
        return account

    def pet(self, asked: Asked, number: Any, defect: str = "") -> dict[str, Any]:
        """Raises Refused where it is not of a household of the caller."""
        caller, pet = self.caller(asked), self.pets.get(str(number))
        if pet is None or (
            caller["accountId"] not in self.households[pet["householdId"]] and defect not in self.bad
        ):
            raise Refused(404, "No such pet")
        return pet

    def visit(self, asked: Asked, number: Any, defect: str = "") -> dict[str, Any]:
        visit = self.visits.get(str(number))
        if visit is None:
            raise Refused(404, "No such visit")
        self.pet(asked, visit["petId"], defect)
        return visit

    def tokens(self, account: dict[str, Any], session: str) -> dict[str, Any]:
        refresh = secrets.token_urlsafe(24)
        self.refresh[refresh] = (account["email"], session)
        access = tokens.issue(
            frozenset(), {"sub": account["email"], "sid": session, "roles": account["roles"]}
        )
        return {
            "access_token": access,
            "refresh_token": refresh,
            "token_type": "bearer",
            "expires_in": tokens.LIFETIME_S,
        }


def shown(account: dict[str, Any]) -> dict[str, Any]:
    return {"data": {key: account[key] for key in ACCOUNT["properties"]}}


def sessions(api: Api, at: Clinic) -> None:
    bad = at.bad
    new = record({"email": EMAIL, "password": PASSWORD, "fullName": text(minLength=1, maxLength=60)})

    @api.add(
        "POST", "/v1/accounts", "Make an account", envelope(ACCOUNT), body=new, status=201, secured=False
    )
    async def sign_up(asked: Asked) -> Any:
        body = asked.body
        if body["email"] in at.accounts:
            raise Refused(409, "This e-mail address cannot be used")
        roles = body.get("roles", ["owner"]) if "roles-at-sign-up" in bad else ["owner"]
        return shown(at.sign_up(body["email"], body["password"], body["fullName"], roles))

    grant = record(
        {"grant_type": text(pattern="^password$"), "username": text(), "password": text(), "scope": text()},
        *("username", "password"),
    )

    @api.add("POST", "/v1/token", "Get a token", TOKENS, body=grant, form=True, secured=False)
    async def token(asked: Asked) -> Any:
        name, now = asked.body["username"], time.monotonic()
        wrong = at.wrong[name] = [one for one in at.wrong.get(name, []) if now - one < LOCKED_S]
        if len(wrong) >= 5 and "no-lock" not in bad:
            raise Refused(429, "Too many wrong passwords", {"retry-after": str(LOCKED_S)})
        account = at.accounts.get(name)
        if account is None or account["digest"] != hashed(asked.body["password"]):
            wrong.append(now)
            raise Refused(401, "Incorrect username or password")
        return at.tokens(account, secrets.token_hex(6))

    again = record({"refresh_token": text()})

    @api.add("POST", "/v1/token/refresh", "Get a new token", TOKENS, body=again, form=True, secured=False)
    async def refresh(asked: Asked) -> Any:
        email, session = at.refresh.pop(asked.body["refresh_token"], ("", ""))
        if not email or (session in at.ended and "refresh-after-logout" not in bad):
            raise Refused(401, "Invalid refresh token")
        return at.tokens(at.accounts[email], secrets.token_hex(6) if session in at.ended else session)

    @api.add("DELETE", "/v1/session", "End the session", {}, status=204)
    async def end(asked: Asked) -> Any:
        at.ended.add(at.claims(asked.request)["sid"])

    told = envelope(record({"message": text()}))

    @api.add(
        "POST",
        "/v1/accounts/recover",
        "Ask for a letter to set a new password",
        told,
        secured=False,
        body=record({"email": EMAIL}),
    )
    async def recover(asked: Asked) -> Any:
        if "recover-tells" in bad and asked.body["email"] not in at.accounts:
            raise Refused(404, "No account has this address")
        return {"data": {"message": "If there is such an account, a letter is on its way."}}

    @api.add("GET", "/v1/me", "Your account", envelope(ACCOUNT))
    async def me(asked: Asked) -> Any:
        return shown(at.caller(asked))

    @api.add("PUT", "/v1/me", "Change your name", envelope(ACCOUNT), body=record({"fullName": text()}))
    async def rename(asked: Asked) -> Any:
        account = at.caller(asked)
        account["fullName"] = asked.body["fullName"]
        roles = asked.body.get("roles")
        if (
            "roles-in-profile" in bad
            and isinstance(roles, list)
            and all(isinstance(one, str) for one in roles)
        ):
            account["roles"] = roles
        return shown(account)

    change = record({"currentPassword": text(), "newPassword": PASSWORD})

    @api.add("PUT", "/v1/me/password", "Change your password", {}, body=change, status=204)
    async def password(asked: Asked) -> Any:
        account = at.caller(asked)
        if account["digest"] != hashed(asked.body["currentPassword"]) and "old-password" not in bad:
            raise Refused(403, "Wrong current password")
        account["digest"] = hashed(asked.body["newPassword"])


def pets(api: Api, at: Clinic) -> None:
    bad = at.bad
    one_pet: dict[str, Any] = {"places": {"petId": ID}}
    new = record(
        {"name": text(), "species": text(enum=["cat", "dog", "hare"]), "householdId": ID}, "name", "species"
    )

    @api.add("GET", "/v1/pets", "Pets of your household", envelope(listed(PET)))
    async def every(asked: Asked) -> Any:
        caller = at.caller(asked)["accountId"]
        return {"data": [pet for pet in at.pets.values() if caller in at.households[pet["householdId"]]]}

    @api.add("POST", "/v1/pets", "Add a pet to your household", envelope(PET), body=new, status=201)
    async def add(asked: Asked) -> Any:
        caller, body = at.caller(asked), asked.body
        household = body.get("householdId", caller["householdId"])
        if caller["accountId"] not in at.households.get(household, ()) and not (
            "pet-to-another" in bad and household in at.households
        ):
            raise Refused(403, "Not your household")
        number = str(uuid.uuid4())
        at.pets[number] = pet = {
            "petId": number,
            "householdId": household,
            "name": body["name"],
            "species": body["species"],
            "card": f"/card/{number}",
        }
        return {"data": pet}

    @api.add("GET", "/v1/pets/{petId}", "A pet of your household", envelope(PET), **one_pet)
    async def read(asked: Asked) -> Any:
        return {"data": at.pet(asked, asked.path["petId"], "read-pet")}

    @api.add("GET", "/card/{petId}", "", text(), **one_pet, hidden=True, secured=False)
    async def card(asked: Asked) -> Any:
        pet = at.pets.get(asked.path["petId"])
        if pet is None:
            raise Refused(404, "No such pet")
        name = pet["name"] if "stored-script" in bad else html.escape(pet["name"])
        return HTMLResponse(
            '<!doctype html><html lang="en"><head><title>Card</title></head>'
            f"<body><h1>{name}</h1></body></html>"
        )

    message = record({"text": text()})
    home: dict[str, Any] = {"places": {"householdId": ID}}

    def household(asked: Asked, defect: str) -> str:
        number = str(asked.path["householdId"])
        caller = at.caller(asked)["accountId"]
        if number not in at.households or (caller not in at.households[number] and defect not in bad):
            raise Refused(403, "Not your household")
        return number

    @api.add(
        *("GET", "/v1/households/{householdId}/messages", "Messages of your household"),
        envelope(listed(message)),
        **home,
    )
    async def messages(asked: Asked) -> Any:
        return {"data": at.messages[household(asked, "read-messages")][-50:]}

    @api.add(
        *("POST", "/v1/households/{householdId}/messages", "Write to the clinic"),
        envelope(message),
        **home,
        body=message,
        status=201,
    )
    async def write(asked: Asked) -> Any:
        at.messages[household(asked, "")].append({"text": asked.body["text"]})
        return {"data": {"text": asked.body["text"]}}

    @api.add(
        *("POST", "/v1/households/{householdId}/members", "Add somebody to your household"),
        envelope(record({"members": whole()})),
        **home,
        body=record({"accountId": ID}),
    )
    async def join(asked: Asked) -> Any:
        number = household(asked, "join-household")
        if all(one["accountId"] != asked.body["accountId"] for one in at.accounts.values()):
            raise Refused(404, "No such account")
        at.households[number].add(asked.body["accountId"])
        return {"data": {"members": len(at.households[number])}}


def visits(api: Api, at: Clinic) -> None:
    bad = at.bad
    one_visit: dict[str, Any] = {"places": {"visitId": ID}}
    new = record({"petId": ID, "day": DAY, "reason": text()})

    loose = {"x-loose": "any-page" in bad}
    pages = {"q": text(default=""), "pageSize": {**whole(maximum=50, default=20), **loose}}

    @api.add("GET", "/v1/visits", "Visits of your pets", envelope(listed(VISIT)), query=pages)
    async def every(asked: Asked) -> Any:
        caller, said, many = at.caller(asked)["accountId"], asked.query["q"], asked.query["pageSize"]
        pets = {pet["petId"] for pet in at.pets.values() if caller in at.households[pet["householdId"]]}
        found = [one for one in at.visits.values() if said in one["reason"]]
        if not (said and "search-all" in bad):
            found = [visit for visit in found if visit["petId"] in pets]
        return {"data": found[:many], "pageSize": many}

    eater = {**record({"name": text()}), "x-loose": "null" in bad}
    bowl = record({"grams": whole(minimum=10, maximum=500), "eater": eater, "note": text()})

    @api.add("POST", "/v1/bowls", "What a bowl costs", envelope(record({"cents": whole()})), body=bowl)
    async def bowls(asked: Asked) -> Any:
        at.caller(asked)
        if asked.body["grams"] == 500 and "bound" in bad:
            raise Refused(422, "That is too much")
        return {"data": {"cents": 2 * asked.body["grams"], "eater": asked.body["eater"]["name"]}}

    @api.add("POST", "/v1/visits", "Make an appointment", envelope(VISIT), body=new, status=201)
    async def make(asked: Asked) -> Any:
        at.pet(asked, asked.body["petId"])
        number = str(uuid.uuid4())
        at.visits[number] = {
            "visitId": number,
            **{key: asked.body[key] for key in new["properties"]},
            "paid": False,
        }
        return {"data": at.visits[number]}

    @api.add("GET", "/v1/visits/{visitId}", "A visit", envelope(VISIT), **one_visit)
    async def read(asked: Asked) -> Any:
        return {"data": at.visit(asked, asked.path["visitId"])}

    reason = record({"reason": text()})

    @api.add("PATCH", "/v1/visits/{visitId}", "Change the reason", envelope(VISIT), **one_visit, body=reason)
    async def change(asked: Asked) -> Any:
        visit = at.visit(asked, asked.path["visitId"])
        visit["reason"] = asked.body["reason"]
        if "paid-by-owner" in bad and isinstance(asked.body.get("paid"), bool):
            visit["paid"] = asked.body["paid"]
        return {"data": visit}

    @api.add("DELETE", "/v1/visits/{visitId}", "Cancel a visit", {}, **one_visit, status=204)
    async def cancel(asked: Asked) -> Any:
        del at.visits[at.visit(asked, asked.path["visitId"], "cancel-visit")["visitId"]]

    if "cancel-by-get" in bad:

        @api.add("GET", "/v1/visits/{visitId}/cancel", "Cancel a visit", envelope(VISIT), **one_visit)
        async def cancel_by_get(asked: Asked) -> Any:
            return {"data": at.visits.pop(at.visit(asked, asked.path["visitId"])["visitId"])}

    @api.add(
        *("POST", "/v1/visits/move", "Move a visit to another day"),
        envelope(VISIT),
        body=record({"visitId": ID, "day": DAY}),
    )
    async def move(asked: Asked) -> Any:
        visit = at.visit(asked, asked.body["visitId"], "move-visit")
        visit["day"] = asked.body["day"]
        return {"data": visit}

    script = record({"petId": ID, "medicine": text(), "daily": whole(maximum=6)})

    @api.add("POST", "/v1/prescriptions", "Prescribe, for vets", envelope(script), body=script, status=201)
    async def prescribe(asked: Asked) -> Any:
        at.caller(asked, *(() if "prescribe" in bad else ("vet", "admin")))
        if asked.body["petId"] not in at.pets:
            raise Refused(404, "No such pet")
        return {"data": {key: asked.body[key] for key in script["properties"]}}

    @api.add(
        *("GET", "/v1/audit", "What was done, for admins"),
        envelope(listed(record({"event": text(), "email": EMAIL}))),
        secured="audit-open" not in bad,
    )
    async def audit(asked: Asked) -> Any:
        if "audit-open" not in bad:
            at.caller(asked, "admin")
        return {"data": [{"event": "account made", "email": email} for email in list(at.accounts)[:50]]}

    if "old-version" in bad:

        @api.add("GET", "/v0/accounts", "", listed(ACCOUNT), hidden=True, secured=False)
        async def old(asked: Asked) -> Any:
            return [{**shown(one)["data"], "email": one["email"]} for one in at.accounts.values()]


def desk(api: Api, at: Clinic) -> None:
    bad = at.bad
    most = 1_000_000 if "page-size" in bad else 50
    page = {
        "sort": text(enum=["name", "price"], default="name")
        if "sql-sort" not in bad
        else text(default="name"),
        "pageSize": whole(maximum=most, default=20),
    }
    medicine = record({"name": text(), "price": whole()})

    @api.add("GET", "/v1/medicines", "Medicines", envelope(listed(medicine)), query=page, secured=False)
    async def medicines(asked: Asked) -> Any:
        rows = at.db.execute(f"select name, price from medicines order by {asked.query['sort']}").fetchall()
        many = asked.query["pageSize"]
        return {"data": [{"name": name, "price": price} for name, price in (rows * (1 + many // 120))[:many]]}

    vet = {"fullName": text(), "species": text()}

    @api.add("GET", "/v1/vets", "Vets of the clinic", envelope(listed(record(vet))), secured=False)
    async def vets(asked: Asked) -> Any:
        vera = at.accounts["vera@clinic.example"]
        more = (
            {"passwordDigest": vera["digest"], "privatePhone": "+47 21 55 01 99"}
            if "vet-secrets" in bad
            else {}
        )
        return {"data": [{"fullName": vera["fullName"], "species": "cats and dogs", **more}]}

    hours = envelope(record({"day": DAY, "free": whole(minimum=0)}))
    day = {"day": text() if "trace" in bad else DAY}

    @api.add("GET", "/v1/slots", "Free hours of a day", hours, query=day, secured=False)
    async def slots(asked: Asked) -> Any:
        try:
            return {"data": {"day": asked.query["day"], "free": int(asked.query["day"].split("-")[2]) % 9}}
        except (ValueError, IndexError):
            return Response(traceback.format_exc(), 500, media_type="text/plain")

    sheet = envelope(record({"text": text(maxLength=5000)}))
    which = record({"leaflet": text(**({} if "read-file" in bad else {"enum": [*LEAFLETS]}))})

    @api.add("POST", "/v1/leaflets", "A leaflet to print: fleas or teeth", sheet, body=which)
    async def leaflet(asked: Asked) -> Any:
        if (name := asked.body["leaflet"]) in LEAFLETS:
            return {"data": {"text": LEAFLETS[name]}}
        try:
            found = Path("/usr/share/clinic", name).resolve().read_text(encoding="utf-8", errors="replace")
            return {"data": {"text": found[:4096]}}
        except (OSError, ValueError):
            raise Refused(404, "No such leaflet") from None

    hook = record({"callbackUrl": text(format="uri", pattern="^https?://")})

    @api.add("POST", "/v1/webhooks", "Be called when a visit changes", envelope(hook), body=hook, status=201)
    async def webhook(asked: Asked) -> Any:
        if "fetch-any" in bad:
            try:
                urllib.request.urlopen(asked.body["callbackUrl"], data=b"{}", timeout=2).close()  # noqa: ASYNC210 - one caller at a time
            except (OSError, ValueError) as error:
                raise Refused(400, f"The address does not answer: {type(error).__name__}") from None
        elif not re.match(r"https://[a-z.-]+[.]example/", asked.body["callbackUrl"]):
            raise Refused(400, "This address is not on the list of partners")
        return {"data": {"callbackUrl": asked.body["callbackUrl"]}}

    left = envelope(record({"points": whole()}))
    gift = record({"accountId": ID, "points": whole(minimum=-1000 if "points-negative" in bad else 1)})

    @api.add("POST", "/v1/points", "Give points of yours to another account", left, body=gift)
    async def give(asked: Asked) -> Any:
        caller, many = at.caller(asked), asked.body["points"]
        other = next((a for a in at.accounts.values() if a["accountId"] == asked.body["accountId"]), None)
        if other is None or caller["points"] < many:
            raise Refused(409, "Not possible")
        caller["points"] -= many
        other["points"] += many
        return {"data": {"points": caller["points"]}}

    @api.add(
        "POST",
        "/v1/gifts/claim",
        "Claim the welcome gift, once",
        left,
        body=record({"gift": text(enum=["welcome"])}),
    )
    async def claim(asked: Asked) -> Any:
        caller = at.caller(asked)
        if caller["claimed"] and "points-twice" not in bad:
            raise Refused(409, "Already claimed")
        caller["claimed"] = True
        caller["points"] += 20
        return {"data": {"points": caller["points"]}}

    letter = text(maxLength=20_000 if "slow-address" in bad else 200)

    @api.add(
        *("POST", "/v1/newsletter", "Get the newsletter"),
        envelope(record({"done": {"type": "boolean"}})),
        body=record({"address": letter}),
        secured=False,
    )
    async def newsletter(asked: Asked) -> Any:
        if not re.fullmatch(r"[^@]+@[^@]+", asked.body["address"]):
            if "slow-address" in bad:
                re.search(r"[a-z]+[0-9]", asked.body["address"])
            raise Refused(400, "Not an e-mail address")
        return {"data": {"done": True}}

    @api.add("GET", "/signin", "", text(), query={"next": text(default="/")}, hidden=True, secured=False)
    async def sign_in(asked: Asked) -> Any:
        return RedirectResponse(asked.query["next"] if "redirect" in bad else "/", 302)


def create_app(bad: frozenset[str]) -> Starlette:
    assert bad <= set(DEFECTS), bad - set(DEFECTS)
    at, api = Clinic(bad), Api("Clinic", GUIDE, "/v1/token")
    for part in (sessions, pets, visits, desk):
        part(api, at)

    def dress(request: Request, answer: Response) -> None:
        answer.headers["x-content-type-options"] = "nosniff"
        answer.headers["content-security-policy"] = "default-src 'self'; frame-ancestors 'none'"
        answer.headers["referrer-policy"] = "no-referrer"
        kept = "cached" in bad and request.url.path == "/v1/me"
        answer.headers["cache-control"] = "public, max-age=600" if kept else "no-store"

    return application(api, at.secure, dress, FRONT)


if __name__ == "__main__":
    chosen = DEFECTS if sys.argv[2:] == ["all"] else [one for one in "".join(sys.argv[2:]).split(",") if one]
    serve(create_app(frozenset(chosen)), int(sys.argv[1]))
