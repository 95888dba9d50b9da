"""The asyncio shell: connections, accounts, workers, recorder, life cycle.

It performs; what is to be done is decided in ``bothost.tables``.
"""
