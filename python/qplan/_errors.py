"""The one exception of this package."""

import operator

from . import _capi
from ._library import library


class Error(RuntimeError):
    """A call of the C API that failed.

    status: the qplan_status, a negative number; status_name: its name, "QPLAN_SHAPE_MISMATCH"; text: one line that
    says what, where, found and expected; step, tensor: index of the step or tensor concerned, or -1.
    """

    def __init__(self, status, text="", step=-1, tensor=-1):
        self.status = status
        self.status_name = library().qplan_status_name(status).decode()
        self.text = text or self.status_name
        self.step = step
        self.tensor = tensor
        super().__init__(f"{self.text} [{self.status_name}]")

    def __reduce__(self):
        return Error, (self.status, self.text, self.step, self.tensor)


def check(status, error=None, text=""):
    """Raises Error for a negative status; error is the _capi.Error the call filled, text overrides its text."""
    if status >= 0:
        return
    if error is None:
        raise Error(status, text)
    raise Error(status, text or error.text.decode("utf-8", "replace"), error.step, error.tensor)


def whole(name, value, least, most):
    """The value as an int; Error unless it is a whole number in the range. ctypes would drop the bits that do not fit.

    Whatever Python takes for an index is whole, such as NumPy's integers.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        raise Error(_capi.INVALID_ARGUMENT, f"{name} is {value!r}, expected a number from {least} to {most}")
    return number
