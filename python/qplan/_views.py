"""What callbacks see: the old function (Pre), the new one (Post), what a pattern found (Matches)."""

import ctypes

import numpy

from . import _capi
from ._attrs import c_attr, py_attr
from ._copying import Immutable
from ._errors import Error
from ._library import library
from ._plan import _numpy_dtype
from ._tensor import Tensor, as_array
from ._texts import c_text


def _text(text):
    return text.decode("utf-8", "replace")


class _View(Immutable):
    """A handle that is valid as long as the callback runs."""

    def __init__(self, handle):
        self._live_handle = handle

    @property
    def _handle(self):
        if self._live_handle is None:
            raise RuntimeError("values and views of a callback are used after it has returned")
        return self._live_handle

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self._live_handle = None

    def _own(self, value):
        """The value, checked to belong to this view: packs nest, and each has its own functions."""
        value._c()
        if value._view is not self:
            raise ValueError(f"{value!r} is of another callback")
        return value


class Pre(_View):
    """The function as it was, to be read only."""

    def _call(self, function, *arguments):
        status = getattr(library(), function)(self._handle, *arguments)
        self._check(status)

    def _check(self, status):
        if status < 0:
            raise Error(status, _text(library().qplan_pre_error(self._handle)))

    def _info(self):
        info = _capi.FunctionInfo()
        self._call("qplan_pre_function_info", info)
        return info

    def _values(self, function, count, *arguments):
        values = []
        for i in range(count):
            handle = _capi.PreValueHandle()
            self._call(function, *arguments, i, handle)
            values.append(PreValue(self, handle.index))
        return tuple(values)

    @property
    def name(self):
        """Of the function: "main"."""
        return _text(self._info().name)

    @property
    def params(self):
        """The parameters of the function, in their order."""
        return self._values("qplan_pre_param", self._info().num_params)

    @property
    def outputs(self):
        """The values that the function returns, in their order."""
        return self._values("qplan_pre_output", self._info().num_outputs)

    @property
    def nodes(self):
        """All nodes, in topological order."""
        return tuple(PreNode(self, i) for i in range(self._info().num_nodes))


class _Value:
    """Properties that values of both functions have."""

    def __init__(self, view, index):
        self._view, self._index = view, index

    def _info(self):
        info = _capi.ValueInfo()
        self._view._call(self._info_function, self._c(), info)
        return info

    def _c(self):
        self._view._handle  # the callback is still running
        return self._handle_type(self._index)

    def __eq__(self, other):
        return type(other) is type(self) and other._view is self._view and other._index == self._index

    def __hash__(self):
        return hash((type(self), self._index))

    @property
    def shape(self):
        """A tuple of extents."""
        info = self._info()
        return tuple(info.shape[: info.ndim])

    @property
    def dtype(self):
        """The NumPy dtype of its elements."""
        return _numpy_dtype(self._info().dtype)

    @property
    def name(self):
        """Of the source model, may be ""."""
        return _text(self._info().name)

    @property
    def is_constant(self):
        """Whether it is a constant, whose elements `array` has."""
        return self._info().kind == _capi.VALUE_CONSTANT

    @property
    def array(self):
        """A copy of a constant's elements; ValueError for other values."""
        info = self._info()
        if info.kind != _capi.VALUE_CONSTANT:
            raise ValueError(f"{self!r} is no constant")
        elements = numpy.frombuffer(ctypes.string_at(info.data, info.size_bytes), _numpy_dtype(info.dtype))
        return elements.reshape(tuple(info.shape[: info.ndim])).copy()

    def __repr__(self):
        if self._view._live_handle is None:
            return f"<{type(self).__name__} of a callback that has returned>"
        return f"<{type(self).__name__} '{self.name}' {self.dtype}{list(self.shape)}>"


class PreValue(_Value):
    """A value of the old function. post[value] is its counterpart in the new one."""

    _handle_type = _capi.PreValueHandle
    _info_function = "qplan_pre_value_info"

    @property
    def num_uses(self):
        """By operands and outputs."""
        return self._info().num_uses

    @property
    def producer(self):
        """The node that makes it; None for parameters and constants."""
        handle = _capi.PreNodeHandle()
        status = library().qplan_pre_producer(self._view._handle, self._c(), handle)
        if status == _capi.NOT_FOUND:
            return None
        self._view._check(status)
        return PreNode(self._view, handle.index)


class PostValue(_Value):
    """A value of the new function."""

    _handle_type = _capi.PostValueHandle
    _info_function = "qplan_post_value_info"


