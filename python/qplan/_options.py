"""The options of pack, import_text, explain and tune, for type checkers and editors."""

import os
from typing import TYPE_CHECKING, Any, Callable, Literal, Mapping, Optional, Sequence, Tuple, TypedDict, Union

if TYPE_CHECKING:
    import numpy

    from .passes import Pass, Rewrite

PathLike = Union[str, "os.PathLike[str]"]
InputType = Union[Sequence[int], Tuple[Sequence[int], Any]]


class PackOptions(TypedDict, total=False):
    """Options of qplan.pack, which docs/python.md and qplan.pack.__doc__ describe."""

    strip_names: bool
    target_file: Optional[PathLike]
    target_libs: Sequence[PathLike]
    placement: Literal["soft", "strict"]
    pins: Sequence[str]
    prefer: Optional[Literal["npu", "latency", "energy"]]
    cost_gate: bool
    fallback: Literal["cpu", "none"]
    contract: Optional[Literal["tfl2", "f32e"]]
    io: Optional[Literal["int8", "uint8", "float"]]
    io_layout: Optional[Literal["nhwc", "nchw"]]
    keep_float: bool
    skip: Sequence[str]
    passes: Sequence["Union[Pass, Rewrite]"]
    input_types: Optional[Mapping[str, InputType]]
    bindings: Optional[Mapping[str, "numpy.ndarray"]]
    synthesize_constants: Optional[int]
    dump_after: Optional[str]
    dump: Optional[Callable[[str], None]]
    tuning: Optional[PathLike]
    tuning_threads: int
    fuse: Literal["auto", "off", "all", "memory"]
    max_ram: int
    self_check: int
    custom_operators: Optional[PathLike]
    begin_at: Sequence[str]
    end_at: Sequence[str]


class ImportOptions(PackOptions, total=False):
    """Options of qplan.import_text: those of pack, and two more."""

    body: bool
    why_not: Optional[str]
