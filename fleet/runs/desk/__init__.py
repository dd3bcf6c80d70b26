"""The desk that every driver works at: turns, plan, stop conditions, state, brief."""
