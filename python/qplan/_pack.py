"""The packer."""

import ctypes
import difflib
import inspect
import logging
import numbers
from typing import TYPE_CHECKING, Optional, Union

import numpy

from . import _capi
from ._callbacks import cancelled, keeping, raising
from ._errors import check, whole
from ._library import library
from ._options import PathLike
from ._plan import Plan, load_custom_operators
from ._tensor import Tensor, as_array, dl_dtype
from ._texts import c_model_path, c_optional_path, c_optional_text, c_path, c_text, listed
from .passes import attach

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import ImportOptions, PackOptions

_logger = logging.getLogger("qplan")
_LEVELS = {1: logging.ERROR, 2: logging.WARNING, 3: logging.INFO, 4: logging.DEBUG}


@keeping
def _log(_user, level, text):
    _logger.log(_LEVELS.get(level, logging.INFO), "%s", text.decode("utf-8", "replace"))


def _log_level():
    """The log level that the logger lets through; the packer reports no more than that."""
    if _logger.isEnabledFor(logging.DEBUG):
        return _capi.LOG_DEBUG
    return _capi.LOG_INFO if _logger.isEnabledFor(logging.INFO) else _capi.LOG_WARNING


def _choice(name, value, choices):
    if value not in choices:
        raise ValueError(f"{name}: found {value!r}, expected one of {', '.join(map(str, choices))}")
    return choices[value]


def _number(name, value, most):
    """An option from 0 to most; None is 0."""
    return 0 if value is None else whole(name, value, 0, most)


def _named_types(types):
    """An array of qplan_named_type, and what it points to. types: {name: shape} or {name: (shape, dtype)}."""
    structs, kept = [], []
    for name, value in types.items():
        has_dtype = len(value) == 2 and not isinstance(value[0], numbers.Integral)  # a shape and a dtype
        shape, dtype = value if has_dtype else (value, numpy.float32)
        checked = [whole(f"input_types: extent {i} of {name!r}", extent, 0, 2**63 - 1) for i, extent in enumerate(shape)]
        extents = (ctypes.c_int64 * len(shape))(*checked)
        kept.append(extents)
        structs.append(_capi.NamedType(c_text("input_types: a name", name), dl_dtype(dtype), len(shape), extents))
    return (_capi.NamedType * len(structs))(*structs), kept


def _named_tensors(arrays):
    """An array of qplan_named_tensor, and what it points to."""
    tensors = {name: Tensor(as_array(array, f"bindings: {name!r}")) for name, array in arrays.items()}
    structs = [
        _capi.NamedTensor(c_text("bindings: a name", name), ctypes.pointer(tensor.struct)) for name, tensor in tensors.items()
    ]
    return (_capi.NamedTensor * len(structs))(*structs), tensors


class _Call:
    """Options of one call of the packer, and what has to live as long as the call."""

    def __init__(
        self,
        target="cpu",
        *,
        strip_names=False,
        target_file=None,
        target_libs=(),
        placement="soft",
        pins=(),
        cost_gate=True,
        fallback="cpu",
        contract=None,
        io=None,
        io_layout=None,
        keep_float=False,
        skip=(),
        passes=(),
        input_types=None,
        bindings=None,
        synthesize_constants=None,
        dump_after=None,
        dump=None,
        why_not=None,
        body=False,
        tuning=None,
        tuning_threads=1,
        fuse="auto",
        max_ram=None,
        self_check=0,
        prefer=None,
        custom_operators=None,
        begin_at=(),
        end_at=(),
    ):
        self.output = _capi.Pieces()
        self.error = _capi.Error()
        self._long_text = _capi.Pieces()
        self._dump = dump if dump is not None else print
        self._dumps = []
        self.summary = ""
        names = [c_text("skip: a name", name) for name in listed("skip", skip)]
        pinned = [c_text("pins: a pin", pin) for pin in listed("pins", pins)]
        libraries = [c_path("target_libs: a path", path) for path in listed("target_libs", target_libs)]
        begins = [c_text("begin_at: a name", name) for name in listed("begin_at", begin_at)]
        ends = [c_text("end_at: a name", name) for name in listed("end_at", end_at)]
        types, kept_types = _named_types(input_types or {})
        tensors, kept_tensors = _named_tensors(bindings or {})
        operators, num_operators = load_custom_operators(custom_operators)
        self.options = _capi.PackOptions(
            custom_operators=operators,
            num_custom_operators=num_operators,
            strip_names=int(bool(strip_names)),
            target=c_text("target", target),
            dump_after=c_optional_text("dump_after", dump_after),
            log_level=_log_level(),
            log=_capi.LogFunction(_log),
            dump=_capi.WriteFunction(keeping(self._on_dump)),
            error_text=self._long_text.function,
            contract=c_optional_text("contract", contract),
            io=c_optional_text("io", io),
            io_layout=c_optional_text("io_layout", io_layout),
            keep_float=int(bool(keep_float)),
            num_skip=len(names),
            skip=(ctypes.c_char_p * len(names))(*names),
            bindings=tensors,
            num_bindings=len(tensors),
            num_input_types=len(types),
            input_types=types,
            synthesize_constants=int(synthesize_constants is not None),
            canonical_body=int(bool(body)),
            synthesize_seed=_number("synthesize_constants", synthesize_constants, 2**64 - 1),
            why_not=c_optional_text("why_not", why_not),
            placement=_choice("placement", placement, {"soft": 0, "strict": 1}),
            pins=(ctypes.c_char_p * len(pinned))(*pinned),
            num_pins=len(pinned),
            no_cost_gate=int(not cost_gate),
            no_fallback=_choice("fallback", fallback, {"cpu": 0, "none": 1}),
            target_file=c_optional_path("target_file", target_file),
            target_libs=(ctypes.c_char_p * len(libraries))(*libraries),
            num_target_libs=len(libraries),
            summary=_capi.SummaryFunction(keeping(self._on_summary)),
            tuning_file=c_optional_path("tuning", tuning),
            tuning_threads=_number("tuning_threads", tuning_threads, 2**32 - 1),
            fuse=_choice("fuse", fuse, {"auto": 0, "off": 1, "all": 2, "memory": 3}),
            max_ram=_number("max_ram", max_ram, 2**64 - 1),
            self_checks=_number("self_check", self_check, 64),
            prefer=_choice("prefer", prefer, {None: 0, "npu": 1, "latency": 2, "energy": 3}),
            begin_at=(ctypes.c_char_p * len(begins))(*begins),
            num_begin_at=len(begins),
            end_at=(ctypes.c_char_p * len(ends))(*ends),
            num_end_at=len(ends),
            cancelled=_capi.CancelledFunction(cancelled),
        )
        self._kept = (kept_types, kept_tensors, attach(self.options, passes))

    def _on_summary(self, _user, text):
        self.summary = text.decode("utf-8", "replace")
        _logger.info("%s", self.summary)

    def _on_dump(self, _user, address, size):
        self._dumps.append(ctypes.string_at(address, size).decode("utf-8", "replace"))

    def run(self, function, *arguments):
        """Calls the C function and raises what it, or a callback, reports."""
        with raising():
            status = getattr(library(), function)(*arguments, self.error)
            for text in self._dumps:
                self._dump(text)
            check(status, self.error, self._long_text.text().strip())


