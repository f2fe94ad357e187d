"""Drivers of NPUs, the devices that they open, and memory that a device and the CPU both reach."""

import contextlib
import ctypes
import os
import weakref

import numpy

from . import _capi
from ._copying import NotCopied
from ._errors import Error, check, whole
from ._library import library
from ._tensor import dl_dtype
from ._texts import c_path, c_text


class Driver(NotCopied):
    """A driver: "sim", the simulator of VTA, or the path of a driver's shared library."""

    def __init__(self, library_path="sim"):
        lib = library()
        self._driver = ctypes.c_void_p()
        self._finalizer = None
        self.is_simulated = library_path == "sim"
        if library_path == "sim":
            self._driver.value = lib.qplan_npu_sim_driver(_capi.NPU_ABI)
            return
        handle = ctypes.c_void_p()
        error = _capi.Error()
        check(lib.qplan_host_driver_load(c_path("library_path", library_path), self._driver, handle, error), error)
        # Devices hold on to their driver, so that none is left open when the library goes.
        self._finalizer = weakref.finalize(self, _in_this_process, os.getpid(), lib.qplan_host_driver_unload, handle)

    def open(self, target="vta", options="", index=0):
        """Opens the driver's device `index`, for the regions of a plan that were packed for target.

        options: text of the driver's own; the simulator's are in qplan/npu_sim.h: "sram=quarter,explore=8".
        """
        return Device(self, target, options, index)


class Device(NotCopied):
    """An open device, for Session(devices=[...]). close(), the with block or the garbage collector closes it; sessions
    keep those that they use open."""

    def __init__(self, driver, target="vta", options="", index=0):
        lib = library()
        clock = ctypes.cast(lib.qplan_host_now_ns, ctypes.c_void_p)
        self.target = target
        self._target_text = c_text("target", target)
        self._driver = driver
        self.is_simulated = driver.is_simulated
        self._platform = _capi.Platform(now_ns=clock)
        self._device = _capi.HostDevice()
        self._users = weakref.WeakSet()  # sessions
        error = _capi.Error()
        check(
            lib.qplan_host_device_open(
                driver._driver, whole("index", index, 0, 2**32 - 1), c_text("options", options), ctypes.byref(self._platform), ctypes.byref(self._device), error
            ),
            error,
        )
        self._finalizer = weakref.finalize(
            self,
            _in_this_process,
            os.getpid(),
            lib.qplan_host_device_close,
            ctypes.byref(self._device),
            driver,
            self._platform,
        )

    def _config(self):
        if not self._finalizer.alive:
            raise Error(_capi.INVALID_STATE, "the device is closed")
        return _capi.NpuDeviceConfig(
            target=self._target_text,
            driver=self._device.driver,
            device=self._device.device,
            status=self._device.status,
        )

    def close(self):
        """Closes the device; more calls change nothing."""
        if any(not session.is_closed for session in self._users):
            raise Error(_capi.INVALID_STATE, "the device is used by a session; close that first")
        self._finalizer()

    def _leave_open(self):
        """For devices of a session that cannot be taken down: neither they nor their driver's library go any more."""
        for finalizer in (self._finalizer, self._driver._finalizer):
            if finalizer is not None:
                finalizer.detach()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _in_this_process(process, function, argument, *_kept_alive):
    """function(argument), except in a forked child: what its parent has opened is the parent's to close."""
    if process == os.getpid():
        function(argument)


class Buffer(NotCopied):
    """A tensor in memory that a session's device and the CPU both reach: Session.buffer() makes them.

    Bound as an input or output (Session.bind) it spares the copies between the application and the session, and where
    the device's arrangement is the packed tensor's, those to the device too.
    """

    def __init__(self, session, device_index, shape, dtype):
        dtype = numpy.dtype(dtype)
        whole("device", device_index, 0, 2**32 - 1)
        checked = [whole(f"extent {axis}", extent, 0, 2**63 - 1) for axis, extent in enumerate(shape)]
        extents = (ctypes.c_int64 * len(shape))(*checked)
        tensor = _capi.DLTensor(ndim=len(shape), dtype=dl_dtype(dtype), shape=extents)
        self.shape = tuple(shape)
        self.dtype = dtype
        self._session = session  # which destroys it
        self._buffer = _capi.Buffer()
        session._check(
            library().qplan_buffer_create(session._handle(), device_index, tensor, 0, ctypes.byref(self._buffer))
        )

    def _begin(self, access):
        view = _capi.DLTensor()
        self._session._handle()
        status = library().qplan_buffer_begin_access(ctypes.byref(self._buffer), access, view)
        self._session._check(status)
        return view

    @contextlib.contextmanager
    def access(self, mode="r"):
        """The buffer as a NumPy array while the block lasts; mode: "r", "w" or "rw". The session must not run in it.

        The array is of no use after the block: what is written then need not reach the device.
        """
        modes = {"r": _capi.BUFFER_READ, "w": _capi.BUFFER_WRITE, "rw": _capi.BUFFER_READ | _capi.BUFFER_WRITE}
        if mode not in modes:
            raise Error(_capi.INVALID_ARGUMENT, f"mode is {mode!r}, expected 'r', 'w' or 'rw'")
        with self._session._lock:
            view = self._begin(modes[mode])
            self._session._accesses += 1
        try:
            size = int(numpy.prod(self.shape, dtype=numpy.int64)) * self.dtype.itemsize
            array = numpy.frombuffer((ctypes.c_uint8 * size).from_address(view.data), self.dtype).reshape(self.shape)
            array.flags.writeable = mode != "r"
            yield array
        finally:
            with self._session._lock:
                self._session._accesses -= 1
                if not self._session.is_closed:  # as it is after the interpreter's exit began
                    self._session._check(library().qplan_buffer_end_access(ctypes.byref(self._buffer)))

    def _bind_to(self, direction, index):
        view = self._begin(_capi.BUFFER_READ)
        try:
            return library().qplan_session_bind(self._session._handle(), direction, index, view)
        finally:
            library().qplan_buffer_end_access(ctypes.byref(self._buffer))
