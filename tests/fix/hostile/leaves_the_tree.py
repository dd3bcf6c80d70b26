"""Writes wherever it is told, and to what the fleet keeps: its dial, its permits, its state."""

import os
import sys

for path in sys.argv[1:]:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write("allow")
        print("wrote", path)
    except OSError as error:
        print("refused", path, error.strerror)
