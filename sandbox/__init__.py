"""Everything that runs inside a jail. Imports nothing of `fleet` and holds no secret of ours."""
