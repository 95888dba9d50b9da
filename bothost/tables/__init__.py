"""Tables, sans-IO: which strategy plays (router), one seat at one table (session), time (clock), seats (slots).

Nothing here awaits, opens a socket or reads a clock. Callers pass the time in, in seconds of the monotonic clock.
"""
