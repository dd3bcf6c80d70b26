"""The functions of a generated platform's own facet, as its documents list them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bench.findings.blueprint import Blueprint
from fleet.chain.node.digest import keccak256


@dataclass(frozen=True, slots=True)
class FacetFunction:
    """`signature` is canonical."""

    role: str
    signature: str
    about: str

    @property
    def name(self) -> str:
        return self.signature.partition("(")[0]

    @property
    def selector(self) -> str:
        """0x and 8 hex digits."""
        return "0x" + keccak256(self.signature.encode())[:4].hex()


def functions(plan: Blueprint) -> tuple[FacetFunction, ...]:
    """All of them, in the order of the source."""
    thing, fee, cap, keeper = plan.thing, plan.fee, plan.cap, plan.keeper
    big = thing.capitalize()
    only, own = f"for the {keeper} only", f"for the owner of the {thing} only"
    limits = f"of a weight from 1 to {cap}()"
    return (
        FacetFunction("keeper", f"{keeper}()", f"is the address of the {keeper}"),
        FacetFunction("fee", f"{fee}()", f"is the {fee} in wei"),
        FacetFunction("setFee", f"set{fee.capitalize()}(uint256)", f"sets the {fee}; {only}"),
        FacetFunction("cap", f"{cap}()", f"is the largest weight of a {thing}"),
        FacetFunction("setCap", f"set{cap.capitalize()}(uint256)", f"sets the {cap}; {only}"),
        FacetFunction("collect", f"collect{fee.capitalize()}(address)", f"pays the pot out; {only}"),
        FacetFunction("make", f"make{big}(uint256)", f"makes a {thing} {limits}; for anyone"),
        FacetFunction("give", f"give{big}(uint256,address)", f"gives a {thing} to another address; {own}"),
        FacetFunction("weigh", f"weigh{big}(uint256,uint256)", f"changes the weight, {limits}; {own}"),
        FacetFunction("ownerOf", f"{thing}Owner(uint256)", f"is the owner of a {thing}, zero for none"),
        FacetFunction("read", f"{thing}(uint256)", f"is the owner and the weight of a {thing}"),
        FacetFunction("count", f"{thing}sOf(address)", f"is how many {thing}s an address has"),
        FacetFunction("total", f"total{big}s()", f"is how many {thing}s there are; ids go from 1 to it"),
    )


def function(plan: Blueprint, role: str) -> FacetFunction:
    """The function of a role."""
    return next(one for one in functions(plan) if one.role == role)
