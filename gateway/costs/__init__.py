"""Cost arithmetic in exact money."""
