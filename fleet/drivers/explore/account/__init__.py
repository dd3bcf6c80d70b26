"""The explorer of accounts: of an API, and of a site with forms."""
