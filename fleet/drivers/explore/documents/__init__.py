"""The explorer of an API that describes itself, and the routes of documents."""
