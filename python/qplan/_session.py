"""A session: a plan with memory and threads."""

import collections.abc
import ctypes
import dataclasses
import threading
import warnings
import weakref

import numpy

from . import _capi
from ._devices import Buffer, Device
from ._errors import Error, check
from ._library import library
from ._plan import Plan, load_custom_operators
from ._tensor import Tensor


@dataclasses.dataclass(frozen=True)
class SessionInfo:
    steps: int
    threads: int
    isa: str  # the highest instruction set among the kernels that run
    macs: int  # of one run, as the plan states them
    memory_bytes: int
    work: int  # elementary operations of one run at most, as Plan.work


def available_isas():
    """Names of the instruction sets that this machine and build can run."""
    lib = library()
    found = []
    for isa in range(_capi.ISA_AUTO + 1, _capi.MAX_ISA + 1):
        name = lib.qplan_isa_name(isa)
        if name and lib.qplan_isa_available(isa):
            found.append(name.decode())
    return found


def _parse_isa(name):
    isa = ctypes.c_uint32()
    if library().qplan_isa_from_name(str(name).encode(), isa) < 0:
        known = ", ".join(available_isas())
        raise Error(_capi.INVALID_ARGUMENT, f"unknown instruction set '{name}'; this machine has auto, {known}")
    if isa.value != _capi.ISA_AUTO and not library().qplan_isa_available(isa):
        known = ", ".join(available_isas())
        raise Error(_capi.INVALID_ARGUMENT, f"this machine or build lacks '{name}'; it has {known}")
    return isa.value


def _release(lib, host_session, pool, destroy_pool, buffers, *_kept_alive):
    session = lib.qplan_host_session_get(host_session)
    for direction, index in buffers.bound:
        lib.qplan_session_bind(session, direction, index, None)
    for storage in buffers.storages:
        lib.qplan_buffer_destroy(ctypes.byref(storage))
    lib.qplan_host_session_destroy(host_session)
    if pool:
        destroy_pool(pool)


class _Buffers:
    """What a session must release before it is gone."""

    def __init__(self):
        self.storages = []
        self.bound = {}  # (direction, index) -> the Buffer or array


def _device_configs(devices):
    """An array of qplan_npu_device_config. devices: Device objects."""
    for device in devices:
        if not isinstance(device, Device):
            raise Error(_capi.INVALID_ARGUMENT, f"devices holds {device!r}, expected what Driver.open() gives")
    targets = [device.target for device in devices]
    if len(set(targets)) != len(targets):
        raise Error(_capi.INVALID_ARGUMENT, f"devices are for {targets}, expected at most one for each target")
    configs = [device._config() for device in devices]
    return (_capi.NpuDeviceConfig * len(configs))(*configs)


def _timeout_us(milliseconds, devices):
    """0 is the library's default."""
    if milliseconds is None:
        return 60_000_000 if any(device.is_simulated for device in devices) else 0
    return int(milliseconds * 1000)


