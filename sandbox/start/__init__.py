"""The first processes of a jail, and what tries them before a run relies on them."""
