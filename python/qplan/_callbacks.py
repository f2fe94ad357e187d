"""What happens to exceptions of callbacks: C cannot carry them, the call of the packer raises them again."""

import contextlib
import threading

from . import _capi
from ._errors import Error
from ._library import library

_state = threading.local()  # callbacks run in the thread that packs


class _Call:
    status = _capi.OK


@contextlib.contextmanager
def guarded(pre):
    """Around the work of a callback, which returns the status of what this gives."""
    call = _Call()
    try:
        yield call
    except BaseException as exception:  # nothing may go through C
        _state.exception = exception
        if isinstance(exception, Error):
            call.status, text = exception.status, exception.text
        else:
            call.status = _capi.INVALID_ARGUMENT if isinstance(exception, Exception) else _capi.CANCELLED
            text = f"{type(exception).__name__}: {exception}"
        library().qplan_pre_fail(pre, call.status, text.encode("utf-8", "replace"))


@contextlib.contextmanager
def raising():
    """Around a call of the packer with callbacks: the Error it raises names the exception of a callback as its cause;
    KeyboardInterrupt and the like are raised as they are."""
    outer = getattr(_state, "exception", None)
    _state.exception = None
    try:
        yield
    except Error as error:
        cause = _state.exception
        if cause is None:
            raise
        if not isinstance(cause, Exception):
            raise cause from None
        raise error from cause
    finally:
        _state.exception = outer
