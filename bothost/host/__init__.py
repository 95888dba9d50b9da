"""The asyncio shell: connections, accounts, workers, recorder, life cycle.

It performs the I/O; ``bothost.tables`` decides what to do.
"""
