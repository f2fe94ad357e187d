"""What the steps of a plan write: Session.run(..., tensors=[...])."""

import ctypes

import numpy

from . import _capi
from ._callbacks import deferred_interrupt
from ._errors import Error
from ._library import library
from ._plan import _tensor_info

_STEP_END = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)


class Observer:
    """Copies outputs of steps while a session runs. hook: the step_end of the session's platform."""

    def __init__(self):
        self.hook = _STEP_END(self._on_end)
        self.session = None
        self.names = None  # of the tensors that are copied; None: all
        self.found = {}
        self.known = []
        self.error = None

    def _on_end(self, _user, _event, status):
        if status < 0 or self.error is not None:
            return
        try:
            self._copy_outputs()
        except BaseException as error:  # must not leave a callback
            self.error = error

    def _copy_outputs(self):
        lib = library()
        for index in range(2**32):
            info, view = _capi.TensorInfo(), _capi.DLTensor()
            if lib.qplan_session_step_output(self.session, index, info, view) < 0:
                return
            name = (info.name or b"").decode("utf-8", "replace")
            self.known.append(name)
            if self.names is not None and name not in self.names:
                continue
            found = _tensor_info(info)
            data = ctypes.string_at(view.data + view.byte_offset, found.size_bytes)
            self.found[name] = numpy.frombuffer(data, found.dtype).reshape(found.shape).copy()

    def run(self, session, inputs, out, tensors):
        """The outputs of session.run(*inputs), and a dict of the tensors by name."""
        if isinstance(tensors, (str, bytes)):
            raise Error(_capi.INVALID_ARGUMENT, f"tensors is {tensors!r}, expected a list of names, or the builtin all")
        self.names = None if tensors is all else set(tensors)
        self.found, self.known, self.error = {}, [], None
        self.session = session._session
        with deferred_interrupt():
            outputs = session.run(*inputs, out=out)
        if self.error is not None:
            raise self.error
        for name in self.names or ():
            if name not in self.found:
                raise Error(_capi.NOT_FOUND, f"no step writes a tensor {name!r}; {self._hint()}")
        return outputs, self.found

    def _hint(self):
        shown = ", ".join(repr(name) for name in self.known[:20])
        more = f" and {len(self.known) - 20} others" if len(self.known) > 20 else ""
        return f"steps write {shown}{more}. Cascades hide the tensors between their layers: pack with fuse='off'"


def observed(session, arguments):
    """A session like this one whose steps an Observer sees."""
    if session.plan.inspect()["states"]:
        raise Error(
            _capi.INVALID_STATE,
            "run(tensors=...) is for plans without states; the command's 'run --dump-tensors' shows the others",
        )
    observer = Observer()
    made = type(session)(session.plan, _step_end=observer.hook, **arguments)
    made._observer = observer
    return made
