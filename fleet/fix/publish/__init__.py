"""Publishers of proposals, and where people speak of defects."""
