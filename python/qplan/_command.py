"""Finds the command `qplan`, for what runs in a process of its own."""

import os
import pathlib
import shutil
import subprocess
from typing import Sequence

from . import _capi
from ._errors import Error


def command_path() -> str:
    """QPLAN_COMMAND; else the command in this package, of the build tree or the installation around it, or in PATH."""
    named = os.environ.get("QPLAN_COMMAND")
    if named:
        return named
    package = pathlib.Path(__file__).resolve().parent
    repository = package.parent.parent
    places = [package / "bin" / "qplan"]
    if (repository / "CMakeLists.txt").is_file():
        places.append(repository / "build" / "release" / "bin" / "qplan")
    places += [folder / "bin" / "qplan" for folder in list(package.parents)[1:5]]
    for place in places:
        if place.is_file() and os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("qplan")
    # The script of a wheel would start this again.
    if found and pathlib.Path(found).resolve().read_bytes()[:2] != b"#!":
        return found
    raise FileNotFoundError(
        "the command 'qplan' was not found; build it (cmake --preset release && cmake --build --preset release), install it, "
        "or name it in QPLAN_COMMAND"
    )


def run_command(arguments: Sequence[str], progress: bool = False) -> str:
    """Runs the command and returns what it prints. progress: its standard error goes to ours."""
    done = subprocess.run(
        [command_path(), *arguments],
        stdout=subprocess.PIPE,
        stderr=None if progress else subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        text = (done.stderr or done.stdout or "").strip() or f"qplan {arguments[0]}: exit status {done.returncode}"
        raise Error(_capi.INVALID_ARGUMENT, text)
    return done.stdout
