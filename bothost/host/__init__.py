"""The asyncio shell: connections, accounts, workers, recorder, life cycle. What it decides stands in ``bothost.tables``."""
