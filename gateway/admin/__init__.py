"""Control plane: health, metrics, decisions and the OpenAPI page."""
