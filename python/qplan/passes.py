"""Patterns, rewrites and passes in Python.

    from qplan.passes import any_value, op

    @qplan.rewrite(op("negative")(op("negative")(any_value().as_("x"))))
    def drop_double_negative(pre, post, matches):
        return post[matches["x"]]

    qplan.pack("model.onnx", passes=[drop_double_negative])

A rewrite builds the replacement of the value that matched and returns it, or None where it does not apply. pre is the
old function, post the new one; post[value] is the counterpart in post of a value of pre. Both, and everything that comes
from them, are valid until the callback returns. An exception of a callback ends packing with an Error whose __cause__
it is.
"""

import ctypes

from . import _capi
from ._callbacks import guarded
from ._errors import whole
from ._patterns import Pattern, any_value, commutative, constant, dominates, op, optional, param
from ._texts import c_optional_text, c_text
from ._views import Matches, Post, PostValue, Pre, PreNode, PreValue

__all__ = [
    "Matches",
    "Pass",
    "Pattern",
    "Post",
    "PostValue",
    "Pre",
    "PreNode",
    "PreValue",
    "Rewrite",
    "any_value",
    "commutative",
    "constant",
    "dominates",
    "op",
    "optional",
    "param",
    "rewrite",
]


class Rewrite:
    """A pattern and a function build(pre, post, matches). Among rewrites of one pass those of higher benefit are tried
    first. Calling the rewrite calls the function."""

    def __init__(self, name, pattern, build, benefit=0):
        if not isinstance(pattern, Pattern):
            raise TypeError(f"the pattern of rewrite '{name}' is {pattern!r}")
        self.name, self.pattern, self.build = name, pattern, build
        self._build = _capi.BuildFunction(self._call_build)
        self._c = _capi.UserRewrite(
            benefit=whole("benefit", benefit, -(2**31), 2**31 - 1),
            name=c_text("the name of a rewrite", name),
            pattern=pattern._handle,
            user=None,
            build=self._build,
        )

    def __call__(self, pre, post, matches):
        return self.build(pre, post, matches)

    def _call_build(self, _user, c_pre, c_post, c_matches, c_result):
        with guarded(c_pre) as call, Pre(c_pre) as pre, Post(pre, c_post) as post:
            result = self.build(pre, post, Matches(pre, c_matches))
            if isinstance(result, PostValue):
                c_result[0] = post._own(result)._c()
            elif result is not None:
                raise TypeError(f"it returned {result!r}, expected a value of the new function (post[...], post.call(...))")
        return call.status


def rewrite(pattern, *, name=None, benefit=0):
    """Makes a Rewrite of the decorated function, with its name."""

    def decorate(build):
        return Rewrite(name or build.__name__, pattern, build, benefit)

    return decorate


class Pass:
    """A place in the pipeline: rewrites, tried until none fires, or run(pre, post), which reads all of pre and replaces
    values with post.replace(). after: the pass it follows; None: before all."""

    def __init__(self, name, rewrites=(), *, run=None, after=None):
        self.name, self.rewrites, self.after = name, tuple(rewrites), after
        for item in self.rewrites:
            if not isinstance(item, Rewrite):
                raise TypeError(f"pass '{name}': {item!r} is no Rewrite")
        self._function = run
        self._run = _capi.RunFunction(self._call_run) if run is not None else _capi.RunFunction()
        pointers = [ctypes.pointer(item._c) for item in self.rewrites]
        self._c = _capi.UserPass(
            num_rewrites=len(pointers),
            name=c_text("the name of a pass", name),
            after=c_optional_text("after", after),
            rewrites=(ctypes.POINTER(_capi.UserRewrite) * len(pointers))(*pointers),
            run=self._run,
        )

    def _call_run(self, _user, c_pre, c_post):
        with guarded(c_pre) as call, Pre(c_pre) as pre, Post(pre, c_post) as post:
            self._function(pre, post)
        return call.status


def as_pass(item):
    """Returns a Pass unchanged; makes a Rewrite a pass of its own, before all others."""
    if isinstance(item, Pass):
        return item
    if isinstance(item, Rewrite):
        return Pass(item.name, [item])
    raise TypeError(f"{item!r} is neither a Pass nor a Rewrite")


def attach(options, items):
    """Writes passes into _capi.PackOptions; returns what must live as long as they are used."""
    passes = [as_pass(item) for item in items]
    array = (ctypes.POINTER(_capi.UserPass) * len(passes))(*(ctypes.pointer(item._c) for item in passes))
    options.passes, options.num_passes = array, len(passes)
    return passes, array
