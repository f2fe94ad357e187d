"""An input or output of a session."""

from typing import TYPE_CHECKING, Optional, Tuple

import numpy

from . import _capi
from ._errors import Error
from ._plan import TensorInfo

if TYPE_CHECKING:
    from ._session_run import Running


class SessionTensor:
    """session.inputs[i] or session.outputs[i]: what the plan states of it, and its memory in the session."""

    def __init__(self, session: "Running", info: TensorInfo, direction: int, index: int):
        self._session, self._direction, self._index = session, direction, index
        self.info = info

    @property
    def name(self) -> str:
        """The tensor's name in the model, may be "" (in plans without names)."""
        return self.info.name

    @property
    def shape(self) -> Tuple[int, ...]:
        """Its extents."""
        return self.info.shape

    @property
    def dtype(self) -> numpy.dtype:
        """The NumPy dtype of its elements."""
        return self.info.dtype

    @property
    def scale(self) -> Optional[float]:
        """The one scale of a tensor that is quantised per tensor, else None."""
        return self.info.scale

    @property
    def zero_point(self) -> Optional[int]:
        """The one zero point of a tensor that is quantised per tensor, else None."""
        return self.info.zero_point

    @property
    def array(self) -> numpy.ndarray:
        """The memory that the session reads or writes, as an array: nothing is copied.

        Fill session.inputs[0].array, call invoke() or run() with this array, which copies no input then, and read
        session.outputs[0].array. The next run overwrites outputs, and may overwrite inputs
        (inspect()["memory"]["overwrites_inputs"]). The array stays valid memory when the session is closed. A bound
        array is returned itself, also by an output that is the same tensor as the one it is bound to.
        """
        return self._session._array(self._direction, self._index)

    def quantize(self, real) -> numpy.ndarray:
        """Real numbers as elements of this tensor: TensorInfo.quantize."""
        return self.info.quantize(real)

    def dequantize(self, elements=None) -> numpy.ndarray:
        """float32 values of elements, or of what the tensor holds now: TensorInfo.dequantize."""
        return self.info.dequantize(self.array if elements is None else elements)

    def __repr__(self):
        kind = "input" if self._direction == _capi.INPUT else "output"
        return f"<qplan.SessionTensor {kind} {self._index}: {self.info}>"


def no_view(info, direction, index):
    kind = "input" if direction == _capi.INPUT else "output"
    return Error(
        _capi.INVALID_STATE,
        f"{kind} {index} '{info.name}' has no memory in the session: it is a constant, or bound to a Buffer; use run()",
    )
