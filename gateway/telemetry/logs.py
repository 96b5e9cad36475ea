"""Log lines: one JSON object each, to stderr. Knows which of the server's complaints are not complaints
here."""

import json
import logging
from datetime import UTC, datetime

# uvicorn says this when a body is left without its end, which is how a broken stream is meant to look
# (relay).
_BROKEN_ON_PURPOSE = "ASGI callable returned without completing response."


class _JsonLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def is_worth_logging(record: logging.LogRecord) -> bool:
    """False for the server's line about a body that was broken off on purpose."""
    return record.getMessage() != _BROKEN_ON_PURPOSE


def expect_broken_bodies() -> None:
    """Keep the server from reporting bodies that were broken off on purpose, however logging is set up."""
    logging.getLogger("uvicorn.error").addFilter(is_worth_logging)


def configure(level: str = "INFO") -> None:
    """Set up the process's logging once, at start."""
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonLine())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # httptools and uvicorn log every connection at INFO; the ledger already has every request.
    logging.getLogger("uvicorn.access").disabled = True
    # A start on a ledger that is up to date has nothing to say.
    logging.getLogger("alembic").setLevel(logging.WARNING)
