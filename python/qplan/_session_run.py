"""How a session runs: arrays in, arrays out."""

import collections.abc
import threading
from typing import Any, Dict, Mapping, Sequence, Tuple, Union, overload

import numpy

from . import _capi, _tensors
from ._copying import NotCopied
from ._errors import Error, check
from ._library import library
from ._plan import Plan
from ._session_tensor import SessionTensor, no_view
from ._tensor import Tensor, refuse_mask

Inputs = Union[numpy.ndarray, Mapping[str, numpy.ndarray]]
Outputs = Union[None, numpy.ndarray, Sequence[numpy.ndarray]]


def _input_name(info, index):
    return f"input {index} '{info.name}'" if info.name else f"input {index}"


def _samples(array, info, index):
    """How many samples of an input the array holds."""
    where = _input_name(info, index)
    if array.dtype != info.dtype:
        raise Error(_capi.DTYPE_MISMATCH, f"{where}: dtype is {array.dtype}, expected {info.dtype}")
    if not info.shape or array.ndim != len(info.shape) or array.shape[1:] != info.shape[1:] or array.shape[0] % info.shape[0]:
        expected = "(n" + (f" * {info.shape[0]}" if info.shape and info.shape[0] > 1 else "")
        expected += "".join(f", {extent}" for extent in info.shape[1:]) + ")"
        raise Error(_capi.SHAPE_MISMATCH, f"{where}: shape is {array.shape}, expected {expected} for n samples")
    return array.shape[0] // info.shape[0]


def _apart(values, views, banks=None):
    """The values; copies of those that lie where a value before them is written to.

    views: where each is written to, or None. banks: the memory of all views, to compare with before many of them.
    """
    copies = None
    for index in range(1, len(values)):
        value = values[index]
        if value is None or value.base is None:  # without a base it owns its memory
            continue
        if banks is not None and index > 1 and not _overlaps(value, banks):
            continue
        if _overlaps(value, views[:index]):
            copies = copies or list(values)
            copies[index] = value.copy()
    return copies or values


def _overlaps(value, views):
    for view in views:
        if view is not None and numpy.may_share_memory(value, view):  # compares bounds
            return True
    return False


def _same_memory(value, bound):
    """Whether the value is what is bound, or an array of the same elements in the same places."""
    if value is bound:
        return True
    if not isinstance(value, numpy.ndarray) or not isinstance(bound, numpy.ndarray):
        return False
    same_elements = value.dtype == bound.dtype and value.shape == bound.shape and value.strides == bound.strides
    return same_elements and value.ctypes.data == bound.ctypes.data


