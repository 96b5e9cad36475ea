"""The first tables: requests, attempts, prices, engine rates and seconds, settlements."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """From nothing."""
    _create_requests()
    _create_attempts()
    _create_prices()
    _create_engine_rates()
    _create_engine_seconds()
    _create_settlements()


def downgrade() -> None:
    """Back to nothing."""
    op.drop_table("settlements")
    op.drop_table("engine_seconds")
    op.drop_table("engine_rates")
    op.drop_table("prices")
    op.drop_table("attempts")
    op.drop_table("requests")


def _create_requests() -> None:
    op.create_table(
        "requests",
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("t_in", sa.Text, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("tags", sa.Text),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("requested_model", sa.Text),
        sa.Column("model", sa.Text),
        sa.Column("policy", sa.Text),
        sa.Column("stream", sa.Boolean, nullable=False),
        sa.Column("route", sa.Text),
        sa.Column("target", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("prompt_tokens", sa.BigInteger),
        sa.Column("cached_tokens", sa.BigInteger),
        sa.Column("completion_tokens", sa.BigInteger),
        sa.Column("reasoning_tokens", sa.BigInteger),
        sa.Column("usage_source", sa.Text, nullable=False),
        sa.Column("cash_marginal", sa.BigInteger),
        sa.Column("standard", sa.BigInteger),
        sa.Column("work_units_milli", sa.BigInteger),
        sa.Column("weight_set", sa.Text),
        sa.Column("price_id", sa.Text),
        sa.Column("price_source", sa.Text),
        sa.Column("alternative_route", sa.Text),
        sa.Column("alternative_target", sa.Text),
        sa.Column("alternative_kind", sa.Text),
        sa.Column("alternative_cash", sa.BigInteger),
        sa.Column("alternative_standard", sa.BigInteger),
        sa.Column("alternative_low", sa.BigInteger),
        sa.Column("equivalent", sa.Boolean),
        sa.Column("ttft_ms", sa.Double),
        sa.Column("duration_ms", sa.Double),
        sa.Column("overhead_ms", sa.Double),
        sa.Column("flags", sa.Text, nullable=False),
        sa.Column("currency", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_requests")),
    )
    op.create_index(op.f("ix_requests_t_in"), "requests", ["t_in"])


def _create_attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("n", sa.Integer, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("route", sa.Text, nullable=False),
        sa.Column("remote_model", sa.Text),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("moment", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("billable", sa.Text, nullable=False),
        sa.Column("t_dial", sa.Text),
        sa.Column("ms_to_sent", sa.Double),
        sa.Column("ms_to_headers", sa.Double),
        sa.Column("ms_to_first_event", sa.Double),
        sa.Column("ms_total", sa.Double),
        sa.Column("prompt_tokens", sa.BigInteger),
        sa.Column("cached_tokens", sa.BigInteger),
        sa.Column("completion_tokens", sa.BigInteger),
        sa.Column("reasoning_tokens", sa.BigInteger),
        sa.Column("usage_source", sa.Text, nullable=False),
        sa.Column("cash_marginal", sa.BigInteger),
        sa.Column("standard", sa.BigInteger),
        sa.Column("price_id", sa.Text),
        sa.Column("price_source", sa.Text),
        sa.Column("rate_id", sa.Text),
        sa.Column("dropped_fields", sa.Text),
        sa.PrimaryKeyConstraint("request_id", "n", name=op.f("pk_attempts")),
    )
    op.create_index(op.f("ix_attempts_route_t_dial"), "attempts", ["route", "t_dial"])


def _create_prices() -> None:
    op.create_table(
        "prices",
        sa.Column("price_id", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("remote_model", sa.Text, nullable=False),
        sa.Column("effective_from", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("input", sa.Text),
        sa.Column("cached_input", sa.Text),
        sa.Column("output", sa.Text),
        sa.Column("per_request", sa.Text),
        sa.Column("hash", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("price_id", name=op.f("pk_prices")),
    )


def _create_engine_rates() -> None:
    op.create_table(
        "engine_rates",
        sa.Column("rate_id", sa.Text, nullable=False),
        sa.Column("engine", sa.Text, nullable=False),
        sa.Column("effective_from", sa.Text, nullable=False),
        sa.Column("usd_per_hour", sa.Text, nullable=False),
        sa.Column("overhead_usd_per_hour", sa.Text, nullable=False),
        sa.Column("billing", sa.Text, nullable=False),
        sa.Column("capacity", sa.Text),
        sa.Column("hash", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("rate_id", name=op.f("pk_engine_rates")),
    )


def _create_engine_seconds() -> None:
    op.create_table(
        "engine_seconds",
        sa.Column("engine", sa.Text, nullable=False),
        sa.Column("start", sa.Text, nullable=False),
        sa.Column("partition", sa.Text, nullable=False),
        sa.Column("end", sa.Text, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("rate_id", sa.Text, nullable=False),
        sa.Column("bill", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("engine", "start", name=op.f("pk_engine_seconds")),
    )
    op.create_index(op.f("ix_engine_seconds_start"), "engine_seconds", ["start"])


def _create_settlements() -> None:
    op.create_table(
        "settlements",
        sa.Column("window_start", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("n", sa.Integer, nullable=False),
        sa.Column("engine", sa.Text, nullable=False),
        sa.Column("allocation_key", sa.Text, nullable=False),
        sa.Column("rate_id", sa.Text, nullable=False),
        sa.Column("attributed", sa.BigInteger, nullable=False),
        sa.Column("loaded", sa.BigInteger, nullable=False),
        sa.Column("settled_at", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("window_start", "request_id", "n", name=op.f("pk_settlements")),
    )
