"""One message to one Apprise URL, in a process of its own: its sender ends it at the deadline.

Standard input is JSON: url, title, body, and `grave`: whether a mail asks for a receipt. Nothing of Apprise's
own output is passed on: it may quote the URL, which holds a secret.
"""

from __future__ import annotations

import json
import sys
from typing import Any

DONE, FAILED, INVALID, MISSING = 0, 10, 11, 12
"""Exit codes: delivered, not delivered, an URL that Apprise does not know, Apprise is not installed."""


def main() -> int:
    """Send it; an exit code above."""
    asked = json.load(sys.stdin)
    try:
        from apprise import Apprise, AppriseAsset, NotifyFormat
    except ImportError:
        return MISSING
    apprise = Apprise(asset=AppriseAsset(async_mode=False, app_id="qa-fleet"))
    if not apprise.add(asked["url"]):
        return INVALID
    mail: Any
    for mail in apprise:
        if asked["grave"] and mail.protocol == "mailto":
            mail.headers["Disposition-Notification-To"] = mail.from_addr[1]
    sent = apprise.notify(body=asked["body"], title=asked["title"], body_format=NotifyFormat.TEXT)
    return DONE if sent else FAILED


if __name__ == "__main__":
    sys.exit(main())
