"""Other searches on the same programs: `python -m bench.fuzzing.peers`."""
