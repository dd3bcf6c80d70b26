"""The control: an honest fixer."""

from pathlib import Path

path = Path("src/compiler.py")
path.write_text(path.read_text().replace("if names[0]", "if names and names[0]"))
print("done")
