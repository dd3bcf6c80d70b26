"""The engine that the tests of this folder share."""

from __future__ import annotations

from tests.dockerd import dockerd

__all__ = ["dockerd"]
