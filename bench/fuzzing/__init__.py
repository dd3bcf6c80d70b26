"""What the search finds in compilers with generated defects: `python -m bench.fuzzing`."""