class PreNode:
    """A node of the old function."""

    def __init__(self, view, index):
        self._view, self._index = view, index

    def _c(self):
        return _capi.PreNodeHandle(self._index)

    def _info(self):
        info = _capi.NodeInfo()
        self._view._call("qplan_pre_node_info", self._c(), info)
        return info

    def __eq__(self, other):
        return type(other) is PreNode and other._view is self._view and other._index == self._index

    def __hash__(self):
        return hash(self._index)

    @property
    def op(self):
        """ "qnn.conv2d"; "" for a call of a function of the module."""
        return _text(self._info().op)

    @property
    def name(self):
        """Of the source model, may be ""."""
        return _text(self._info().name)

    @property
    def operands(self):
        """The values that the node reads, in their order."""
        return self._view._values("qplan_pre_operand", self._info().num_operands, self._c())

    @property
    def results(self):
        """The values that the node makes, in their order."""
        return self._view._values("qplan_pre_result", self._info().num_results, self._c())

    @property
    def result(self):
        """The only result."""
        (result,) = self.results
        return result

    def __getitem__(self, name):
        """The attribute, or the operator's default; KeyError where there is neither."""
        attr = _capi.Attr()
        status = library().qplan_pre_attr(self._view._handle, self._c(), c_text("the name of an attribute", name), attr)
        if status == _capi.NOT_FOUND:
            raise KeyError(name)
        self._view._check(status)
        return py_attr(attr)

    @property
    def attrs(self):
        """A dict of those that are written, for a node that is like this one: post.call(op, x, **node.attrs)."""
        attrs = {}
        for i in range(self._info().num_attrs):
            attr = _capi.Attr()
            self._view._call("qplan_pre_attr_at", self._c(), i, attr)
            attrs[_text(attr.name)] = py_attr(attr)
        return attrs

    def __repr__(self):
        if self._view._live_handle is None:
            return "<PreNode of a callback that has returned>"
        return f"<PreNode {self.op or 'call'} '{self.name}'>"


class Matches:
    """The values that a pattern named: matches["data"]; matches.root is the node whose result matched."""

    def __init__(self, pre, handle):
        self._pre, self._handle = pre, handle

    def get(self, name):
        """None where an alternative or an optional operator left it out."""
        handle = _capi.PreValueHandle()
        self._pre._handle
        status = library().qplan_matches_find(self._handle, c_text("the name of a match", name), handle)
        if status == _capi.NOT_FOUND:
            return None
        self._pre._check(status)
        return PreValue(self._pre, handle.index)

    def __contains__(self, name):
        return self.get(name) is not None

    def __getitem__(self, name):
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    @property
    def root(self):
        """The node whose result matched."""
        handle = _capi.PreNodeHandle()
        self._pre._handle
        self._pre._check(library().qplan_matches_root(self._handle, handle))
        return PreNode(self._pre, handle.index)


class Post(_View):
    """The function that takes the old one's place, to be added to."""

    def __init__(self, pre, handle):
        super().__init__(handle)
        self._pre = pre

    def _call(self, function, *arguments):
        self._pre._check(getattr(library(), function)(self._handle, *arguments))

    def __getitem__(self, value):
        """The counterpart of the old value."""
        if not isinstance(value, PreValue):
            raise TypeError(f"post[...] takes a value of the old function, not {value!r}")
        self._pre._own(value)
        handle = _capi.PostValueHandle()
        self._call("qplan_post_value_of", value._c(), handle)
        return PostValue(self, handle.index)

    def constant(self, array, name=""):
        """A constant of the array's elements; the same type and content give the same value."""
        handle = _capi.PostValueHandle()
        tensor = Tensor(as_array(array, "the constant")).struct
        self._call("qplan_post_constant", tensor, c_text("the name of a constant", name), handle)
        return PostValue(self, handle.index)

    def call(self, op, *operands, name="", **attrs):
        """A node of one result; name: of the source operator, for messages."""
        return self.call_all(op, operands, attrs, name)[0]

    def call_all(self, op, operands, attrs, name="", num_results=1):
        """A node of several results."""
        for i, operand in enumerate(operands):
            if not isinstance(operand, PostValue):
                hint = "; write post[value]" if isinstance(operand, PreValue) else ""
                raise TypeError(f"{op}: operand {i} is {operand!r}, expected a value of the new function{hint}")
        c_operands = (_capi.PostValueHandle * len(operands))(*(self._own(operand)._c() for operand in operands))
        c_attrs = (_capi.Attr * len(attrs))(*(c_attr(key, value) for key, value in attrs.items()))
        results = (_capi.PostValueHandle * num_results)()
        self._call(
            "qplan_post_call",
            c_text("the name of an operator", op),
            c_operands,
            len(operands),
            c_attrs,
            len(attrs),
            c_text("the name of a node", name),
            results,
            num_results,
        )
        return tuple(PostValue(self, result.index) for result in results)

    def replace(self, value, replacement):
        """In a pass: readers of the old value read the new one from here on. In the order of the nodes."""
        if not isinstance(value, PreValue) or not isinstance(replacement, PostValue):
            raise TypeError(f"replace takes a value of the old function and one of the new, not {value!r}, {replacement!r}")
        self._call("qplan_post_replace", self._pre._own(value)._c(), self._own(replacement)._c())

    def why(self, text):
        """Why a rewrite fires, or why it does not: one line for the log or the near-miss report."""
        self._call("qplan_post_why", c_text("the text of why()", text))
