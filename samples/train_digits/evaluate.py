#!/usr/bin/env python3
"""Runs a quantised int8 .tflite with integer_ops.py: an oracle that shares no code with the project's runtime.

usage: evaluate.py MODEL INPUT.bin [OUTPUT.bin]
INPUT.bin holds one or more inputs, raw int8 in the model's order; OUTPUT.bin gets as many outputs. Without OUTPUT.bin
the outputs are printed. Operators: those of the digits network and of the MLPerf Tiny keyword spotter.
"""
import argparse
import math
import sys

import numpy as np

import integer_ops as ops
from tflite_schema import FILE_IDENTIFIER, tflite

DTYPES = {tflite.TensorType.INT8: np.dtype("int8"), tflite.TensorType.INT32: np.dtype("<i4")}
CLAMP = (ops.INT8_MIN, ops.INT8_MAX)


class Model:
    def __init__(self, data):
        if data[4:8] != FILE_IDENTIFIER:
            raise ValueError(f"not a TFLite model: found identifier {data[4:8]!r}, expected {FILE_IDENTIFIER!r}")
        model = tflite.ModelT.InitFromObj(tflite.Model.GetRootAs(data))
        graph = model.subgraphs[0]
        self.tensors, self.operators = graph.tensors, graph.operators
        self.inputs, self.outputs = list(graph.inputs), list(graph.outputs)
        self.constants = {}
        for index, tensor in enumerate(graph.tensors):
            data = model.buffers[tensor.buffer].data
            if data is not None:
                self.constants[index] = np.frombuffer(bytes(data), DTYPES[tensor.type]).reshape(tensor.shape)
        names = {value: name for name, value in vars(tflite.BuiltinOperator).items() if isinstance(value, int)}
        self.codes = [names[max(code.builtinCode, code.deprecatedBuiltinCode)] for code in model.operatorCodes]

    def scales(self, index):
        return np.asarray(self.tensors[index].quantization.scale, np.float32)

    def scale(self, index):
        return float(self.scales(index)[0])

    def zero_point(self, index):
        return int(self.tensors[index].quantization.zeroPoint[0])

    def run(self, inputs):
        """inputs: int8 [n, ...], n inputs of the network's one input tensor. Returns the one output, [n, ...]."""
        values = dict(self.constants)
        values[self.inputs[0]] = inputs
        for operator in self.operators:
            name = self.codes[operator.opcodeIndex]
            if name not in RUN:
                raise ValueError(f"operator {name} is not one of {', '.join(RUN)}")
            values[operator.outputs[0]] = RUN[name](self, operator, values)
        return values[self.outputs[0]]


def _clamp(activation, scale, zero_point):
    """The int8 range of a fused activation."""
    kinds = tflite.ActivationFunctionType
    if activation == kinds.NONE:
        return CLAMP
    low = max(CLAMP[0], zero_point)
    if activation == kinds.RELU:
        return (low, CLAMP[1])
    if activation == kinds.RELU6:  # float32, half away from zero
        return (low, min(CLAMP[1], zero_point + math.floor(float(np.float32(6.0) / np.float32(scale)) + 0.5)))
    raise ValueError(f"fused activation {activation} is not NONE, RELU or RELU6")


def _padding(options, size_in, kernel):
    """(top, left, height_out, width_out)"""
    strides = (options.strideH, options.strideW)
    before, out = [], []
    for size, window, stride in zip(size_in, kernel, strides):
        if options.padding == tflite.Padding.SAME:
            extent = -(-size // stride)
            before.append(max((extent - 1) * stride + window - size, 0) // 2)
        else:
            extent = (size - window) // stride + 1
            before.append(0)
        out.append(extent)
    return (*before, *out)


def _multipliers(model, x, weights, output, one_product):
    """one_product: the scales are multiplied in float32 (fully connected), else in float64."""
    real = []
    for scale in model.scales(weights):
        product = float(np.float32(model.scale(x)) * scale) if one_product else model.scale(x) * float(scale)
        real.append(ops.quantize_multiplier(product / model.scale(output)))
    multiplier, shift = np.array(real, np.int64).T
    return multiplier, shift


def _run_convolution(model, operator, values, kernel_function):
    x, weights, bias = operator.inputs
    output, options = operator.outputs[0], operator.builtinOptions
    kernel = values[weights].shape[1:3]
    multiplier, shift = _multipliers(model, x, weights, output, one_product=False)
    return kernel_function(values[x], values[weights], values[bias].astype(np.int64),
                           (options.strideH, options.strideW), _padding(options, values[x].shape[1:3], kernel),
                           model.zero_point(x), multiplier, shift, model.zero_point(output),
                           _clamp(options.fusedActivationFunction, model.scale(output), model.zero_point(output)))


def _run_fully_connected(model, operator, values):
    x, weights, bias = operator.inputs
    output = operator.outputs[0]
    multiplier, shift = _multipliers(model, x, weights, output, one_product=len(model.scales(weights)) == 1)
    rows = values[x].reshape(-1, values[weights].shape[1])
    return ops.fully_connected(rows, values[weights], values[bias].astype(np.int64), model.zero_point(x), multiplier,
                               shift, model.zero_point(output),
                               _clamp(operator.builtinOptions.fusedActivationFunction, model.scale(output),
                                      model.zero_point(output)))


def _run_add(model, operator, values):
    a, b = operator.inputs
    output = operator.outputs[0]
    clamp = _clamp(operator.builtinOptions.fusedActivationFunction, model.scale(output), model.zero_point(output))
    return ops.add(values[a], values[b], model.scale(a), model.zero_point(a), model.scale(b), model.zero_point(b),
                   model.scale(output), model.zero_point(output), clamp)


def _run_average_pool(model, operator, values):
    x, output, options = operator.inputs[0], operator.outputs[0], operator.builtinOptions
    kernel = (options.filterHeight, options.filterWidth)
    return ops.average_pool(values[x], kernel, (options.strideH, options.strideW),
                            _padding(options, values[x].shape[1:3], kernel),
                            _clamp(options.fusedActivationFunction, model.scale(output), model.zero_point(output)))


def _run_reshape(model, operator, values):
    x = values[operator.inputs[0]]
    return x.reshape((x.shape[0],) + tuple(model.tensors[operator.outputs[0]].shape[1:]))


def _run_softmax(model, operator, values):
    x = operator.inputs[0]
    return ops.softmax(values[x], operator.builtinOptions.beta, model.scale(x))


RUN = {
    "CONV_2D": lambda *args: _run_convolution(*args, ops.convolution),
    "DEPTHWISE_CONV_2D": lambda *args: _run_convolution(*args, ops.depthwise),
    "FULLY_CONNECTED": _run_fully_connected,
    "ADD": _run_add,
    "AVERAGE_POOL_2D": _run_average_pool,
    "RESHAPE": _run_reshape,
    "SOFTMAX": _run_softmax,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("input")
    parser.add_argument("output", nargs="?")
    args = parser.parse_args()
    with open(args.model, "rb") as file:
        model = Model(file.read())
    shape = tuple(model.tensors[model.inputs[0]].shape)
    inputs = np.fromfile(args.input, np.int8)
    if inputs.size == 0 or inputs.size % math.prod(shape):
        sys.exit(f"evaluate.py: '{args.input}' has {inputs.size} bytes, expected a multiple of {math.prod(shape)}")
    outputs = model.run(inputs.reshape((-1,) + shape[1:]))
    if args.output:
        outputs.tofile(args.output)
    else:
        for row in outputs.reshape(len(outputs), -1):
            print(" ".join(str(value) for value in row))


if __name__ == "__main__":
    main()
