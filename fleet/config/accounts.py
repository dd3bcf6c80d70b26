"""Two accounts of a platform that the operator made for the fleet: `[accounts]` of a profile."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from fleet.config.section import ActPath, Section, UrlPath


class AccountSection(Section):
    """One account, for the fleet alone; its secret never stands in the profile."""

    user: Annotated[str, StringConstraints(pattern=r"^[!-~]{1,200}$")]
    """Its name, e-mail address or client id; any text for an account that has a key alone."""
    secret_env: Annotated[str, StringConstraints(pattern=r"^([A-Za-z_][A-Za-z0-9_]{0,99})?$")] = ""
    """The environment variable with its password, client secret or key: at least 8 characters."""
    secret_file: str = ""
    """A file (mode 0600) with the same in one line, in the state directory unless it is absolute."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if bool(self.secret_env) == bool(self.secret_file):
            raise ValueError("name one place of the secret: secret_env or secret_file")
        return self


class AccountsSection(Section):
    """With it the fleet signs in as these two and makes no account.

    What is left out is read from the platform's API description or the forms of its site. Where a session
    begins must be in `act_paths`.
    """

    one: AccountSection
    """The account that makes things."""
    other: AccountSection
    """The account that tries to read and change them; of the same rights, and another person's."""
    login: ActPath | Literal[""] = ""
    """Where a session begins, by POST, such as `{site}/api/login`; a token endpoint of OAuth 2 too."""
    page: UrlPath | Literal[""] = ""
    """The page of the site with the form that logs in; for a log-in by a form of a page."""
    fields: dict[Annotated[str, StringConstraints(min_length=1, max_length=60)], str] = Field(
        default={"username": "{user}", "password": "{secret}"}, max_length=20
    )
    """What is sent to `login`, with `{user}` and `{secret}` in their places."""
    sends: Literal["json", "form", "multipart"] = "json"
    """How it is sent."""
    carried: Annotated[
        str,
        StringConstraints(pattern=r"^(basic|(header|query|cookie) [A-Za-z0-9_.-]{1,64}( [A-Za-z]{1,20})?)?$"),
    ] = ""
    """How requests show who asks: `basic`, or `header NAME`, `query NAME`, `cookie NAME` with the token of
    the log-in or the secret itself; a word after NAME stands before it. By default a bearer token, or
    cookies.
    """

    @model_validator(mode="after")
    def _two_people(self) -> Self:
        if self.one.user == self.other.user:
            raise ValueError("accounts.one and accounts.other are the same user: name two accounts")
        return self

    @property
    def keys(self) -> dict[str, AccountSection]:
        """Both, by the label that a tool gives them."""
        return {"one": self.one, "other": self.other}
