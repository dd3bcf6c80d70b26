"""The defect classes: for each a function that draws place and constant, and its rule."""
