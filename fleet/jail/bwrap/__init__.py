"""The default backend: one fresh bubblewrap jail for each call."""