class Running(NotCopied):
    """The part of Session that runs it."""

    _plan: Plan
    _lock: threading.Lock
    _session: Any
    _memory: Any
    _bound: Any
    _invoke: Any
    _views: Any
    _observed: Any
    _arguments: Any
    _handle: Any  # methods of Session
    _check: Any

    @overload
    def run(self, *inputs: Inputs, out: Outputs = None) -> Tuple[numpy.ndarray, ...]: ...

    @overload
    def run(
        self, *inputs: Inputs, out: Outputs = None, tensors: Any
    ) -> Tuple[Tuple[numpy.ndarray, ...], Dict[str, numpy.ndarray]]: ...

    def run(self, *inputs, out=None, tensors=None):
        """One inference: the outputs as a tuple of arrays.

        inputs: one array per input in the model's order, or one dict of name to array. Any strides; dtype and shape
        must be the model's, nothing is converted (inputs[0].quantize does). They are copied into the session, except
        inputs[0].array and arrays bound to the inputs, or views of the same elements, which it reads where they are.
        out: arrays for the outputs, one or a sequence, which are returned; None: new ones. They may be in the
        memory of inputs or of the session, but must not overlap each other.

        tensors: names of tensors that steps write, or the builtin all. Then the result is two things, the outputs and
        a dict of name to array. It is for looking inside: it runs in a session of its own, whose steps take longer.
        """
        if tensors is not None:
            return self._run_observed(inputs, out, tensors)
        with self._lock:
            views = self._views
            # The short way, with as few calls as possible: NumPy copies into and out of the session's memory.
            if views is not None and len(inputs) == len(views[0]):
                for value, (view, dtype, shape) in zip(inputs, views[0]):
                    if type(value) is not numpy.ndarray or value.dtype is not dtype or value.shape != shape:
                        break
                else:
                    if len(inputs) > 1:
                        inputs = _apart(inputs, *views[2])
                    for value, (view, _, _) in zip(inputs, views[0]):
                        view[...] = value  # NumPy copies nothing where both are the same memory
                    arrays = None if out is None else self._outputs_of(out, views[1])
                    status = self._invoke(self._session)
                    if status < 0:
                        self._check(status)
                    if arrays is None:
                        return tuple([view.copy() for view, _, _ in views[1]])
                    results = [view for view, _, _ in views[1]]
                    if len(arrays) > 1:
                        results = _apart(results, arrays)
                    for array, result in zip(arrays, results):
                        array[...] = result
                    return arrays
            return self._run_any(inputs, out)

    def _run_observed(self, inputs, out, tensors):
        with self._lock:
            self._handle()
            if self._observed is None:
                self._observed = _tensors.observed(self, self._arguments)
            return self._observed._observer.run(self._observed, inputs, out, tensors)

    def _run_any(self, inputs, out):
        """run() in every other case: names, arrays of other kinds, bound inputs and outputs."""
        values = self._ordered(inputs)
        # A bound array is there already, and qplan_session_write refuses inputs that are bound.
        arrays = [
            None if _same_memory(value, self._bound.get((_capi.INPUT, i))) else self._input_array(info, i, value)
            for i, (info, value) in enumerate(zip(self._plan.inputs, values))
        ]
        if out is None:
            outputs = tuple(numpy.empty(info.shape, info.dtype) for info in self._plan.outputs)
        else:
            outputs = self._outputs_for(out)
        lib = library()
        session = self._handle()
        views = [self._memory.view(info, _capi.INPUT, i) for i, info in enumerate(self._plan.inputs)]
        for index, (array, view) in enumerate(zip(_apart(arrays, views), views)):
            if array is None:
                continue
            if view is not None and numpy.may_share_memory(array, view):
                view[...] = array  # NumPy minds the overlap
            else:
                self._check(lib.qplan_session_write(session, index, Tensor(array).struct))
        self._check(lib.qplan_session_invoke(session))
        # An array of out may lie where the session has an output that is read after it.
        results = [self._output_memory(info, i) for i, info in enumerate(self._plan.outputs)]
        for index, (output, result) in enumerate(zip(outputs, _apart(results, outputs))):
            if result is None:
                self._check(lib.qplan_session_read(session, index, Tensor(output).struct))
            else:
                output[...] = result  # NumPy minds the overlap
        return outputs

    def _output_memory(self, info, index):
        """The array that an output is in after a run; None where it is in a Buffer or a constant."""
        bound = self._bound.get((_capi.OUTPUT, index))
        if isinstance(bound, numpy.ndarray):
            return bound[...]  # a view, since an array that owns its memory looks to _apart like one of the caller's
        return self._memory.view(info, _capi.OUTPUT, index)

    def run_batch(self, *inputs: Inputs, out: Outputs = None) -> Tuple[numpy.ndarray, ...]:
        """One inference for each sample, by a loop in C: the outputs as a tuple of arrays.

        inputs: as for run, with count times as many elements along the first axis: (32, 224, 224, 3) for a model of
        (1, 224, 224, 3). Outputs are stacked likewise. A network that keeps states goes on from sample to sample.
        """
        infos = self._plan.inputs, self._plan.outputs
        arrays = [numpy.asarray(value) for value in self._ordered(inputs)]
        counts = [_samples(array, info, index) for index, (array, info) in enumerate(zip(arrays, infos[0]))]
        if len(set(counts)) > 1:
            raise Error(_capi.SHAPE_MISMATCH, f"inputs have {counts} samples, expected the same number of each")
        if not counts:
            raise Error(_capi.INVALID_ARGUMENT, "the plan has no inputs, so that a batch has no size; call run()")
        shapes = []
        for index, info in enumerate(infos[1]):
            if not info.shape:
                raise Error(_capi.SHAPE_MISMATCH, f"output {index} has no axes to stack samples along; call run()")
            shapes.append((counts[0] * info.shape[0],) + info.shape[1:])
        if out is None:
            outputs = tuple(numpy.empty(shape, info.dtype) for shape, info in zip(shapes, infos[1]))
        else:
            outputs = self._outputs_for(out, shapes)
        error = _capi.Error()
        with self._lock:
            self._handle()
            # A run may overwrite what is in the session's memory, or in an output, before its sample is read.
            bound = [memory for memory in self._bound.values() if isinstance(memory, numpy.ndarray)]
            in_session = lambda array: self._memory.shares(array) or _overlaps(array, bound)
            arrays = [array.copy() if in_session(array) or _overlaps(array, outputs) else array for array in arrays]
            written = [numpy.empty_like(array) if in_session(array) else array for array in outputs]
            given = [Tensor(array) for array in arrays], [Tensor(array) for array in written]
            structs = [(_capi.DLTensor * len(tensors))(*(tensor.struct for tensor in tensors)) for tensors in given]
            status = library().qplan_host_run_batch(
                self._handle(), counts[0], structs[0], len(given[0]), structs[1], len(given[1]), None, error
            )
            check(status, error)
            for array, result in zip(outputs, written):
                if array is not result:
                    array[...] = result
        return outputs

    def _outputs_of(self, out, views):
        """_outputs_for with as few calls as possible in the usual case, one array."""
        if type(out) is numpy.ndarray and len(views) == 1:
            _, dtype, shape = views[0]
            if out.dtype is dtype and out.shape == shape and out.flags.carray:  # contiguous, aligned, writable
                return (out,)
        return self._outputs_for(out)

    def _outputs_for(self, out, shapes=None):
        """out as a tuple of arrays that can take the outputs."""
        infos = self._plan.outputs
        arrays = (out,) if isinstance(out, numpy.ndarray) else tuple(out)
        if len(arrays) != len(infos):
            raise Error(_capi.INVALID_ARGUMENT, f"out has {len(arrays)} arrays, expected {len(infos)}")
        for index, (info, array) in enumerate(zip(infos, arrays)):
            shape = info.shape if shapes is None else shapes[index]
            if not isinstance(array, numpy.ndarray):
                raise TypeError(f"out: output {index} is {type(array).__name__}, expected a NumPy array")
            refuse_mask(array, f"out: output {index}")
            if array.dtype != info.dtype:
                raise Error(_capi.DTYPE_MISMATCH, f"out: output {index}: dtype is {array.dtype}, expected {info.dtype}")
            if array.shape != shape:
                raise Error(_capi.SHAPE_MISMATCH, f"out: output {index}: shape is {array.shape}, expected {shape}")
            if not array.flags.writeable or any(step % array.itemsize for step in array.strides):
                raise Error(_capi.INVALID_ARGUMENT, f"out: output {index}: the array is read-only or of a record")
            if array.size and any(step == 0 and extent > 1 for step, extent in zip(array.strides, array.shape)):
                raise Error(_capi.INVALID_ARGUMENT, f"out: output {index}: elements share a place in the array")
            for other in range(index):
                if numpy.may_share_memory(array, arrays[other], max_work=1000):  # views of one array may interleave
                    raise Error(_capi.INVALID_ARGUMENT, f"out: outputs {other} and {index} overlap")
        return arrays

    @property
    def inputs(self) -> Tuple[SessionTensor, ...]:
        """A SessionTensor for each input."""
        return tuple(SessionTensor(self, info, _capi.INPUT, i) for i, info in enumerate(self._plan.inputs))

    @property
    def outputs(self) -> Tuple[SessionTensor, ...]:
        """A SessionTensor for each output."""
        return tuple(SessionTensor(self, info, _capi.OUTPUT, i) for i, info in enumerate(self._plan.outputs))

    def _array(self, direction, index):
        """The array of an input or output, for SessionTensor."""
        info = (self._plan.inputs, self._plan.outputs)[direction][index]
        with self._lock:
            self._handle()
            bound = self._bound.get((direction, index))
            found = bound if isinstance(bound, numpy.ndarray) else self._memory.view(info, direction, index)
            if found is None:
                found = self._bound_elsewhere(info, direction, index)
            if found is None:
                raise no_view(info, direction, index)
            return found

    def _bound_elsewhere(self, info, direction, index):
        """The array that another output is bound to which is the same tensor, or None."""
        address = self._memory.address(direction, index)
        for array in self._bound.values():
            if address is None or not isinstance(array, numpy.ndarray) or array.ctypes.data != address:
                continue
            if array.dtype == info.dtype and array.shape == info.shape:
                return array
        return None

    def _find_views(self):
        """What the short way of run() needs; None where something is bound, or not in the session's memory."""
        self._views = None
        if self._bound:
            return
        inputs = [self._memory.view(info, _capi.INPUT, i) for i, info in enumerate(self._plan.inputs)]
        outputs = [self._memory.view(info, _capi.OUTPUT, i) for i, info in enumerate(self._plan.outputs)]
        if all(view is not None for view in inputs + outputs):
            described = [tuple((view, view.dtype, view.shape) for view in views) for views in (inputs, outputs)]
            self._views = (*described, (inputs, self._memory.banks))

    def _ordered(self, inputs):
        """The inputs in the order of the plan. None is refused, which would be taken for an input that is bound, and a mask."""
        values = self._in_order(inputs)
        for index, (info, value) in enumerate(zip(self._plan.inputs, values)):
            if value is None:
                raise TypeError(f"{_input_name(info, index)} is None, expected an array")
            refuse_mask(value, _input_name(info, index))
        return values

    def _in_order(self, inputs):
        infos = self._plan.inputs
        if len(inputs) == 1 and isinstance(inputs[0], collections.abc.Mapping):
            named = dict(inputs[0])
            names = [info.name for info in infos]
            if "" in names or len(set(names)) != len(names):
                raise Error(_capi.NOT_FOUND, "the plan's inputs have no names, or not unique ones; give arrays in order")
            if sorted(named) != sorted(names):
                raise Error(_capi.NOT_FOUND, f"inputs are named {sorted(named)}, expected {names}")
            return [named[name] for name in names]
        if len(inputs) != len(infos):
            expected = "; ".join(map(str, infos))
            raise Error(_capi.INVALID_ARGUMENT, f"found {len(inputs)} inputs, expected {len(infos)}: {expected}")
        return inputs

    @staticmethod
    def _input_array(info, index, value):
        array = numpy.asarray(value)
        where = _input_name(info, index)
        if array.dtype != info.dtype:
            raise Error(_capi.DTYPE_MISMATCH, f"{where}: dtype is {array.dtype}, expected {info.dtype}")
        if array.shape != info.shape:
            raise Error(_capi.SHAPE_MISMATCH, f"{where}: shape is {array.shape}, expected {info.shape}")
        return array
