"""Carries one decision out: attempt after attempt, stream to the end."""
