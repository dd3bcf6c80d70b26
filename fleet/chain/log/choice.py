"""Which log a platform has: on chain, or a file in the state directory."""

from __future__ import annotations

from pathlib import Path

from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.log.file_log import FileLog
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import FeedbackPort, SignerPort
from fleet.config import Platform


def log_of(profile: Platform, state: Path, rpc: Rpc, signer: SignerPort | None = None) -> FeedbackPort:
    """The log of a platform; without a signer it can only be read."""
    chain = profile.chain
    if file := chain.log_file(state):
        return FileLog(file, chain.diamond, profile.gas, signer)
    return FeedbackLog(rpc, chain.diamond, profile.gas, signer, confirmations=chain.confirmations)
