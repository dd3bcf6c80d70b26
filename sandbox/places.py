"""Where things are in this jail: given by who made it, else the usual places."""

from __future__ import annotations

import os

BOX, OPT = os.environ.pop("QA_PLACES", "/box:/opt").split(":")
"""The working folder, and the folder of mounts. No child sees the variable."""
