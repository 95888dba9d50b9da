"""``python -m bothost`` and the script ``bothost``: the command line."""

import gc
import os
import sys


def main() -> int:
    """Run the command line and return the exit code.

    Where a daemon thread still runs, as that of a plugin that hangs, the process ends here without the interpreter's
    clean-up: native code that returns to an interpreter that is gone crashes the process, and the exit code is lost.
    """
    gc.disable()  # imports make no garbage, and the collector takes a tenth of their time; a command enables it
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed: its number would go to the next file, such as the database
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    try:
        from bothost.cli import main as run
    except KeyboardInterrupt:  # Python would print a traceback: what is imported before this takes a few milliseconds
        return 130
    code = run()
    _flush()
    gc.disable()  # else the interpreter searches all objects for garbage as it ends: with torch that takes seconds
    import logging
    import threading

    if any(thread.daemon for thread in threading.enumerate() if thread is not threading.current_thread()):
        logging.shutdown()
        _flush()
        os._exit(code)
    gc.freeze()
    return code


def _flush() -> None:
    """Write what is left for stdout and stderr. If a reader is gone, drop it: the interpreter would end with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    sys.exit(main())
