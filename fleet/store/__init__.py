"""The journal of the fleet: what was intended, what was done, what was found."""
