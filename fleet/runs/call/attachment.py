"""A file in a tool's answer: kept beside the run's evidence under its hash, and taken out of the answer.

The file is a stranger's: it is stored, bounded, and never opened. The answer's `sha256` names it; one that
cannot be kept (a full disk) costs the file, not the answer.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fleet.errors import FleetError
from fleet.files import disk_errors, write_atomic
from sandbox.spec import ToolSpec

MAX_BYTES = 256 << 10
MAX_FILES = 200
"""Most files that one run keeps."""
_PNG = b"\x89PNG\r\n\x1a\n"
_LOG = logging.getLogger("fleet.attachment")


def attached(spec: ToolSpec, result: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The answer without its file, which is kept as `folder/<sha256>.png`."""
    text = result.get(spec.attaches)
    if not spec.attaches or not isinstance(text, str) or not text:
        return dict(result)
    kept = dict(result) | {spec.attaches: ""}
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return kept
    name = hashlib.sha256(data).hexdigest()
    if not data.startswith(_PNG) or len(data) > MAX_BYTES or name != result.get("sha256"):
        return kept
    path = folder / f"{name}.png"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists() and sum(1 for _ in folder.glob("*.png")) < MAX_FILES:
            with disk_errors(path):
                write_atomic(path, data)
    except (OSError, FleetError) as error:
        _LOG.warning("%s: not kept: %s", path, error)
    return kept
