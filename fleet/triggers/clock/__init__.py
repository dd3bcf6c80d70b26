"""Clock triggers: interval, cron, back-off."""
