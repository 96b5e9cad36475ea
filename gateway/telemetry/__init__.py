"""Counters, their exposition, and logs."""
