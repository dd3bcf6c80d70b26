"""The reference platform over HTTP: faces, documents, small APIs and the metered agent-call proxy."""
