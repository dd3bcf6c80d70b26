"""Guests that try to get out: shown to a jail as /opt/probes, standard library only."""
