"""Connections to targets: engines and endpoints."""