def _known(function, options, also=(), own=()):
    """Raises the TypeError of a call with an option that the function does not have; also: options of _Call that it
    lacks; own: others that it has, to be named in the advice."""
    names = [*own, *(name for name in inspect.signature(_Call).parameters if name not in also)]
    for name in options:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            advice = f"did you mean '{near[0]}'?" if near else f"expected one of {', '.join(names)}"
            raise TypeError(f"qplan.{function}() has no option '{name}'; {advice}")


def pack(
    model: Union[PathLike, bytes, bytearray, memoryview],
    output: Optional[PathLike] = None,
    target: str = "cpu",
    **options: "Unpack[PackOptions]",
) -> Plan:
    """Packs a model and returns the Plan.

    model: path of a file (.tflite, .onnx, .pt, .pt2, Relay text; the content decides), or its bytes. output: where the
    plan file is written, atomically; None: nowhere (Plan.save does it later). target: "cpu" with options,
    "cpu,isa=reference". Warnings of the packer go to the logger "qplan", more of its log where that logger's level lets
    it through.

    target: "vta, cpu" places operators on VTA where it can run them (docs/placement.md); the line about it goes to the
    logger, as info.

    options, as those of `qplan pack` (docs/cli.md):
      strip_names: leave names and provenance out of the plan.
      target_file: a JSON file of targets, in place of target. target_libs: paths of shared libraries that describe
        targets (qplan/npu_target.h), which target may then name.
      placement: "soft" or "strict"; pins: ["NODE=TARGET", ...]; prefer: "npu", "latency" or "energy", what
        decides whether a region is worth its device (None: "npu" where target names a device first, else "latency");
        cost_gate: False keeps all regions on their devices; fallback: "cpu",
        or "none": regions of a device have no CPU steps as a fallback.
      custom_operators: a shared library with operators that qplan does not have (docs/custom-operators.md).
      begin_at, end_at: names of tensors of the file; the part of the model between them is packed, and they are its
        inputs and outputs (docs/cli.md).
      contract: "tfl2" or "f32e", the numeric contract of every operator.
      io, io_layout: dtype ("int8", "uint8", "float") and layout ("nhwc", "nchw") of inputs and outputs.
      input_types: {name: shape} or {name: (shape, dtype)} for inputs that the model leaves open; float32 by default.
      bindings: {name: array} for parameters that become constants.
      synthesize_constants: a seed; constants that a Relay text names without data get data made of it.
      keep_float: leave out rewrites that give a float pattern an integer meaning.
      skip: names of passes and rewrites that are left out.
      passes: qplan.passes.Pass or Rewrite objects of the caller.
      tuning: a log of `qplan tune` (docs/schedules.md); tuning_threads: use its lines measured with this many threads.
      fuse: "auto", "off", "all" or "memory": layers that run as one step, a few rows at a time; "memory": those that take
        the least memory, whatever their time (docs/schedules.md).
      max_ram: bytes that a session with one thread may take; where it takes more, fuse is "memory".
      self_check: runs, at most 64, whose checksums the plan holds for Session.self_check().
      dump_after: "all", "import" or a pass, after which dump (print by default) is called with the IR as text.
    """
    _known("pack", options, also=("why_not", "body"))
    call = _Call(target, **options)
    if isinstance(model, (bytes, bytearray, memoryview)):
        data = bytes(model)
        address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p)
        call.run("qplan_pack_bytes", address, len(data), b"model", call.options, call.output.function, None)
    else:
        call.run("qplan_pack_file", c_path("model", model), call.options, call.output.function, None)
    plan = Plan(call.output.bytes())
    if output is not None:
        plan.save(output)
    return plan


def import_text(model: PathLike, canonical: bool = False, **options: "Unpack[ImportOptions]") -> str:
    """The imported model as Relay text, before any rewrite or, canonical, after all; as `qplan import --print`.

    options: those of pack, and
      body: with canonical the body alone, without names, as all sources of a network have it.
      why_not: a rewrite's name; gives the report of where it does not apply, and why, in place of the IR.
    """
    _known("import_text", options)
    path = c_model_path("import_text", model)
    call = _Call(**options)
    call.run("qplan_import_text", path, call.options, int(canonical), call.output.function, None)
    return call.output.text()
