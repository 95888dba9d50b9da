"""Ignores Ctrl-C. Only the server that child processes are forked from may import it: they inherit that.

Ctrl-C reaches all processes of a terminal. The coordinator handles it, and ends the others.
"""

import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)
