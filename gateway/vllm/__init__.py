"""vLLM by version: metrics pages, boot logs, errors."""
