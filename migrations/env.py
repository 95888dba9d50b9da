"""Run by Alembic for every upgrade; :mod:`bothost.store.schema` hands the open connection over."""

from alembic import context

connection = context.config.attributes["connection"]
target_metadata = context.config.attributes.get("target_metadata")

context.configure(
    connection=connection,
    target_metadata=target_metadata,
    transaction_per_migration=False,
    render_as_batch=connection.dialect.name == "sqlite",
    compare_type=True,
)
with context.begin_transaction():
    context.run_migrations()
