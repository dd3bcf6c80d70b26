"""The rung `propose`: from an item of the worklist to a draft pull request; a person merges it."""
