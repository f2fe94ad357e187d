"""The packer."""

import ctypes
import logging
import os

from . import _capi
from ._callbacks import raising
from ._errors import check
from ._library import library
from ._plan import Plan
from .passes import attach

_logger = logging.getLogger("qplan")
_LEVELS = {1: logging.ERROR, 2: logging.WARNING, 3: logging.INFO, 4: logging.DEBUG}


def _log(_user, level, text):
    _logger.log(_LEVELS.get(level, logging.INFO), "%s", text.decode("utf-8", "replace"))


class _Call:
    """Options of one call of the packer, and what has to live as long as the call."""

    def __init__(self, target, strip_names=False, passes=(), skip=()):
        self.output = _capi.Pieces()
        self.error = _capi.Error()
        self._long_text = _capi.Pieces()
        self.options = _capi.PackOptions(
            strip_names=int(strip_names),
            target=target.encode(),
            log_level=_capi.LOG_WARNING,
            log=_capi.LogFunction(_log),
            error_text=self._long_text.function,
        )
        self._kept = attach(self.options, passes)
        names = [name.encode() for name in skip]
        self.options.skip, self.options.num_skip = (ctypes.c_char_p * len(names))(*names), len(names)

    def run(self, function, *arguments):
        """Calls the C function and raises what it, or a callback, reports."""
        with raising():
            status = getattr(library(), function)(*arguments, self.error)
            check(status, self.error, self._long_text.text().strip())


def pack(model, output=None, target="cpu", *, strip_names=False, passes=(), skip=()):
    """Packs a model and returns the Plan.

    model: path of a .tflite file, or its bytes. output: where the plan file is written, atomically; None: nowhere
    (Plan.save does it later). target: "cpu" with options, "cpu,isa=reference". strip_names: leave names and provenance
    out of the plan. passes: qplan.passes.Pass or Rewrite objects of the caller. skip: names of passes and rewrites that
    are left out. Warnings of the packer go to the logger "qplan".
    """
    call = _Call(target, strip_names, passes, skip)
    if isinstance(model, (bytes, bytearray, memoryview)):
        data = bytes(model)
        address = ctypes.cast(data, ctypes.c_void_p)
        call.run("qplan_pack_bytes", address, len(data), b"model", call.options, call.output.function, None)
    else:
        call.run("qplan_pack_file", os.fsencode(model), call.options, call.output.function, None)
    plan = Plan(call.output.bytes())
    if output is not None:
        plan.save(output)
    return plan


def import_text(model, canonical=False, *, passes=(), skip=()):
    """The imported model as Relay text, before any rewrite or, canonical, after all; as `qplan import --print`."""
    call = _Call("cpu", passes=passes, skip=skip)
    call.run("qplan_import_text", os.fsencode(model), call.options, int(canonical), call.output.function, None)
    return call.output.text()