class Session:
    """Runs a plan. Calls from several threads are served one after the other.

    plan: a Plan, a path or the bytes of a plan file. threads: that work on one run. isa: "auto" or one of
    available_isas(): use nothing beyond it. pool: "threads" or "openmp". The outputs are the same bits for all of these.

    devices: Device objects, at most one for each target; regions of the plan without a device run on the CPU, with the
    same bits. on_npu_failure: "fallback" (to the CPU), "retry" (once, then fallback) or "fail". npu_verify: run each
    region on the CPU too and count differences in regions. npu_timeout_ms: until a job counts as hung; None: a second, a minute
    where a device is simulated.

    max_work: refuse a plan that computes more (Plan.work) with QPLAN_WORK_LIMIT; None: no limit.
    custom_operators: a shared library with operators that qplan does not have (docs/custom-operators.md).
    """

    def __init__(
        self,
        plan,
        threads=1,
        isa="auto",
        *,
        pool="threads",
        devices=(),
        on_npu_failure="fallback",
        npu_verify=False,
        npu_timeout_ms=None,
        max_work=None,
        custom_operators=None,
    ):
        lib = library()
        self._plan = plan if isinstance(plan, Plan) else Plan(plan)
        self._lock = threading.Lock()
        # cancel() must not wait for the run that it is to end, and close() not free what cancel() touches.
        self._cancel_lock = threading.RLock()
        if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 1024:
            raise Error(_capi.INVALID_ARGUMENT, f"threads is {threads!r}, expected a number from 1 to 1024")
        if max_work is not None and (isinstance(max_work, bool) or not isinstance(max_work, int) or not 1 <= max_work < 2**64):
            raise Error(_capi.INVALID_ARGUMENT, f"max_work is {max_work!r}, expected None or a number from 1 to 2**64 - 1")
        pools = {
            "threads": (lib.qplan_pool_create, lib.qplan_pool_destroy),
            "openmp": (lib.qplan_openmp_pool_create, lib.qplan_openmp_pool_destroy),
        }
        if pool not in pools:
            raise Error(_capi.INVALID_ARGUMENT, f"pool is {pool!r}, expected 'threads' or 'openmp'")
        isa_limit = _parse_isa(isa)
        if on_npu_failure not in _capi.NPU_POLICIES:
            known = ", ".join(_capi.NPU_POLICIES)
            raise Error(_capi.INVALID_ARGUMENT, f"on_npu_failure is {on_npu_failure!r}, expected one of {known}")
        devices = tuple(devices)
        device_configs = _device_configs(devices)
        operators, num_operators = load_custom_operators(custom_operators)
        # Not freed before the session, since it keeps the address.
        kernel_set = _capi.KernelSetStorage()
        kernels = lib.qplan_kernels_with_custom(kernel_set, lib.qplan_kernels_all(), operators, num_operators)
        create_pool, destroy_pool = pools[pool]
        thread_pool = create_pool(threads) if threads > 1 else None
        if threads > 1 and not thread_pool:
            raise Error(_capi.OUT_OF_MEMORY, f"a pool of {threads} threads cannot be made")
        # Timeouts of jobs need the clock.
        clock = ctypes.cast(lib.qplan_host_now_ns, ctypes.c_void_p)
        self._platform = _capi.Platform(thread_pool=thread_pool, now_ns=clock)
        config = _capi.SessionConfig(
            isa_limit=isa_limit,
            kernels=kernels,
            platform=ctypes.pointer(self._platform),
            npu=lib.qplan_npu_client_default(),
            devices=ctypes.addressof(device_configs) if devices else None,
            num_devices=len(devices),
            on_npu_failure=_capi.NPU_POLICIES[on_npu_failure],
            npu_flags=_capi.NPU_VERIFY if npu_verify else 0,
            npu_timeout_us=_timeout_us(npu_timeout_ms, devices),
            max_work=max_work or 0,
        )
        host_session = ctypes.c_void_p()
        error = _capi.Error()
        status = lib.qplan_host_session_create(self._plan._plan, config, host_session, error)
        if status < 0:
            if thread_pool:
                destroy_pool(thread_pool)
            check(status, error)
        self._buffers = _Buffers()
        # The finalizer's arguments keep plan, platform and devices alive until the session is gone.
        self._finalizer = weakref.finalize(
            self,
            _release,
            lib,
            host_session,
            thread_pool,
            destroy_pool,
            self._buffers,
            self._plan,
            (self._platform, kernel_set),
            devices,
        )
        self._session = lib.qplan_host_session_get(host_session)
        if self._plan.is_for_other_arch:
            text = f"the plan was packed for another processor ({self._plan.target_options}): the outputs are the same, but it may take several times the time and memory"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        for device in devices:
            device._users.add(self)

    @property
    def plan(self):
        return self._plan

    @property
    def info(self) -> SessionInfo:
        """Steps, threads, instruction set, multiply-accumulates, memory and work."""
        with self._lock:
            info = _capi.SessionInfo()
            self._check(library().qplan_session_get_info(self._handle(), info))
            return SessionInfo(
                info.num_steps, info.num_threads, info.isa_name.decode(), info.macs, info.memory_bytes, info.work
            )

    @property
    def regions(self):
        """The plan's regions for devices, a dict each: name, target, on_device, status, text, and what was counted."""
        with self._lock:
            session = self._handle()
            count = library().qplan_session_num_regions(session)
            return [self._info(library().qplan_session_region_info, _capi.RegionInfo, i) for i in range(count)]

    @property
    def devices(self):
        """The targets of the plan's regions, a dict each: target, driver, state, and what was counted."""
        with self._lock:
            session = self._handle()
            count = library().qplan_session_num_devices(session)
            return [self._info(library().qplan_session_device_info, _capi.DeviceInfo, i) for i in range(count)]

    def _info(self, function, struct, index):
        info = struct()
        self._check(function(self._session, index, info))
        result = {}
        for name, _ in struct._fields_[1:]:
            value = getattr(info, name)
            result[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        if "state" in result:
            result["state"] = _capi.DEVICE_STATES[result["state"]]
        for name in ("on_device", "has_alternative"):
            if name in result:
                result[name] = bool(result[name])
        if "status" in result:
            result["status"] = library().qplan_status_name(result["status"]).decode()
        return result

    def recover_device(self, index=0):
        """Resets a device that failed too often and gives it jobs again."""
        with self._lock:
            self._check(library().qplan_session_recover_device(self._handle(), index))

    def buffer(self, shape, dtype, device=0):
        """A new Buffer in memory of the session's device; it lives as long as the session."""
        with self._lock:
            made = Buffer(self, device, shape, dtype)
            self._buffers.storages.append(made._buffer)
            return made

    def bind(self, direction, index, memory):
        """Reads an input from a NumPy array or a Buffer, or writes an output to one, from now on; None: ends that.

        direction: "input" or "output". Nothing is copied, so an array must have the dtype and shape of
        plan.inputs[index] or plan.outputs[index], be C-contiguous and aligned: their empty() makes such arrays. The
        session keeps it. With a bound input, call invoke(): run() writes its inputs itself.
        """
        directions = {"input": _capi.INPUT, "output": _capi.OUTPUT}
        if direction not in directions:
            raise Error(_capi.INVALID_ARGUMENT, f"direction is {direction!r}, expected 'input' or 'output'")
        key = (directions[direction], index)
        with self._lock:
            if memory is None:
                self._check(library().qplan_session_bind(self._handle(), *key, None))
                self._buffers.bound.pop(key, None)
                return
            if isinstance(memory, Buffer):
                if memory._session is not self:
                    raise Error(_capi.INVALID_ARGUMENT, "the buffer is of another session")
                status = memory._bind_to(*key)
            elif isinstance(memory, numpy.ndarray):
                if direction == "output" and not memory.flags.writeable:
                    raise Error(_capi.INVALID_ARGUMENT, f"output {index}: the array is read-only")
                if not memory.flags.c_contiguous:
                    raise Error(
                        _capi.INVALID_ARGUMENT,
                        f"{direction} {index}: the array is not C-contiguous; numpy.ascontiguousarray copies it into one",
                    )
                status = library().qplan_session_bind(self._handle(), *key, Tensor(memory).struct)
            else:
                raise TypeError(f"bind takes a NumPy array, a qplan.Buffer or None, found {type(memory).__name__}")
            self._check(status)
            self._buffers.bound[key] = memory

    def invoke(self):
        """One inference on what inputs hold: for sessions whose inputs and outputs are bound."""
        with self._lock:
            self._check(library().qplan_session_invoke(self._handle()))

    def run(self, *inputs):
        """One inference: the outputs as a tuple of new arrays.

        inputs: one array per input in the model's order, or one dict of name to array. Any strides; dtype and shape
        must be the model's, nothing is converted.
        """
        tensors = [
            Tensor(self._input_array(info, index, value))
            for index, (info, value) in enumerate(zip(self._plan.inputs, self._ordered(inputs)))
        ]
        outputs = tuple(numpy.empty(info.shape, info.dtype) for info in self._plan.outputs)
        lib = library()
        with self._lock:
            session = self._handle()
            for index, tensor in enumerate(tensors):
                self._check(lib.qplan_session_write(session, index, tensor.struct))
            self._check(lib.qplan_session_invoke(session))
            for index, output in enumerate(outputs):
                self._check(lib.qplan_session_read(session, index, Tensor(output).struct))
        return outputs

    def reset_state(self):
        """Gives what the model keeps from run to run its initial values, as in a new session.

        Call it before an unrelated sequence, and after a run that failed or was cancelled.
        """
        with self._lock:
            self._check(library().qplan_session_reset_state(self._handle()))

    def cancel(self):
        """Ends the run() or invoke() in progress in another thread, which raises Error with QPLAN_CANCELLED soon.

        Returns at once. The session stays usable. Without a run in progress nothing happens.
        """
        with self._cancel_lock:
            if self._finalizer.alive:
                check(library().qplan_session_cancel(self._session))

    def _ordered(self, inputs):
        infos = self._plan.inputs
        if len(inputs) == 1 and isinstance(inputs[0], collections.abc.Mapping):
            named = dict(inputs[0])
            names = [info.name for info in infos]
            if "" in names or len(set(names)) != len(names):
                raise Error(_capi.NOT_FOUND, "the plan's inputs have no names, or not unique ones; give arrays in order")
            if sorted(named) != sorted(names):
                raise Error(_capi.NOT_FOUND, f"inputs are named {sorted(named)}, expected {names}")
            return [named[name] for name in names]
        if len(inputs) != len(infos):
            expected = "; ".join(map(str, infos))
            raise Error(_capi.INVALID_ARGUMENT, f"found {len(inputs)} inputs, expected {len(infos)}: {expected}")
        return inputs

    @staticmethod
    def _input_array(info, index, value):
        array = numpy.asarray(value)
        where = f"input {index} '{info.name}'" if info.name else f"input {index}"
        if array.dtype != info.dtype:
            raise Error(_capi.DTYPE_MISMATCH, f"{where}: dtype is {array.dtype}, expected {info.dtype}")
        if array.shape != info.shape:
            raise Error(_capi.SHAPE_MISMATCH, f"{where}: shape is {array.shape}, expected {info.shape}")
        return array

    def _handle(self):
        if not self._finalizer.alive:
            raise Error(_capi.INVALID_STATE, "the session is closed")
        return self._session

    def _check(self, status):
        if status < 0:
            error = _capi.Error()
            library().qplan_session_last_error(self._session, error)
            check(status, error)

    def __repr__(self):
        if self.is_closed:
            return "<qplan.Session closed>"
        info = self.info
        threads = "1 thread" if info.threads == 1 else f"{info.threads} threads"
        inputs = ", ".join(map(str, self._plan.inputs))
        outputs = ", ".join(map(str, self._plan.outputs))
        return f"<qplan.Session {info.isa}, {threads}, {info.memory_bytes} bytes: {inputs} -> {outputs}>"

    @property
    def is_closed(self):
        return not self._finalizer.alive

    def close(self):
        """Frees memory and threads; more calls change nothing."""
        with self._lock, self._cancel_lock:
            self._finalizer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
