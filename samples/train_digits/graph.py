"""The digits network as other frameworks see it: layers in order, with integer weights, read from the .tflite file."""
from dataclasses import dataclass, field

import numpy as np

from evaluate import Model, _padding
from tflite_schema import tflite


@dataclass
class Quantization:
    """real = scale * (element - zero_point); elements are uint8, as ONNX and PyTorch have them."""
    scale: float
    zero_point: int


@dataclass
class Layer:
    op: str                     # conv, add, pool, flatten, dense, softmax
    name: str
    inputs: list                # names of layers; "image" is the network's input
    output: Quantization
    weights: np.ndarray = None  # int8, OIHW or [units, features]
    scales: np.ndarray = None   # float32, one per output channel
    bias: np.ndarray = None     # int32, of scale input * weights
    groups: int = 1
    stride: int = 1
    kernel: tuple = (1, 1)
    pads: tuple = field(default=(0, 0, 0, 0))  # top, left, bottom, right
    relu: bool = False


def read(path):
    """(Quantization of the input, its shape as NCHW, layers)"""
    with open(path, "rb") as file:
        model = Model(file.read())
    name = lambda index: model.tensors[index].name.decode()

    def quantization(index):
        return Quantization(model.scale(index), model.zero_point(index) + 128)

    layers = []
    for operator in model.operators:
        code, output, options = model.codes[operator.opcodeIndex], operator.outputs[0], operator.builtinOptions
        inputs = [name(index) for index in operator.inputs if index not in model.constants]
        layer = Layer("", name(output), inputs, quantization(output))
        layer.relu = getattr(options, "fusedActivationFunction", 0) == tflite.ActivationFunctionType.RELU
        if code in ("CONV_2D", "DEPTHWISE_CONV_2D"):
            weights, bias = operator.inputs[1:]
            depthwise = code == "DEPTHWISE_CONV_2D"
            layer.op, layer.bias, layer.scales = "conv", model.constants[bias], model.scales(weights)
            layer.weights = model.constants[weights].transpose((3, 0, 1, 2) if depthwise else (0, 3, 1, 2))
            layer.groups = len(layer.weights) if depthwise else 1
            layer.stride, layer.kernel = int(options.strideH), layer.weights.shape[2:]
            size = model.tensors[operator.inputs[0]].shape[1:3]
            top, left, height, width = _padding(options, size, layer.kernel)
            total = [(out - 1) * layer.stride + window - extent
                     for out, window, extent in zip((height, width), layer.kernel, size)]
            layer.pads = tuple(int(pad) for pad in (top, left, max(total[0] - top, 0), max(total[1] - left, 0)))
        elif code == "FULLY_CONNECTED":
            weights, bias = operator.inputs[1:]
            layer.op, layer.weights, layer.bias = "dense", model.constants[weights], model.constants[bias]
            layer.scales = model.scales(weights)
        elif code == "AVERAGE_POOL_2D":
            layer.op, layer.kernel = "pool", (options.filterHeight, options.filterWidth)
        else:
            layer.op = {"ADD": "add", "RESHAPE": "flatten", "SOFTMAX": "softmax"}[code]
        layers.append(layer)
    image = model.inputs[0]
    n, height, width, channels = (int(extent) for extent in model.tensors[image].shape)
    return quantization(image), (n, channels, height, width), layers
