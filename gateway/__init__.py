"""Spillgate: an OpenAI-compatible gateway in front of self-hosted vLLM."""
