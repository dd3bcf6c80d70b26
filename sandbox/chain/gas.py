"""Gas limits by formula, never by estimate: unused gas is not billed, too little is lost (facts 1.5)."""

from __future__ import annotations

from sandbox.spec import Context

DEFAULTS = {
    "publish_base": 1_200_000,
    "publish_per_byte": 8_500,
    "register_name": 2_200_000,
    "small": 1_200_000,
}


def limit(ctx: Context, what: str) -> int:
    """The limit for one kind of transaction, from the profile where it says one."""
    return ctx.gas.get(what, DEFAULTS[what])


def publish_limit(ctx: Context, size: int) -> int:
    """For one metadata write of `size` bytes."""
    return limit(ctx, "publish_base") + limit(ctx, "publish_per_byte") * size


def ran_out(gas_used: int, gas_limit: int) -> bool:
    """Whether a failed transaction failed for want of gas: a plain revert refunds unused gas.

    Not equal: a call may keep 1/64 of its gas back from a frame that ran out (EIP-150).
    """
    return gas_used * 100 >= gas_limit * 98
