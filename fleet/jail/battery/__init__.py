"""The escape battery: what hostile code in a jail tries, and what only the host can see of it.

`probes/` are the guests, `scenarios` look at a jail from the host, `canaries` is what the host plants,
`attempts` runs them all, `report` says of each whether the fence held, and `record` keeps that with its date.
`fleet check machine --fence` and the tests run the same.
"""
