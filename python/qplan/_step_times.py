"""How long each step of a session's runs took."""

import ctypes
import dataclasses
import weakref
from typing import List

from . import _capi
from ._errors import Error, check
from ._library import library


@dataclasses.dataclass(frozen=True)
class StepTime:
    """One step of the plan, and the runs since the session began or reset_step_times()."""

    step: int  # its position in the plan
    op: str  # kernel family: "conv2d"
    kernel: str  # the variant that runs: "conv2d_avx2"
    name: str  # of the source operator, "" where stripped
    macs: int
    bytes: int  # of inputs, constants and outputs
    runs: int
    least_ns: int
    total_ns: int
    last_ns: int

    @property
    def mean_ns(self) -> float:
        """The mean of all runs, 0.0 where there was none."""
        return self.total_ns / self.runs if self.runs else 0.0


class Collector:
    """qplan_step_times, in a platform from the beginning of a session on."""

    def __init__(self, platform):
        lib = library()
        self._handle = lib.qplan_step_times_create()
        if not self._handle:
            raise Error(_capi.OUT_OF_MEMORY, "session: no memory for the times of steps")
        weakref.finalize(self, lib.qplan_step_times_destroy, self._handle)
        check(lib.qplan_step_times_attach(self._handle, platform))

    def reset(self):
        library().qplan_step_times_reset(self._handle)

    def read(self, session, num_steps) -> List[StepTime]:
        lib = library()
        count = ctypes.c_uint32()
        check(lib.qplan_step_times_read(self._handle, None, count))
        rows = (_capi.StepTime * count.value)(*(_capi.StepTime() for _ in range(count.value)))
        check(lib.qplan_step_times_read(self._handle, rows, count))
        by_step = {row.step: row for row in rows}
        times = []
        for index in range(num_steps):
            event = _capi.Event()
            if lib.qplan_session_step_info(session, index, event) < 0:
                continue
            row = by_step.get(event.step)
            if row is None or row.runs == 0:  # a fallback that did not run
                continue
            text = lambda value: (value or b"").decode("utf-8", "replace")
            times.append(
                StepTime(
                    event.step, text(event.op), text(event.kernel), text(event.name), event.macs, event.bytes,
                    row.runs, row.least_ns, row.total_ns, row.last_ns,
                )
            )
        return times
