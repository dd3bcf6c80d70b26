"""What must hold before anything leaves this machine: rules, ALLOW_GIT, and a permit read afresh."""
