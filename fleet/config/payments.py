"""The table `[payments]` of a profile: what is paid for by x402 or MPP, and how much a purse may pay."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from fleet.config.section import ActPath, Address, Section


class PaymentsSection(Section):
    """Resources that answer 402 with their terms. What they quote is looked at on any rung; a payment is
    signed from the rung `exercise` up, with the key `keys/purse` alone, and where `web.act_paths` lists the
    resource."""

    resources: tuple[ActPath, ...] = Field((), max_length=16)
    """Where they answer, such as `{site}/reports/daily`: that path, and all below it."""
    asset: Address | None = None
    """The token that payments are made in: a contract with `transferWithAuthorization` (EIP-3009) on
    `chain.id`."""
    name: Annotated[str, StringConstraints(pattern=r"^[ -~]{0,64}$")] = ""
    """The token's name in its EIP-712 domain. It is not taken from a quote: what is signed holds for this
    token."""
    version: Annotated[str, StringConstraints(pattern=r"^[ -~]{0,16}$")] = ""
    """The token's version there."""
    decimals: Annotated[int, Field(ge=0, le=18)] | None = None
    """The token's decimals, where it is worth a dollar: prices that are stated in dollars are then compared;
    without it, only those in units."""
    network: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{0,40}$")] = ""
    """How terms of x402 version 1 name the chain, such as `base-sepolia`; without it, none of those is
    paid."""
    most: int = Field(0, ge=0)
    """Most units of the token in one payment; a resource that quotes more is not paid for."""
    per_run: int = Field(0, ge=0)
    """Most units that one run signs for, whether they are taken or not."""
    holds: int = Field(0, ge=0)
    """Most units that the purse may hold: while it holds more, nothing is signed."""
    prices: dict[ActPath, Annotated[int, Field(ge=0)]] = Field(
        {}, json_schema_extra={"additionalProperties": False}
    )
    """What documents say that a resource costs, in units, as `"{site}/reports/daily" = 1000`."""
    payee: Address | None = None
    """Who is paid, by the platform's own word; a quote that names another one is a finding, and is not
    paid."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if not self.resources:
            if self.model_fields_set:
                raise ValueError("payments.resources names nothing: write where what is paid for answers")
            return self
        if not (self.asset and self.name and self.version):
            raise ValueError(
                "payments needs asset, name and version: the token, as its EIP-712 domain has it"
            )
        if not 0 < self.most <= self.per_run <= self.holds:
            raise ValueError("payments needs most, per_run and holds: 0 < most <= per_run <= holds")
        if unknown := set(self.prices) - set(self.resources):
            raise ValueError(f"payments.prices: {min(unknown)} is not in payments.resources")
        return self


NO_PAYMENTS = PaymentsSection()
