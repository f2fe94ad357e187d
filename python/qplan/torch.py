"""Packs quantised PyTorch modules, in a process that has torch.

    import qplan.torch

    plan = qplan.torch.pack(quantised_module, torch.rand(1, 3, 224, 224), "model.qplan")

The module has gone through PyTorch's static quantisation (torch.ao.quantization: eager mode or FX), or is a ScriptModule
of such a one. A program of torch.export is packed, too, quantised by PT2E or not. Files need no torch:
qplan.pack("model.pt2") of torch.export.save, qplan.pack("model.pt", input_types=...) of torch.jit.save.
"""

import contextlib
import io
import warnings

import torch

from . import _capi
from ._errors import Error
from ._pack import pack as _pack


def archive(module, example_inputs=None):
    """(bytes of a frozen TorchScript archive, types of its inputs by name) of the module.

    example_inputs: a tensor, or a tuple of tensors in the order of forward's parameters. Plans have fixed shapes: the
    examples'. Of a torch.export.ExportedProgram it is the archive that torch.export.save writes; without example inputs
    its shapes are the program's, and an open batch is 1.
    """
    if _is_program(module):
        return _save(module, example_inputs)
    if example_inputs is None:
        raise Error(_capi.INVALID_ARGUMENT, "found no example inputs: TorchScript does not record the shapes of inputs")
    examples = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)
    frozen = _freeze(module, examples)
    names = [argument.name for argument in frozen.forward.schema.arguments[1:]]
    if len(names) != len(examples):
        raise Error(_capi.INVALID_ARGUMENT, f"found {len(examples)} example inputs, expected {len(names)}: {names}")
    buffer = io.BytesIO()
    torch.jit.save(frozen, buffer)
    types = {name: (tuple(value.shape), _dtype(name, value)) for name, value in zip(names, examples)}
    return buffer.getvalue(), types


def pack(module, example_inputs=None, output=None, target="cpu", **options):
    """Packs a module or an exported program and returns the Plan; output, target and options as qplan.pack."""
    data, types = archive(module, example_inputs)
    return _pack(data, output, target, input_types=types, **options)


def _is_program(module):
    program = getattr(getattr(torch, "export", None), "ExportedProgram", None)
    return program is not None and isinstance(module, program)


def _save(program, example_inputs):
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    if example_inputs is None:
        return buffer.getvalue(), {}
    examples = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)
    names = [str(name) for name in program.graph_signature.user_inputs]
    if len(names) != len(examples):
        raise Error(_capi.INVALID_ARGUMENT, f"found {len(examples)} example inputs, expected {len(names)}: {names}")
    return buffer.getvalue(), {name: (tuple(x.shape), _dtype(name, x)) for name, x in zip(names, examples)}


def _freeze(module, examples):
    if not isinstance(module, torch.nn.Module):
        raise Error(
            _capi.INVALID_ARGUMENT,
            f"found a {type(module).__name__}, expected a torch.nn.Module, a ScriptModule or an ExportedProgram",
        )
    if not isinstance(module, torch.jit.ScriptModule):
        # Shapes, scales and zero points are fixed in any case, so that a trace loses nothing that a plan could keep,
        # whatever its warnings say; strict=False lets it return a dict.
        with torch.no_grad(), _evaluating(module), warnings.catch_warnings():
            warnings.simplefilter("ignore", torch.jit.TracerWarning)
            module = torch.jit.trace(module, examples, check_trace=False, strict=False)
    if not hasattr(module, "training"):  # freezing takes the attribute away
        return module
    with _evaluating(module):
        return torch.jit.freeze(module)


@contextlib.contextmanager
def _evaluating(module):
    """The module in eval mode. It is the caller's: each part of it gets its own mode back."""
    modes = [(part, part.training) for part in module.modules() if hasattr(part, "training")]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _dtype(name, value):
    if value.dtype != torch.float32:
        raise Error(_capi.DTYPE_MISMATCH, f"example input '{name}' is {value.dtype}, expected torch.float32")
    return "float32"
