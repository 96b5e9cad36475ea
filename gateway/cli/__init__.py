"""Commands: each parses its arguments, calls one function and prints."""
