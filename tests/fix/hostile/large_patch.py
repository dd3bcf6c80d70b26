"""Ten megabytes of comments."""

from pathlib import Path

for number in range(3):
    Path(f"src/large{number}.py").write_text("# twenty characters\n" * 170_000)
