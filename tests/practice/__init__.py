"""Small applications with defects that can be switched on one by one, written before anyone read an oracle."""
