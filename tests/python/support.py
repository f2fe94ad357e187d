"""What the tests of the Python package share."""

import os
import pathlib
import subprocess
import sys
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DIGITS = REPOSITORY / "samples" / "models" / "digits.tflite"
DIGITS_DATA = REPOSITORY / "tests" / "data" / "digits"
SHARED = pathlib.Path(os.environ.get("QPLAN_SHARED", REPOSITORY.parent / "shared"))

sys.path.insert(0, str(REPOSITORY / "python"))

try:
    import numpy
    import qplan
    from qplan._library import library

    library()
except ImportError as error:  # no NumPy, no library
    raise unittest.SkipTest(str(error)) from error


def run_program(program, seconds=120, **environment):
    """What a Python program printed, in a process of its own; CalledProcessError where it fails."""
    ended = subprocess.run(
        [sys.executable, "-B", "-c", program],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), **environment},
        stdout=subprocess.PIPE,
        text=True,
        timeout=seconds,
        check=True,
    )
    return ended.stdout


def digit_input(digit):
    return numpy.fromfile(DIGITS_DATA / f"digit{digit}_input.bin", numpy.int8).reshape(1, 16, 16, 1)


def digit_output(digit):
    return numpy.fromfile(DIGITS_DATA / f"digit{digit}_output.bin", numpy.int8).reshape(1, 10)
