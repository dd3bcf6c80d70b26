"""What is to be said of one execution of a program, and of what it made."""
