"""Texts, paths and lists of them on their way to C, which would end a text at a NUL character."""

import os

from . import _capi
from ._errors import Error


def _without_nul(what, given, encoded):
    if b"\0" in encoded:
        raise Error(_capi.INVALID_ARGUMENT, f"{what} is {given!r}: it contains a NUL character, at which C would end it; leave it out")
    return encoded


def c_text(what, text):
    """The bytes of a string for C; what: names it in the error."""
    if not isinstance(text, str):
        raise TypeError(f"{what} is {text!r}, expected a string")
    return _without_nul(what, text, text.encode())


def c_optional_text(what, text):
    """The same; None stays None."""
    return None if text is None else c_text(what, text)


def c_path(what, path):
    """The bytes of a path for C."""
    return _without_nul(what, os.fspath(path), os.fsencode(path))


def c_optional_path(what, path):
    """The same; None stays None."""
    return None if path is None else c_path(what, path)


def c_model_path(function, model):
    """The same of a model, for functions that take no bytes of one as pack does: they would be read as a path."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        raise TypeError(f"qplan.{function}() takes the path of a model, found {len(model)} bytes; write them to a file")
    return c_path("model", model)


def listed(what, values):
    """The values as a tuple. A single string is refused, because it would be read letter by letter."""
    if isinstance(values, (str, bytes, os.PathLike)):
        raise Error(_capi.INVALID_ARGUMENT, f"{what} is {values!r}, expected a list: [{values!r}]")
    return tuple(values)
