"""Exceptions and Ctrl-C inside callbacks: C cannot carry them, so the call of the packer ends early and raises them
again."""

import contextlib
import functools
import signal
import threading

from . import _capi
from ._errors import Error
from ._library import library

_state = threading.local()  # callbacks run in the thread that packs


class _Call:
    status = _capi.OK


def keeping(function):
    """A callback without a result whose exceptions are kept for raising(), and after one of them does nothing more."""

    @functools.wraps(function)
    def call(*arguments):
        if getattr(_state, "exception", None) is None:
            try:
                function(*arguments)
            except BaseException as exception:  # nothing may go through C
                _state.exception = exception

    return call


def cancelled(_user):
    """What the packer asks now and then: non-zero ends the call."""
    return int(getattr(_state, "exception", None) is not None or bool(getattr(_state, "signals", ())))


@contextlib.contextmanager
def deferred_interrupt():
    """Ctrl-C while C runs only takes a note, which cancelled() reads; its handler runs when the call has returned.

    Python would raise KeyboardInterrupt at the first instruction of a callback, where nothing can catch it.
    """
    handler = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    if not callable(handler):  # another thread, or SIGINT is ignored or not Python's
        yield
        return
    outer = getattr(_state, "signals", ())  # of the call whose callback makes this one
    signals = _state.signals = []
    signal.signal(signal.SIGINT, lambda number, frame: signals.append((number, frame)))
    try:
        yield
    finally:
        _state.signals = outer
        signal.signal(signal.SIGINT, handler)
        if signals:
            handler(*signals[0])


@contextlib.contextmanager
def guarded(pre):
    """Wraps the work of a callback; the callback returns the status that this gives."""
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
        # The text of any exception: C would end it at a NUL.
        library().qplan_pre_fail(pre, call.status, text.encode("utf-8", "replace").replace(b"\0", b"?"))


@contextlib.contextmanager
def raising():
    """Wraps a call of the packer with callbacks: raises what a callback raised. An Error of the packer names it as its
    cause; KeyboardInterrupt and similar exceptions, and the one that ended the call by cancelled(), are raised
    unchanged."""
    outer = getattr(_state, "exception", None)
    _state.exception = None
    try:
        with deferred_interrupt():
            yield
        if _state.exception is not None:  # too late to end the call
            raise _state.exception
    except Error as error:
        cause = _state.exception
        if cause is None or cause is error:
            raise
        if not isinstance(cause, Exception) or error.status == _capi.CANCELLED:
            raise cause from None
        raise error from cause
    finally:
        _state.exception = outer
