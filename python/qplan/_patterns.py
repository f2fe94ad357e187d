"""Patterns: the nodes that a rewrite matches."""

import ctypes
import itertools
from typing import Any, Dict

from . import _capi
from ._attrs import c_attr
from ._callbacks import guarded
from ._copying import Immutable
from ._errors import check, whole
from ._library import library
from ._tensor import dl_dtype
from ._texts import c_text, listed
from ._views import Pre, PreValue

_conditions: Dict[Any, Any] = {}  # what C holds of Pattern.where(), by number
_numbers = itertools.count(1)


def _holds(user, pre, value):
    with guarded(pre) as call:
        function = _conditions[user]
        view = Pre(pre)
        with view:
            call.status = 1 if function(view, PreValue(view, value.index)) else 0
    return call.status


def _release(user):
    _conditions.pop(user, None)


# Kept here for as long as C may call them.
_HOLDS = _capi.HoldsFunction(_holds)
_RELEASE = _capi.ReleaseFunction(_release)


def _texts(names):
    return (ctypes.c_char_p * len(names))(*(c_text("the name of an operator", name) for name in names))


def _handles(patterns):
    for pattern in patterns:
        if not isinstance(pattern, Pattern):
            raise TypeError(f"{pattern!r} is no Pattern")
    return (ctypes.c_void_p * len(patterns))(*(pattern._handle for pattern in patterns))


class Pattern(Immutable):
    """A condition on a value and on what makes it. Patterns are immutable: every method returns a new one."""

    def __init__(self, create, *arguments):
        """create: the name of a C function; for this module."""
        self._handle = None
        handle, error = ctypes.c_void_p(), _capi.Error()
        check(getattr(library(), create)(*arguments, handle, error), error)
        self._handle = handle.value
        self._destroy = library().qplan_pattern_destroy

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            self._destroy(self._handle)

    def as_(self, name):
        """The value is found as matches[name]. The same name twice is the same value twice."""
        return Pattern("qplan_pattern_as", self._handle, c_text("the name of as_()", name))

    def dtype(self, *any_of):
        """The value has one of these NumPy dtypes: "int8", numpy.float32, ..."""
        found = [dl_dtype(dtype) for dtype in any_of]
        # The functions that passes see have bool as one bit.
        found += [_capi.DLDataType(_capi.DL_UINT, 1, 1) for dtype in found if dtype.code == _capi.DL_BOOL]
        return Pattern("qplan_pattern_dtypes", self._handle, (_capi.DLDataType * len(found))(*found), len(found))

    def shape(self, *extents):
        """The value has exactly these extents."""
        checked = [whole(f"extent {i} of shape()", extent, 0, 2**63 - 1) for i, extent in enumerate(extents)]
        return Pattern("qplan_pattern_shape", self._handle, (ctypes.c_int64 * len(checked))(*checked), len(checked))

    def rank(self, ndim):
        """The value has so many axes."""
        return Pattern("qplan_pattern_rank", self._handle, whole("rank", ndim, 0, 2**32 - 1))

    def one_use(self):
        """Only one operand or output reads the value."""
        return Pattern("qplan_pattern_one_use", self._handle)

    def attr(self, **attrs):
        """The attributes of the node, or the operator's defaults, have these values."""
        pattern = self
        for name, value in attrs.items():
            pattern = Pattern("qplan_pattern_attr", pattern._handle, c_attr(name, value))
        return pattern

    def where(self, text, holds):
        """Any other condition: holds(pre, value) -> bool. text ends the sentence "expected a value ..."."""
        c_condition = c_text("the text of where()", text)
        number = next(_numbers)
        _conditions[number] = holds
        try:
            return Pattern("qplan_pattern_where", self._handle, c_condition, _HOLDS, number, _RELEASE)
        except Exception:
            _conditions.pop(number)
            raise

    def __or__(self, other):
        """This pattern, or else the other."""
        if not isinstance(other, Pattern):
            return NotImplemented
        return Pattern("qplan_pattern_either", self._handle, other._handle)

    def __str__(self):
        text = _capi.Pieces()
        check(library().qplan_pattern_text(self._handle, text.function, None, None))
        return text.text()

    def __repr__(self):
        return f"<Pattern {self}>"


class _Op(Pattern):
    """Of an operator with any operands; called with patterns: with these."""

    def __init__(self, names, commutative=False):
        super().__init__("qplan_pattern_op", _texts(names), len(names), None, 0, 0)
        self._names, self._commutative = names, commutative

    def __call__(self, *operands):
        return Pattern(
            "qplan_pattern_op",
            _texts(self._names),
            len(self._names),
            _handles(operands),
            len(operands),
            int(self._commutative),
        )


def any_value():
    """Any value at all."""
    return Pattern("qplan_pattern_value", _capi.VALUE_ANY)


def constant():
    """A constant of the model."""
    return Pattern("qplan_pattern_value", _capi.VALUE_CONSTANT)


def param():
    """A parameter of the function."""
    return Pattern("qplan_pattern_value", _capi.VALUE_PARAM)


def op(*names):
    """A result of one of the operators: op("clip"), op("nn.relu", "clip")(constant())."""
    return _Op(names)


def commutative(name):
    """The first two operands in either order: commutative("add")(constant(), any_value())."""
    return _Op((name,), True)


def optional(name, inner, *others):
    """The operator on inner (and others), or inner alone."""
    return Pattern("qplan_pattern_optional", *_texts([name]), _handles([inner])[0], _handles(others), len(others))


def dominates(parent, path, child):
    """child, whose first operand leads through operators of path to parent, each value between read once."""
    path = listed("path", path)
    parent_handle, child_handle = _handles([parent, child])
    return Pattern("qplan_pattern_dominates", parent_handle, _texts(path), len(path), child_handle)
