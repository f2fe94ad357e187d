"""The memory of a session: NumPy arrays, so that views of inputs and outputs stay valid after it is closed."""

import ctypes

import numpy

from . import _capi
from ._errors import Error, check
from ._library import library
from ._plan import _aligned_bytes


class Memory:
    """What qplan_session_memory_needs asks for, and the session that was made in it."""

    def __init__(self, plan, config):
        lib = library()
        error = _capi.Error()
        count = ctypes.c_uint32()
        check(lib.qplan_session_memory_needs(plan, config, None, count, error), error)
        needs = (_capi.MemoryNeed * count.value)()
        check(lib.qplan_session_memory_needs(plan, config, needs, count, error), error)
        try:
            # Zeroed, so that an input that was never written has the same bytes in every run.
            self.banks = [_aligned_bytes(need.size, need.alignment, numpy.zeros) for need in needs]
        except (MemoryError, ValueError, OverflowError) as failure:
            sizes = ", ".join(str(need.size) for need in needs)
            raise Error(_capi.OUT_OF_MEMORY, f"session: there is no memory of {sizes} bytes") from failure
        memories = (_capi.Memory * count.value)(
            *(_capi.Memory(bank.ctypes.data, bank.size) for bank in self.banks)
        )
        handle = ctypes.c_void_p()
        check(lib.qplan_session_init(plan, config, memories, count, handle, error), error)
        self.session = handle.value

    def shares(self, array):
        """Whether the array may lie in this memory."""
        return array.base is not None and any(numpy.may_share_memory(array, bank) for bank in self.banks)

    def address(self, direction, index):
        """Where the session has an input or output; None where it has no address."""
        tensor = _capi.DLTensor()
        if library().qplan_session_view(self.session, direction, index, tensor) < 0:
            return None
        return tensor.data or None

    def view(self, info, direction, index):
        """A NumPy array over the session's own buffer of an input or output; None where that is not in this memory:
        an array that is bound, or a constant of the plan."""
        address = self.address(direction, index)
        if address is None:
            return None
        for bank in self.banks:
            offset = address - bank.ctypes.data
            if 0 <= offset <= bank.size - info.size_bytes:
                return bank[offset : offset + info.size_bytes].view(info.dtype).reshape(info.shape)
        return None
