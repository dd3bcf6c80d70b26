"""Notifications: what changed, when to say it, and to whom (decision 38)."""
