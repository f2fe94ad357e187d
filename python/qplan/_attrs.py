"""Attributes of nodes as Python values and as the C API sees them."""

import ctypes
import numbers

from . import _capi
from ._errors import whole
from ._texts import c_text


def _is_int(value):
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _int64(name, value):
    return whole(f"attribute '{name}'", value, -(2**63), 2**63 - 1)


def c_attr(name, value):
    """bool, int, float, str, a list of ints or a list of lists of ints. What it points to lives as long as it does."""
    attr = _capi.Attr(name=c_text("the name of an attribute", name))
    if isinstance(value, bool):
        attr.kind, attr.integer = _capi.ATTR_BOOL, int(value)
    elif _is_int(value):
        attr.kind, attr.integer = _capi.ATTR_INT, _int64(name, value)
    elif isinstance(value, numbers.Real):
        attr.kind, attr.number = _capi.ATTR_FLOAT, float(value)
    elif isinstance(value, str):
        attr.kind, attr.text = _capi.ATTR_STRING, c_text(f"attribute '{name}'", value)
    elif isinstance(value, (list, tuple)) and all(_is_int(item) for item in value):
        attr.kind, attr.count = _capi.ATTR_INTS, len(value)
        attr.ints = (ctypes.c_int64 * len(value))(*(_int64(name, item) for item in value))
    elif isinstance(value, (list, tuple)) and all(isinstance(item, (list, tuple)) for item in value):
        flat = [_int64(name, item) for row in value for item in row]
        attr.kind, attr.count = _capi.ATTR_INT_LISTS, len(value)
        attr.ints = (ctypes.c_int64 * len(flat))(*flat)
        attr.list_sizes = (ctypes.c_uint32 * len(value))(*(len(row) for row in value))
    else:
        raise TypeError(f"attribute '{name}' is {value!r}; a bool, int, float, str, list of ints or of lists is expected")
    return attr


def py_attr(attr):
    """The Python value of what C filled in."""
    if attr.kind == _capi.ATTR_BOOL:
        return bool(attr.integer)
    if attr.kind == _capi.ATTR_INT:
        return attr.integer
    if attr.kind == _capi.ATTR_FLOAT:
        return attr.number
    if attr.kind == _capi.ATTR_STRING:
        return attr.text.decode("utf-8", "replace")
    if attr.kind == _capi.ATTR_INTS:
        return attr.ints[: attr.count]
    rows, begin = [], 0
    for size in attr.list_sizes[: attr.count]:
        rows.append(attr.ints[begin : begin + size])
        begin += size
    return rows
