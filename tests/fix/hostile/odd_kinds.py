"""Makes what is no plain file: KIND PATH."""

import os
import sys

kind, path = sys.argv[1:]
if kind == "pipe":
    os.mkfifo(path)
elif kind == "mode":
    os.chmod(path, 0o755)
elif kind == "binary":
    with open(path, "wb") as file:
        file.write(bytes(range(256)))
elif kind == "closed":
    os.makedirs(path)
    with open(os.path.join(path, "f.py"), "w") as file:
        file.write("x = 1")
    os.chmod(path, 0)
