"""A session: a plan with memory and threads."""

import ctypes
import dataclasses
import numbers
import threading
import warnings
import weakref
from typing import Any, Dict, List, Optional, Sequence, Union

import numpy

from . import _capi
from ._devices import Buffer, Device
from ._errors import Error, check, whole
from ._library import library
from ._options import PathLike
from ._plan import Plan, PlanSource, load_custom_operators
from ._resources import Resources
from ._session_memory import Memory
from ._session_run import Running
from ._step_times import Collector, StepTime
from ._tensor import Tensor, refuse_mask
from ._texts import c_text


@dataclasses.dataclass(frozen=True)
class SessionInfo:
    """What Session.info returns.

    isa: the highest instruction set among the kernels that run. macs: multiply-accumulates of one run, as the plan
    states them. work: the most elementary operations of one run, as Plan.work.
    """

    steps: int
    threads: int
    isa: str
    macs: int
    memory_bytes: int
    work: int


def available_isas() -> List[str]:
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
    if library().qplan_isa_from_name(c_text("isa", name), isa) < 0:
        known = ", ".join(available_isas())
        raise Error(_capi.INVALID_ARGUMENT, f"unknown instruction set '{name}'; this machine has auto, {known}")
    if isa.value != _capi.ISA_AUTO and not library().qplan_isa_available(isa):
        known = ", ".join(available_isas())
        raise Error(_capi.INVALID_ARGUMENT, f"this machine or build lacks '{name}'; it has {known}")
    return isa.value


def _create_pool(threads):
    """NULL when threads or memory run out."""
    pool = ctypes.POINTER(_capi.ThreadPool)()
    library().qplan_pool_create_with(_capi.PoolConfig(num_threads=threads), pool, None)
    return pool


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
    is_number = isinstance(milliseconds, numbers.Real) and not isinstance(milliseconds, bool)
    # Compared as written: NaN is in no range, and the number of microseconds has 32 bits.
    if not is_number or not 0.001 <= milliseconds < 2**32 / 1000:
        text = f"npu_timeout_ms is {milliseconds!r}, expected None or a number from 0.001 to {(2**32 - 1) / 1000}"
        raise Error(_capi.INVALID_ARGUMENT, text)
    return min(max(int(milliseconds * 1000), 1), 2**32 - 1)


