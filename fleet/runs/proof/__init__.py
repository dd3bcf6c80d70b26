"""From a probe's observation to a finding reproduced in fresh jails."""
