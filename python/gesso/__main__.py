"""`python -m gesso`: the same as the program `gesso`."""

import sys

from gesso_command import main

if __name__ == "__main__":
    sys.exit(main())
