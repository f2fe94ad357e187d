"""`python3 -m qplan` and the script `qplan` of a wheel: the command, which comes with the package."""

import os
import sys

from ._command import command_path


def main() -> None:
    path = command_path()
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
