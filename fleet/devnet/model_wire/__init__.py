"""How a scripted model speaks on the wire: one file for each protocol, `wire.WIRES` is all of them."""
