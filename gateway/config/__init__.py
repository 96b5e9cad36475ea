"""Configuration: text to a validated, frozen value, every error with its place."""
