"""Packs quantised neural networks into plans, ahead of time, and runs them.

    import numpy
    import qplan

    plan = qplan.pack("model.tflite", "model.qplan")     # or qplan.Plan("model.qplan")
    with qplan.Session(plan, threads=2) as session:
        (scores,) = session.run(numpy.zeros(plan.inputs[0].shape, plan.inputs[0].dtype))

Everything here is the C API (qplan.h, host.h, pack.h) through ctypes, with NumPy arrays in and out. Errors are
qplan.Error, with the status of the C API and its text. The shared library is looked for when it is first needed; the
environment variable QPLAN_LIBRARY names it when it is at an unusual place.
"""

from ._check import CheckReport, Comparison, check, random_inputs
from ._devices import Buffer, Device, Driver
from ._errors import Error
from ._explain import explain
from ._options import ImportOptions, PackOptions
from ._pack import import_text, pack
from ._plan import Plan, TensorInfo
from ._session import Session, SessionInfo, available_isas
from ._session_tensor import SessionTensor
from ._step_times import StepTime
from ._tune import tune
from .passes import Pass, rewrite

__version__ = "0.1.0"
__all__ = [
    "Buffer",
    "CheckReport",
    "Comparison",
    "Device",
    "Driver",
    "Error",
    "ImportOptions",
    "PackOptions",
    "Pass",
    "Plan",
    "Session",
    "SessionInfo",
    "SessionTensor",
    "StepTime",
    "TensorInfo",
    "available_isas",
    "check",
    "explain",
    "import_text",
    "pack",
    "random_inputs",
    "rewrite",
    "tune",
]
