"""``python -m bothost``: the command line."""

import sys

from bothost.cli import main

if __name__ == "__main__":
    sys.exit(main())
