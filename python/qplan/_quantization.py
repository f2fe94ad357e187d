"""Real numbers to the integers of a tensor, and back: real value = scale * (element - zero_point)."""

import numpy

from . import _capi
from ._errors import Error
from ._tensor import as_array


def _parameters(info):
    """Scales and zero points as float64 arrays that broadcast against the tensor."""
    if not info.scales:
        raise Error(_capi.INVALID_ARGUMENT, f"{info} is not quantised: it has no scale")
    shape = [1] * len(info.shape)
    if len(info.scales) > 1:
        shape[info.quant_axis] = len(info.scales)
    as_array = lambda values: numpy.array(values, numpy.float64).reshape(shape if len(values) > 1 else ())
    return as_array(info.scales), as_array(info.zero_points)


def quantize(info, real):
    """Elements of info.dtype: real / scale + zero_point, rounded half away from zero and clamped to the dtype's range.

    The rule of `qplan run` for pictures, computed in float64. The operator of TFLite divides in float32, so that next to
    a half it may give the integer beside this one. NaN counts as 0.
    """
    real = as_array(real, "the array")
    if info.dtype.kind == "f" and not info.scales:
        return numpy.asarray(real, info.dtype)
    scales, zero_points = _parameters(info)
    units = numpy.nan_to_num(numpy.asarray(real, numpy.float64) / scales, nan=0.0)
    # Not the floor of units + 0.5: that sum is 1 for the number below 0.5, and rounds numbers above 2**52.
    whole = numpy.trunc(units)
    rounded = whole + numpy.copysign(numpy.abs(units - whole) >= 0.5, units) + zero_points
    limits = numpy.iinfo(info.dtype)
    # float64 has no 2**63 - 1, and what it rounds that to is no int64: numbers from there on are put in as integers.
    is_above = rounded >= float(limits.max)
    elements = numpy.where(is_above, 0.0, numpy.maximum(rounded, float(limits.min))).astype(info.dtype)
    return numpy.where(is_above, info.dtype.type(limits.max), elements)


def dequantize(info, elements):
    """float32 values of elements."""
    if info.dtype.kind == "f" and not info.scales:
        return numpy.asarray(elements, numpy.float32)
    scales, zero_points = _parameters(info)
    return ((numpy.asarray(elements).astype(numpy.float64) - zero_points) * scales).astype(numpy.float32)
