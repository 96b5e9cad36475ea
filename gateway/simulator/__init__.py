"""A vLLM scheduler in virtual time, and fakes that serve it over HTTP."""
