"""Does a plan compute what is expected, with every instruction set and number of threads?"""

import dataclasses
import os
from typing import TYPE_CHECKING, Any, Iterable, Optional, Sequence, Tuple, Union

import numpy

from . import _capi
from ._errors import Error, whole
from ._pack import _known, pack
from ._plan import Plan, PlanSource
from ._session import Session, available_isas
from ._tensor import as_array
from ._texts import c_path, c_text, listed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import PackOptions


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One output of one session against what was expected."""

    isa: str
    threads: int
    output: int
    elements: int
    different: int  # elements that are not the same bits
    largest: float  # difference: of integers in steps, of floats absolute; infinite where only one of the two is NaN

    @property
    def ok(self) -> bool:
        """Whether the output is the expected one, byte by byte."""
        return self.different == 0


@dataclasses.dataclass(frozen=True)
class CheckReport:
    """What check found. It is true where everything is equal."""

    against: str
    comparisons: Tuple[Comparison, ...]

    @property
    def ok(self) -> bool:
        """Whether every comparison is ok; bool(report) is the same."""
        return all(comparison.ok for comparison in self.comparisons)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        lines = [f"{'OK' if self.ok else 'DIFFERENT'}: {len(self.comparisons)} comparisons with {self.against}"]
        for c in self.comparisons:
            if not c.ok:
                lines.append(
                    f"  {c.isa}, threads {c.threads}, output {c.output}: {c.different} of {c.elements} elements differ, "
                    f"by at most {c.largest:g}"
                )
        return "\n".join(lines)


def _compare(isa, threads, index, found, expected):
    found, expected = numpy.atleast_1d(found), numpy.atleast_1d(expected)  # a scalar has no view of another item size
    same = found.view(numpy.uint8).reshape(found.size, -1) == expected.view(numpy.uint8).reshape(found.size, -1)
    different = ~same.all(axis=1) if found.size else numpy.zeros(0, bool)
    largest = 0.0
    if different.any():
        distance = numpy.abs(found.astype(numpy.float64) - expected.astype(numpy.float64)).reshape(-1)
        largest = float(numpy.nan_to_num(distance, nan=numpy.inf)[different].max())
    return Comparison(isa, threads, index, found.size, int(different.sum()), largest)


def random_inputs(plan: Plan, seed: int = 0) -> Tuple[numpy.ndarray, ...]:
    """Arrays for all inputs: integers over the whole range of their dtype, floats from -1 to 1, booleans of both kinds."""
    generator = numpy.random.default_rng(seed)
    arrays = []
    for info in plan.inputs:
        if info.dtype.kind == "f":
            arrays.append(generator.uniform(-1, 1, info.shape).astype(info.dtype))
        elif info.dtype.kind == "b":
            arrays.append(generator.integers(0, 2, info.shape, numpy.uint8).astype(info.dtype))
        else:
            limits = numpy.iinfo(info.dtype)
            arrays.append(generator.integers(limits.min, limits.max, info.shape, info.dtype, endpoint=True))
    return tuple(arrays)


def check(
    model: PlanSource,
    inputs: Optional[Sequence[numpy.ndarray]] = None,
    expected: Optional[Sequence[numpy.ndarray]] = None,
    *,
    isas: Optional[Iterable[str]] = None,
    threads: Iterable[int] = (1, 2),
    seed: int = 0,
    **options: "Unpack[PackOptions]",
) -> CheckReport:
    """Runs a plan with every instruction set and number of threads, and compares the outputs byte by byte.

    model: a plan's path or bytes, a Plan, or a model, which is packed with options. inputs: an array each; None: random
    ones of seed. expected: the outputs that the model's framework computes; None: those of the reference kernels.
    isas, threads: those to run, at least one of each; None: all of available_isas(). The digest of a plan is checked too. `if not qplan.check(...)` is the test; print() shows what differs.
    """
    names = _some("isas", available_isas() if isas is None else isas, lambda name: c_text("isas: a name", name).decode())
    counts = _some("threads", threads, lambda count: whole("threads: a number", count, 1, 1024))
    plan = _as_plan(model, options)
    arrays = random_inputs(plan, seed) if inputs is None else tuple(inputs)
    if expected is None:
        with Session(plan, isa="reference") as session:
            wanted = session.run(*arrays)
        against = "the reference kernels"
    else:
        wanted = tuple(as_array(array, f"expected output {index}") for index, array in enumerate(expected))
        against = "the expected outputs"
        if len(wanted) != len(plan.outputs):
            raise Error(_capi.INVALID_ARGUMENT, f"expected has {len(wanted)} arrays, the plan has {len(plan.outputs)} outputs")
        for index, (array, info) in enumerate(zip(wanted, plan.outputs)):
            if array.dtype != info.dtype or array.shape != info.shape:
                status = _capi.DTYPE_MISMATCH if array.dtype != info.dtype else _capi.SHAPE_MISMATCH
                raise Error(status, f"expected output {index} is {array.dtype}{list(array.shape)}, the plan's is {info}")
    comparisons = []
    for isa in names:
        for count in counts:
            with Session(plan, threads=count, isa=isa) as session:
                found = session.run(*arrays)
            for index, (array, other) in enumerate(zip(found, wanted)):
                comparisons.append(_compare(isa, count, index, array, numpy.ascontiguousarray(other)))
    return CheckReport(against, tuple(comparisons))


def _some(what, values, item):
    """item(value) of each value, as a tuple. An empty list is an Error: a check that compared nothing would pass."""
    if not isinstance(values, Iterable):
        raise Error(_capi.INVALID_ARGUMENT, f"{what} is {values!r}, expected a list: [{values!r}]")
    found = tuple(item(value) for value in listed(what, values))
    if not found:
        raise Error(_capi.INVALID_ARGUMENT, f"{what} is empty, expected at least one: nothing would be compared")
    return found


def _as_plan(model: Any, options: Any) -> Plan:
    _known("check", options, also=("why_not", "body"), own=("inputs", "expected", "isas", "threads", "seed"))
    if not _is_plan(model):
        return pack(model, **options)
    if options:
        names = ", ".join(f"'{name}'" for name in options)
        raise Error(_capi.INVALID_ARGUMENT, f"check: found {names} with a plan, which is packed already; leave out, or give a model")
    return Plan(model, digest=True)


def _is_plan(model: Any) -> bool:
    if isinstance(model, Plan):
        return True
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(memoryview(model)[:4]) == b"QPLN"
    path = os.fspath(model)
    c_path("model", path)
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"QPLN"
    except OSError as error:
        raise Error(_capi.FILE_ERROR, f"'{path}': {error.strerror}") from error
