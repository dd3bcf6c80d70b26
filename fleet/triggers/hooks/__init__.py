"""Webhooks: verification of a delivery, and its secret."""
