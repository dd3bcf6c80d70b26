"""The trusted side of the QA fleet."""

__version__ = "0.1.0"
