"""Finders that the fleet is compared with, each behind a small adapter."""
