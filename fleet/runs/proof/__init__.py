"""From what a probe saw to a finding that was reproduced in fresh jails."""
