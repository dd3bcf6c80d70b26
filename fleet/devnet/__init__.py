"""The bundled platform: local chain, its contracts, a reference platform over HTTP, its seeded defects."""
