"""Deciding, purely: facts and a view in, a decision with its reasons out."""
