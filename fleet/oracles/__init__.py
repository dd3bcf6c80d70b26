"""Properties of every answer of a healthy platform, for any request by any driver."""
