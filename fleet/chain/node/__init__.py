"""The node: JSON-RPC over our own provider, the ABI, its values."""
