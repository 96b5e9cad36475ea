"""OpenAI's HTTP dialect: bodies, events, usage, errors."""
