"""Data plane: pure ASGI from the request line to the relay."""
