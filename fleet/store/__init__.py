"""The journal of the fleet: intents, results and findings."""
