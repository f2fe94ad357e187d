"""What a session holds in C, and how it goes: by close(), the garbage collector, the interpreter's exit, in a forked
child."""

import ctypes
import os

from . import _capi
from ._library import library

# What C may still use is kept as long as the process lives: after its exit begins, too, when Python empties modules.
_abandoned = []
if hasattr(ctypes, "pythonapi"):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_abandoned))

# How long the exit waits for a run that it has cancelled: steps look at that every few milliseconds, a device's job
# may take longer.
_EXIT_SECONDS = 5.0


class Resources:
    """The argument of the session's finalizer, so it has no reference to the session, and neither has what it holds.

    memory: _session_memory.Memory. pool: NULL or a pool of threads. lock: held by whoever runs the session.
    cancel_lock: held by whoever cancels a run. kept: what C has addresses of, until the session is gone.
    """

    def __init__(self, memory, pool, destroy_pool, lock, cancel_lock, plan, devices, kept):
        self.memory = memory
        self.pool = pool
        self.destroy_pool = destroy_pool
        self.lock = lock
        self.cancel_lock = cancel_lock
        self.plan = plan
        self.devices = devices
        self.kept = kept
        self.storages = []  # of Buffers
        self.bound = set()  # (direction, index) of inputs and outputs
        self.process = os.getpid()

    def end(self):
        """The finalizer: nobody has the session any more, or the interpreter exits.

        Then a thread may still be in a run, which ends early. Where it does not, everything stays as it is.
        """
        if not self.lock.acquire(blocking=False):
            library().qplan_session_cancel(self.memory.session)
            if not self.lock.acquire(timeout=_EXIT_SECONDS):
                self._abandon()
                return
        try:
            with self.cancel_lock:
                self.free()
        finally:
            self.lock.release()

    def free(self):
        """For callers with both locks."""
        if self.devices and self.process != os.getpid():
            # A forked child has neither the threads of the devices nor a say in them: they are its parent's.
            self._abandon()
            return
        lib = library()
        session = self.memory.session
        for direction, index in self.bound:
            lib.qplan_session_bind(session, direction, index, None)
        for storage in self.storages:
            lib.qplan_buffer_destroy(ctypes.byref(storage))
        if lib.qplan_session_deinit(session) == _capi.DEVICE_ERROR:
            # Nothing has stopped the device: it may still use memory and plan.
            _abandoned.append((self.memory, self.plan))
        if self.pool:
            self.destroy_pool(self.pool)

    def _abandon(self):
        for device in self.devices:
            device._leave_open()
        _abandoned.append(self)
