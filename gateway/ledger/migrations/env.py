"""What alembic runs to migrate: the connection comes from the store, there is no configuration file.

Alembic executes this file by its path and never imports it.
"""

from alembic import context

from gateway.ledger.schema import METADATA


def migrate() -> None:
    """Run the migrations on the connection that the caller holds; it commits."""
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, target_metadata=METADATA, render_as_batch=True)
    context.run_migrations()


migrate()
