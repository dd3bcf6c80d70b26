"""What is a secret, and what is only an example of one."""
