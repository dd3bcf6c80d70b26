"""SQLite and PostgreSQL behind one small interface."""
