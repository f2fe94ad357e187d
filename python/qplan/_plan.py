"""A plan in memory."""

import ctypes
import dataclasses
import json
import mmap
import os
import stat
from typing import Any, Dict, Optional, Tuple, Union

import numpy

from . import _capi, _quantization
from ._copying import Immutable
from ._errors import Error, check
from ._library import library
from ._texts import c_path

PlanSource = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, "Plan"]

_ALIGNMENT = 64  # of a plan's bytes
_DTYPE_KINDS = {_capi.DL_INT: "i", _capi.DL_UINT: "u", _capi.DL_FLOAT: "f"}
# A byte in plans and in DLPack; an unsigned integer of one bit, as Relay has it, in the functions that passes see.
_BOOLS = ((_capi.DL_BOOL, 8), (_capi.DL_UINT, 1))


def load_custom_operators(path):
    """The operators of a shared library (of None: none) with those that come with qplan, and their number.

    The library stays loaded.
    """
    operators, count, error = ctypes.c_void_p(), ctypes.c_uint32(), _capi.Error()
    name = c_path("custom_operators", path) if path is not None else None
    check(library().qplan_host_custom_operators_load(name, operators, count, error), error)
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
        """The one zero point of a tensor that is quantised per tensor, else None."""
        return self.zero_points[0] if len(self.zero_points) == 1 else None

    def quantize(self, real) -> numpy.ndarray:
        """Elements of this dtype for real numbers: real / scale + zero_point, rounded half away from zero and clamped.

        Computed in float64: next to a half, operators that quantise in float32 may give the integer beside. float32
        tensors take real numbers as they are.
        """
        return _quantization.quantize(self, real)

    def dequantize(self, elements) -> numpy.ndarray:
        """float32 values of elements: scale * (element - zero_point)."""
        return _quantization.dequantize(self, elements)

    def empty(self) -> numpy.ndarray:
        """A new array of this shape and dtype, aligned for Session.bind; its elements are not initialised."""
        storage = _aligned_bytes(self.size_bytes, max(self.alignment, self.dtype.itemsize))
        return storage.view(self.dtype).reshape(self.shape)

    def __str__(self) -> str:
        return f"{self.name or 'tensor'} {self.dtype}{list(self.shape)}"


def _numpy_dtype(dtype):
    if (dtype.code, dtype.bits) in _BOOLS and dtype.lanes == 1:
        return numpy.dtype(bool)
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


def _aligned_bytes(size, alignment, make=numpy.empty):
    """A NumPy byte array that starts at a multiple of alignment."""
    storage = make(size + alignment, dtype=numpy.uint8)
    begin = -storage.ctypes.data % alignment
    return storage[begin:][:size]  # in two steps: NumPy has an empty slice begin where its base does


def _aligned_copy(data):
    """A NumPy byte array of the same bytes that starts at a multiple of 64, read-only."""
    copy = _aligned_bytes(memoryview(data).nbytes, _ALIGNMENT)
    memoryview(copy)[:] = memoryview(data).cast("B")
    copy.flags.writeable = False
    return copy


def _mapped(path, where):
    """A read-only NumPy byte array over a file: pages are read when they are used. Pipes and the like are read."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
                return _aligned_copy(file.read())
            return numpy.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), numpy.uint8)
    except OSError as error:
        raise Error(_capi.FILE_ERROR, f"{where}: {error.strerror}") from error


def _labels_of(metadata, count, where):
    """Of `count` outputs; metadata: as `inspect` has it, which verification does not look at."""
    damaged = Error(_capi.PLAN_CORRUPT, f"{where}: its metadata is damaged; pack the model again")
    outputs = (metadata or {}).get("outputs", []) if isinstance(metadata or {}, dict) else None
    if not isinstance(outputs, list) or not all(isinstance(output, dict) for output in outputs):
        raise damaged
    labels = [output.get("labels", []) for output in outputs[:count]]
    if not all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in labels):
        raise damaged
    labels += [[]] * (count - len(labels))
    return tuple(tuple("".join(c if c.isprintable() else "?" for c in name) for name in names) for names in labels)


class Plan(Immutable):
    """A verified plan. It never changes, and may be shared by sessions and threads.

    source: a path, the bytes of a plan file, or another Plan. A file is mapped, not read: replace it (as save does) rather
    than write into it while it is in use. digest: also check the file's SHA-256, which reads all of it; memory safety
    never relies on that.
    """

    def __init__(self, source: PlanSource, *, digest: bool = False) -> None:
        self._bytes: numpy.ndarray
        self._where: str
        if isinstance(source, Plan):
            self._bytes, self._where = source._bytes, source._where
        elif isinstance(source, (bytes, bytearray, memoryview)):
            self._bytes, self._where = _aligned_copy(source), "bytes"
        else:
            path = os.fspath(source)
            c_path("plan", path)
            self._where = f"'{path}'"
            self._bytes = _mapped(path, self._where)
        where = self._where
        self._plan = _capi.Plan()
        error = _capi.Error()
        flags = _capi.PLAN_DIGEST if digest else 0
        status = library().qplan_plan_open(self._plan, self._bytes.ctypes.data, self._bytes.size, flags, error)
        check(status, error, f"{where}: {error.text.decode('utf-8', 'replace')}" if error.text else "")
        self._info = _capi.PlanInfo()
        check(library().qplan_plan_get_info(self._plan, self._info))
        self._inputs = self._infos(_capi.INPUT)
        self._outputs = self._infos(_capi.OUTPUT)
        self._labels: Optional[Tuple[Tuple[str, ...], ...]] = None  # until they are asked for

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
    def labels(self) -> Tuple[Tuple[str, ...], ...]:
        """The names of the classes of each output, as its model's metadata has them; () for an output without names.

        Only TFLite files bring names along, and plans packed with strip_names keep none. The names are the model's:
        characters that control a terminal are '?'. `plan.labels[0][scores.argmax()]` names the best class of an output
        of shape (1, classes).
        """
        if self._labels is None:
            self._labels = _labels_of(self.inspect()["metadata"], len(self._outputs), self._where)
        return self._labels

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

    def inspect(self) -> Dict[str, Any]:
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

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the plan file, atomically."""
        error = _capi.Error()
        name = c_path("path", path)
        check(library().qplan_file_write(name, self._bytes.ctypes.data, self._bytes.size, error), error)

    def __reduce__(self) -> Any:
        return Plan, (bytes(self),)

    def __bytes__(self) -> bytes:
        return self._bytes.tobytes()

    def __enter__(self) -> "Plan":
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to release, because sessions keep what they need of the plan."""

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.inputs))
        outputs = ", ".join(map(str, self.outputs))
        return f"<qplan.Plan {self._bytes.size} bytes: {inputs} -> {outputs}>"
