"""``python -m bothost`` and the script ``bothost``: the command line."""

import gc
import sys


def main() -> int:
    """Run the command line and return the exit code."""
    gc.disable()  # imports make no garbage, and the collector takes a tenth of their time; a command enables it
    from bothost.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
