"""A plan in memory."""

import ctypes
import dataclasses
import json
import os
from typing import Optional, Tuple

import numpy

from . import _capi
from ._errors import Error, check
from ._library import library

_ALIGNMENT = 64  # of a plan's bytes
_DTYPE_KINDS = {_capi.DL_INT: "i", _capi.DL_UINT: "u", _capi.DL_FLOAT: "f"}


def load_custom_operators(path):
    """The operators of a shared library and their number; none of None. The library stays loaded."""
    operators, count = ctypes.c_void_p(), ctypes.c_uint32()
    if path is not None:
        error = _capi.Error()
        check(library().qplan_host_custom_operators_load(os.fsencode(path), operators, count, error), error)
    return operators, count.value


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """An input or output: real value = scale * (element - zero_point)."""

    name: str
    shape: Tuple[int, ...]
    dtype: numpy.dtype
    size_bytes: int
    scales: Tuple[float, ...]  # () where not quantised, one value, or one per index of quant_axis
    zero_points: Tuple[int, ...]
    quant_axis: int
    alignment: int = 1  # bytes, of memory that is bound to it

    @property
    def scale(self) -> Optional[float]:
        """The one scale of a tensor that is quantised per tensor, else None."""
        return self.scales[0] if len(self.scales) == 1 else None

    @property
    def zero_point(self) -> Optional[int]:
        return self.zero_points[0] if len(self.zero_points) == 1 else None

    def empty(self):
        """A new array of this shape and dtype, aligned for Session.bind; its elements are not initialised."""
        storage = _aligned_bytes(self.size_bytes, max(self.alignment, self.dtype.itemsize))
        return storage.view(self.dtype).reshape(self.shape)

    def __str__(self):
        return f"{self.name or 'tensor'} {self.dtype}{list(self.shape)}"


def _numpy_dtype(dtype):
    kind = _DTYPE_KINDS.get(dtype.code)
    if kind is None or dtype.lanes != 1 or dtype.bits not in (8, 16, 32, 64):
        raise Error(_capi.DTYPE_MISMATCH, f"DLPack type (code {dtype.code}, {dtype.bits} bits) has no NumPy dtype")
    return numpy.dtype(f"<{kind}{dtype.bits // 8}")


def _tensor_info(info):
    scales = tuple(info.scales[i] for i in range(info.num_scales))
    zero_points = tuple(info.zero_points[i] for i in range(info.num_scales))
    return TensorInfo(
        name=(info.name or b"").decode("utf-8", "replace"),
        shape=tuple(info.shape[i] for i in range(info.ndim)),
        dtype=_numpy_dtype(info.dtype),
        size_bytes=info.size_bytes,
        scales=scales,
        zero_points=zero_points,
        quant_axis=info.quant_axis,
        alignment=info.alignment,
    )


def _aligned_bytes(size, alignment):
    """A NumPy byte array that starts at a multiple of alignment."""
    storage = numpy.empty(size + alignment, dtype=numpy.uint8)
    begin = -storage.ctypes.data % alignment
    return storage[begin : begin + size]


def _aligned_copy(data):
    """A NumPy byte array of the same bytes that starts at a multiple of 64, read-only."""
    copy = _aligned_bytes(memoryview(data).nbytes, _ALIGNMENT)
    memoryview(copy)[:] = memoryview(data).cast("B")
    copy.flags.writeable = False
    return copy


class Plan:
    """A verified plan. It never changes, and may be shared by sessions and threads.

    source: a path, the bytes of a plan file, or another Plan. digest: also check the file's SHA-256.
    """

    def __init__(self, source, *, digest=True):
        if isinstance(source, Plan):
            data, where = source._bytes, source._where
        elif isinstance(source, (bytes, bytearray, memoryview)):
            data, where = source, "bytes"
        else:
            path = os.fspath(source)
            where = f"'{path}'"
            try:
                with open(path, "rb") as file:
                    data = file.read()
            except OSError as error:
                raise Error(_capi.FILE_ERROR, f"{where}: {error.strerror}") from error
        self._where = where
        self._bytes = data if isinstance(source, Plan) else _aligned_copy(data)
        self._plan = _capi.Plan()
        error = _capi.Error()
        flags = _capi.PLAN_DIGEST if digest else 0
        status = library().qplan_plan_open(self._plan, self._bytes.ctypes.data, self._bytes.size, flags, error)
        check(status, error, f"{where}: {error.text.decode('utf-8', 'replace')}" if error.text else "")
        self._info = _capi.PlanInfo()
        check(library().qplan_plan_get_info(self._plan, self._info))
        self._inputs = self._infos(_capi.INPUT)
        self._outputs = self._infos(_capi.OUTPUT)

    def _infos(self, direction):
        infos = []
        for index in range(library().qplan_plan_io_count(self._plan, None, direction)):
            info = _capi.TensorInfo()
            check(library().qplan_plan_io_info(self._plan, None, direction, index, info))
            infos.append(_tensor_info(info))
        return tuple(infos)

    @property
    def inputs(self) -> Tuple[TensorInfo, ...]:
        """The model's inputs, in its order."""
        return self._inputs

    @property
    def outputs(self) -> Tuple[TensorInfo, ...]:
        """The model's outputs, in its order."""
        return self._outputs

    @property
    def work(self) -> int:
        """The most elementary operations that the CPU computes in one run; Session(max_work=...) limits them.

        Counted from shapes and parameters, never from what an untrusted plan states; docs/work.md says how. 2**64 - 1
        means that many or more. Error where this build lacks a kernel of the plan.
        """
        work = ctypes.c_uint64()
        error = _capi.Error()
        kernels = library().qplan_kernels_all()
        check(library().qplan_plan_work(self._plan, None, kernels, work, error), error)
        return work.value

    @property
    def target_options(self) -> str:
        """Options of the processor that the plan was packed for: "arch=x86_64,isa=avx512vnni"; "" if unknown."""
        return self._info.target_options.decode("utf-8", "replace")

    @property
    def is_for_other_arch(self) -> bool:
        """Packed for another processor architecture: the outputs are the same, time and memory may be several times more."""
        return bool(self._info.is_for_other_arch)

    def inspect(self) -> dict:
        """What the plan holds: content_digest, inputs, outputs, memory, steps; as `qplan inspect --json`."""
        return json.loads(self._text(library().qplan_inspect_json))

    def disasm(self) -> str:
        """The plan's steps, one per line; as `qplan disasm`."""
        return self._text(library().qplan_disassemble)

    def _text(self, function):
        pieces = _capi.Pieces()
        error = _capi.Error()
        check(function(self._bytes.ctypes.data, self._bytes.size, pieces.function, None, error), error)
        return pieces.text()

    def save(self, path):
        """Writes the plan file, atomically."""
        error = _capi.Error()
        name = os.fsencode(path)
        check(library().qplan_file_write(name, self._bytes.ctypes.data, self._bytes.size, error), error)

    def __bytes__(self):
        return self._bytes.tobytes()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """There is nothing to release, because sessions keep what they need of the plan."""

    def __repr__(self):
        inputs = ", ".join(map(str, self.inputs))
        outputs = ", ".join(map(str, self.outputs))
        return f"<qplan.Plan {self._bytes.size} bytes: {inputs} -> {outputs}>"
