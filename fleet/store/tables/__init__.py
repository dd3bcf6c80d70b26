"""The journal's groups of tables, each with the statements that read and move its rows."""
