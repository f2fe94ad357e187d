"""NumPy arrays as the C API sees them."""

import ctypes

import numpy

from . import _capi

_DTYPE_CODES = {"i": _capi.DL_INT, "u": _capi.DL_UINT, "f": _capi.DL_FLOAT, "b": _capi.DL_BOOL}


def dl_dtype(dtype):
    """The DLDataType of a NumPy dtype; TypeError where there is none."""
    dtype = numpy.dtype(dtype)
    code = _DTYPE_CODES.get(dtype.kind)
    if code is None:
        raise TypeError(f"dtype {dtype} is not supported; integers, floats and bool are")
    if not dtype.isnative:
        raise TypeError(f"dtype {dtype} is not of this machine's byte order; array.astype(dtype.newbyteorder('=')) is")
    return _capi.DLDataType(code, dtype.itemsize * 8, 1)


def refuse_mask(value, where):
    """ValueError for an array with masked elements: their values mean nothing, and C knows no masks."""
    if isinstance(value, numpy.ma.MaskedArray) and numpy.ma.is_masked(value):
        raise ValueError(f"{where} has masked elements; array.filled(value) gives them one")


def as_array(value, where):
    """The value as a NumPy array without a mask."""
    refuse_mask(value, where)
    return numpy.asarray(value)


class Tensor:
    """A DLTensor over a NumPy array; both live as long as this, or as its struct."""

    def __init__(self, array):
        itemsize = array.itemsize
        if any(stride % itemsize for stride in array.strides):
            array = numpy.ascontiguousarray(array)  # strides that DLPack cannot say: they count elements
        extents = ctypes.c_int64 * array.ndim
        self._array = array
        self._shape = extents(*array.shape)
        self._strides = extents(*(stride // itemsize for stride in array.strides))
        self.struct = _capi.DLTensor(
            data=array.ctypes.data,
            device=_capi.DLDevice(_capi.DL_CPU, 0),
            ndim=array.ndim,
            dtype=dl_dtype(array.dtype),
            shape=self._shape,
            strides=self._strides,
        )
        # Callers pass on the struct alone, and the array may be the copy above, which nobody else has.
        self.struct._array = array