class Session(Running):
    """Runs a plan. Calls from several threads are served one after the other.

    plan: a Plan, a path or the bytes of a plan file. threads: that work on one run. isa: "auto" or one of
    available_isas(): use nothing beyond it. pool: "threads" or "openmp". The outputs are the same bits for all of these.

    devices: Device objects, at most one for each target; regions of the plan without a device run on the CPU, with the
    same bits. on_npu_failure: "fallback" (to the CPU), "retry" (once, then fallback) or "fail". npu_verify: run each
    region on the CPU too and count differences in regions. npu_timeout_ms: until a job counts as hung; None: a second,
    or 16 times the job's estimate if that is more, at most ten minutes; a minute where a device is simulated.

    max_work: refuse a plan that computes more (Plan.work) with QPLAN_WORK_LIMIT; None: no limit.
    custom_operators: a shared library with operators that qplan does not have (docs/custom-operators.md).
    step_times: measure every step; step_times() gives the times. It costs about 0.2 us a step.
    """

    def __init__(
        self,
        plan: PlanSource,
        threads: int = 1,
        isa: str = "auto",
        *,
        pool: str = "threads",
        devices: Sequence[Device] = (),
        on_npu_failure: str = "fallback",
        npu_verify: bool = False,
        npu_timeout_ms: Optional[float] = None,
        max_work: Optional[int] = None,
        custom_operators: Optional[PathLike] = None,
        step_times: bool = False,
        _step_end: Any = None,
    ) -> None:
        lib = library()
        devices = tuple(devices)
        # For run(tensors=...), which makes a session like this one.
        self._arguments = dict(
            threads=threads,
            isa=isa,
            pool=pool,
            devices=devices,
            on_npu_failure=on_npu_failure,
            npu_verify=npu_verify,
            npu_timeout_ms=npu_timeout_ms,
            max_work=max_work,
            custom_operators=custom_operators,
        )
        self._observed = None
        self._plan = plan if isinstance(plan, Plan) else Plan(plan)
        self._lock = threading.Lock()
        # cancel() must not wait for the run that it is to end, and close() not free what cancel() touches.
        self._cancel_lock = threading.RLock()
        threads = whole("threads", threads, 1, 1024)
        if max_work is not None and (isinstance(max_work, bool) or not isinstance(max_work, int) or not 1 <= max_work < 2**64):
            raise Error(_capi.INVALID_ARGUMENT, f"max_work is {max_work!r}, expected None or a number from 1 to 2**64 - 1")
        pools = {
            "threads": (_create_pool, lib.qplan_pool_destroy),
            "openmp": (lib.qplan_openmp_pool_create, lib.qplan_openmp_pool_destroy),
        }
        if pool not in pools:
            raise Error(_capi.INVALID_ARGUMENT, f"pool is {pool!r}, expected 'threads' or 'openmp'")
        isa_limit = _parse_isa(isa)
        if on_npu_failure not in _capi.NPU_POLICIES:
            known = ", ".join(_capi.NPU_POLICIES)
            raise Error(_capi.INVALID_ARGUMENT, f"on_npu_failure is {on_npu_failure!r}, expected one of {known}")
        device_configs = _device_configs(devices)
        timeout_us = _timeout_us(npu_timeout_ms, devices)
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
        if _step_end is not None:
            self._platform.step_end = ctypes.cast(_step_end, ctypes.c_void_p)
        self._times = Collector(self._platform) if step_times else None
        config = _capi.SessionConfig(
            isa_limit=isa_limit,
            kernels=kernels,
            platform=ctypes.pointer(self._platform),
            npu=lib.qplan_npu_client_default(),
            devices=ctypes.addressof(device_configs) if devices else None,
            num_devices=len(devices),
            on_npu_failure=_capi.NPU_POLICIES[on_npu_failure],
            npu_flags=_capi.NPU_VERIFY if npu_verify else 0,
            npu_timeout_us=timeout_us,
            max_work=max_work or 0,
        )
        try:
            self._memory = Memory(self._plan._plan, config)
        except BaseException:  # a KeyboardInterrupt, too
            if thread_pool:
                destroy_pool(thread_pool)
            raise
        self._bound = {}  # (direction, index) -> the Buffer or array
        self._accesses = 0  # to Buffers, which are open
        self._resources = Resources(
            self._memory,
            thread_pool,
            destroy_pool,
            self._lock,
            self._cancel_lock,
            self._plan,
            devices,
            (self._platform, kernel_set, self._times, operators),
        )
        self._finalizer = weakref.finalize(self, self._resources.end)
        self._session = self._memory.session
        self._invoke = lib.qplan_session_invoke
        self._find_views()
        if self._plan.is_for_other_arch:
            text = f"the plan was packed for another processor ({self._plan.target_options}): the outputs are the same, but it may take several times the time and memory"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        for device in devices:
            device._users.add(self)

    @property
    def plan(self) -> Plan:
        """The plan that the session runs."""
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
    def regions(self) -> List[Dict[str, Any]]:
        """The plan's regions for devices, a dict each: name, target, on_device, status, text, and what was counted."""
        with self._lock:
            session = self._handle()
            count = library().qplan_session_num_regions(session)
            return [self._info(library().qplan_session_region_info, _capi.RegionInfo, i) for i in range(count)]

    @property
    def devices(self) -> List[Dict[str, Any]]:
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

    def recover_device(self, index: int = 0) -> None:
        """Resets a device that failed too often and gives it jobs again."""
        with self._lock:
            index = whole("index", index, 0, 2**32 - 1)
            self._check(library().qplan_session_recover_device(self._handle(), index))

    def buffer(self, shape: Sequence[int], dtype: Any, device: int = 0) -> Buffer:
        """A new Buffer in memory of the session's device; it lives as long as the session."""
        with self._lock:
            made = Buffer(self, device, shape, dtype)
            self._resources.storages.append(made._buffer)
            return made

    def bind(self, direction: str, index: int, memory: Union[numpy.ndarray, Buffer, None]) -> None:
        """Reads an input from a NumPy array or a Buffer, or writes an output to one, from now on; None: ends that.

        direction: "input" or "output". Nothing is copied, so an array must have the dtype and shape of
        plan.inputs[index] or plan.outputs[index], be C-contiguous and aligned: their empty() makes such arrays. The
        session keeps it. Then call invoke(), or run() with the bound arrays themselves: it writes no bound input.
        """
        directions = {"input": _capi.INPUT, "output": _capi.OUTPUT}
        if direction not in directions:
            raise Error(_capi.INVALID_ARGUMENT, f"direction is {direction!r}, expected 'input' or 'output'")
        key = (directions[direction], whole("index", index, 0, 2**32 - 1))
        with self._lock:
            if memory is None:
                self._check(library().qplan_session_bind(self._handle(), *key, None))
                self._resources.bound.discard(key)
                self._bound.pop(key, None)
                self._find_views()
                return
            if isinstance(memory, Buffer):
                if memory._session is not self:
                    raise Error(_capi.INVALID_ARGUMENT, "the buffer is of another session")
                status = memory._bind_to(*key)
            elif isinstance(memory, numpy.ndarray):
                refuse_mask(memory, f"{direction} {index}")
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
            self._resources.bound.add(key)
            self._bound[key] = memory
            self._find_views()

    def invoke(self) -> None:
        """One inference on what inputs hold: for sessions whose inputs and outputs are bound."""
        with self._lock:
            self._check(library().qplan_session_invoke(self._handle()))

    def step_times(self) -> List[StepTime]:
        """A StepTime for each step that has run, of all runs so far; Session(step_times=True) measures them."""
        with self._lock:
            return self._collector().read(self._handle(), self._num_steps())

    def reset_step_times(self) -> None:
        """Forgets the times of the runs so far, such as those of a warm-up."""
        with self._lock:
            self._handle()
            self._collector().reset()

    def _collector(self):
        if self._times is None:
            raise Error(_capi.INVALID_STATE, "the session does not measure steps; make it with step_times=True")
        return self._times

    def _num_steps(self):
        info = _capi.SessionInfo()
        self._check(library().qplan_session_get_info(self._session, info))
        return info.num_steps

    def reset_state(self) -> None:
        """Gives what the model keeps from run to run its initial values, as in a new session.

        Call it before an unrelated sequence, and after a run that failed or was cancelled.
        """
        with self._lock:
            self._check(library().qplan_session_reset_state(self._handle()))

    def self_check(self) -> None:
        """Returns where the plan computes here what it computed when it was packed with self_check=N.

        Raises Error with QPLAN_SELF_CHECK_FAILED otherwise: its step is the first that is wrong, and its text says whether
        that step's constants are damaged; with QPLAN_NOT_FOUND for a plan without self-checks. Afterwards the states are
        those of a new session, and the inputs and outputs hold anything.
        """
        with self._lock:
            self._check(library().qplan_session_self_check(self._handle()))

    def cancel(self) -> None:
        """Ends the run() or invoke() in progress in another thread, which raises Error with QPLAN_CANCELLED soon.

        Returns at once. The session stays usable. Without a run in progress nothing happens.
        """
        with self._cancel_lock:
            if self._finalizer.alive:
                check(library().qplan_session_cancel(self._session))
            if self._observed is not None:
                self._observed.cancel()  # run(tensors=...) runs in that session

    def _handle(self):
        if not self._finalizer.alive:
            raise Error(_capi.INVALID_STATE, "the session is closed")
        return self._session

    def _check(self, status):
        if status < 0:
            if status == _capi.INVALID_ARGUMENT:
                self._handle()  # between two runs the interpreter's exit may have closed it
            error = _capi.Error()
            library().qplan_session_last_error(self._session, error)
            check(status, error)

    def __repr__(self) -> str:
        if self.is_closed:
            return "<qplan.Session closed>"
        info = self.info
        threads = "1 thread" if info.threads == 1 else f"{info.threads} threads"
        inputs = ", ".join(map(str, self._plan.inputs))
        outputs = ", ".join(map(str, self._plan.outputs))
        return f"<qplan.Session {info.isa}, {threads}, {info.memory_bytes} bytes: {inputs} -> {outputs}>"

    @property
    def is_closed(self) -> bool:
        """Whether close(), or the end of the with block, has freed the session."""
        return not self._finalizer.alive

    def close(self) -> None:
        """Frees memory and threads; more calls change nothing. Not while a Buffer is accessed."""
        with self._lock, self._cancel_lock:
            if self._accesses > 0:
                raise Error(_capi.INVALID_STATE, "a buffer of the session is being accessed; leave its with block first")
            if self._observed is not None:
                self._observed.close()
            self._views = self._memory = None  # arrays of SessionTensor.array keep it as long as they are used
            if self._finalizer.detach() is not None:
                self._resources.free()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
