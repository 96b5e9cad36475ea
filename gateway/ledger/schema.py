"""The ledger's tables. Knows no connection.

A column has its record field's name. Amounts are BIGINT pico-USD, prices and rates decimal texts, times UTC
ISO-8601 texts (which sort as they are), durations milliseconds. NULL is unknown, never 0. The primary keys
are what makes writing the same record again harmless.
"""

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, MetaData, Table, Text

METADATA = MetaData(
    naming_convention={"pk": "pk_%(table_name)s", "ix": "ix_%(table_name)s_%(column_0_N_name)s"},
)


def _text(name: str, *, null: bool = True) -> Column[str]:
    return Column(name, Text, nullable=null)


def _whole(name: str, *, null: bool = True) -> Column[int]:
    """Tokens, milli work units, pico-USD."""
    return Column(name, BigInteger, nullable=null)


def _real(name: str, *, null: bool = True) -> Column[float]:
    return Column(name, Double, nullable=null)


def _key_text(name: str) -> Column[str]:
    return Column(name, Text, primary_key=True)


requests = Table(
    "requests",
    METADATA,
    _key_text("request_id"),
    _text("t_in", null=False),
    _text("key"),
    _text("tags"),
    _text("path", null=False),
    _text("requested_model"),
    _text("model"),
    _text("policy"),
    Column("stream", Boolean, nullable=False),
    _text("route"),
    _text("target"),
    _text("reason"),
    _text("outcome", null=False),
    Column("status", Integer),
    _whole("prompt_tokens"),
    _whole("cached_tokens"),
    _whole("completion_tokens"),
    _whole("reasoning_tokens"),
    _text("usage_source", null=False),
    _whole("cash_marginal"),
    _whole("standard"),
    _whole("work_units_milli"),
    _text("weight_set"),
    _text("price_id"),
    _text("price_source"),
    _text("alternative_route"),
    _text("alternative_target"),
    _text("alternative_kind"),
    _whole("alternative_cash"),
    _whole("alternative_standard"),
    _whole("alternative_low"),
    Column("equivalent", Boolean),
    _real("ttft_ms"),
    _real("duration_ms"),
    _real("overhead_ms"),
    # Codes joined by commas; empty for none.
    _text("flags", null=False),
    _text("currency", null=False),
    Index(None, "t_in"),
)

attempts = Table(
    "attempts",
    METADATA,
    _key_text("request_id"),
    Column("n", Integer, primary_key=True, autoincrement=False),
    _text("target", null=False),
    _text("route", null=False),
    _text("remote_model"),
    _text("reason", null=False),
    _text("moment", null=False),
    _text("outcome", null=False),
    Column("status", Integer),
    _text("billable", null=False),
    _text("t_dial"),
    _real("ms_to_sent"),
    _real("ms_to_headers"),
    _real("ms_to_first_event"),
    _real("ms_total"),
    _whole("prompt_tokens"),
    _whole("cached_tokens"),
    _whole("completion_tokens"),
    _whole("reasoning_tokens"),
    _text("usage_source", null=False),
    _whole("cash_marginal"),
    _whole("standard"),
    _text("price_id"),
    _text("price_source"),
    _text("rate_id"),
    _text("dropped_fields"),
    Index(None, "route", "t_dial"),
)

prices = Table(
    "prices",
    METADATA,
    _key_text("price_id"),
    _text("target", null=False),
    _text("remote_model", null=False),
    _text("effective_from", null=False),
    _text("source", null=False),
    _text("input"),
    _text("cached_input"),
    _text("output"),
    _text("per_request"),
    _text("hash", null=False),
)

engine_rates = Table(
    "engine_rates",
    METADATA,
    _key_text("rate_id"),
    _text("engine", null=False),
    _text("effective_from", null=False),
    _text("usd_per_hour", null=False),
    _text("overhead_usd_per_hour", null=False),
    _text("billing", null=False),
    _text("capacity"),
    _text("hash", null=False),
)

engine_seconds = Table(
    "engine_seconds",
    METADATA,
    _key_text("engine"),
    _key_text("start"),
    _text("partition", null=False),
    _text("end", null=False),
    _real("seconds", null=False),
    _text("rate_id", null=False),
    _whole("bill", null=False),
    Index(None, "start"),
)

# A window's bill shared out to the attempts in it (cost-model §3): what it says may be worked out again, the
# rows of the other tables never change.
settlements = Table(
    "settlements",
    METADATA,
    _key_text("window_start"),
    _key_text("request_id"),
    Column("n", Integer, primary_key=True, autoincrement=False),
    _text("engine", null=False),
    _text("allocation_key", null=False),
    _text("rate_id", null=False),
    _whole("attributed", null=False),
    _whole("loaded", null=False),
    _text("settled_at", null=False),
)
