"""The reference platform's compiler; mounted alone in a jail as `/opt/tc`, so it imports nothing of ours."""
