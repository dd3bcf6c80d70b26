"""Small applications with defects that can be switched on one by one, written without a look at oracles."""
