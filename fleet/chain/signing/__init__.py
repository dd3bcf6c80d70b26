"""Signing and sending: the policy, the signer, what became of the bytes."""
