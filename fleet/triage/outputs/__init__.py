"""The worklist in the formats of its readers: one pure file per format."""
