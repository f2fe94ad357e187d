"""Post-training quantisation: float layers and calibration data -> tensors and operators of an int8 network.

Activations: int8, one scale and zero point, range from the training data. Weights: int8 symmetric in [-127, 127], one
scale per output channel (fully connected: one for all). Bias: int32 with scale input x weights.
"""
from dataclasses import dataclass, field

import numpy as np

from network import CONVOLUTIONS, LAYERS, run_folded

BATCH = 256


@dataclass
class Tensor:
    name: str
    shape: tuple
    dtype: str                                   # int8 | int32
    scales: np.ndarray = None                    # float32
    zero_point: int = 0
    axis: int = 0                                # of the scales
    data: np.ndarray = None                      # constants only


@dataclass
class Operator:
    op: str                                      # as network.Layer.op
    inputs: list                                 # names of tensors
    output: str
    options: dict = field(default_factory=dict)


@dataclass
class Network:
    tensors: dict                                # by name, in order
    operators: list
    input: str
    output: str


def quantize(folded, images):
    """folded: network.fold(). images: float32 [n, 1, h, w] in 0..1 to calibrate with."""
    ranges = _ranges(folded, images)
    tensors, operators = {}, []

    def add_tensor(tensor):
        tensors[tensor.name] = tensor
        return tensor.name

    # real = (byte - 128 + 128) / 255
    add_tensor(Tensor("image", (1, images.shape[2], images.shape[3], 1), "int8", np.float32([1 / 255]), -128))
    for layer in LAYERS:
        source = tensors[layer.inputs[0]]
        inputs = list(layer.inputs)
        if layer.name in folded:
            weights, bias = (value.numpy() for value in folded[layer.name])
            quantized = _weights(layer, weights)
            inputs.append(add_tensor(quantized))
            inputs.append(add_tensor(_bias(layer, bias, source.scales[0], quantized.scales)))
        scale, zero_point = _activation(layer, source, ranges[layer.name][:2])
        if layer.op == "reshape":
            shape = ranges[layer.name][2]
            inputs.append(add_tensor(Tensor(layer.name + "/shape", (len(shape),), "int32",
                                            data=np.array(shape, np.int32))))
        add_tensor(Tensor(layer.name, ranges[layer.name][2], "int8", np.float32([scale]), zero_point))
        operators.append(Operator(layer.op, inputs, layer.name,
                                  {"kernel": layer.kernel, "stride": layer.stride, "relu": layer.relu}))
    return Network(tensors, operators, "image", LAYERS[-1].name)


def _ranges(folded, images):
    """{layer: (least value, greatest value, NHWC shape of one image)} over all images."""
    ranges = {}
    for begin in range(0, len(images), BATCH):
        for name, value in run_folded(folded, images[begin:begin + BATCH]).items():
            low, high, _ = ranges.get(name, (0.0, 0.0, None))  # a range always holds zero
            extents = value.shape[1:]
            shape = (1,) + (tuple(extents[1:]) + (extents[0],) if len(extents) == 3 else tuple(extents))
            ranges[name] = (min(low, float(value.min())), max(high, float(value.max())), shape)
    return ranges


def _activation(layer, source, extent):
    if layer.op in ("average_pool", "reshape"):  # these keep the bytes' meaning
        return source.scales[0], source.zero_point
    if layer.op == "softmax":
        return np.float32(1 / 256), -128
    low, high = extent
    scale = np.float32((high - low) / 255)
    return scale, int(np.clip(round(-128 - low / float(scale)), -128, 127))


def _weights(layer, weights):
    """OIHW -> OHWI; depthwise [O,1,KH,KW] -> [1,KH,KW,O]; fully connected stays [O, I]."""
    axis = 0
    if layer.op in CONVOLUTIONS:
        limits = np.abs(weights).max(axis=(1, 2, 3))
        weights, axis = (weights.transpose(1, 2, 3, 0), 3) if layer.op == "depthwise" \
            else (weights.transpose(0, 2, 3, 1), 0)
    else:
        limits = np.abs(weights).max(keepdims=True).reshape(1)
    scales = np.float32(np.where(limits > 0, limits, 1.0) / 127)
    along = [1] * weights.ndim
    along[axis] = len(scales)
    data = np.clip(np.rint(weights / scales.astype(np.float64).reshape(along)), -127, 127).astype(np.int8)
    return Tensor(layer.name + "/weights", data.shape, "int8", scales, 0, axis, data)


def _bias(layer, bias, input_scale, weight_scales):
    scales = np.float32(input_scale * weight_scales)
    data = np.clip(np.rint(bias / scales.astype(np.float64)), -(1 << 31), (1 << 31) - 1).astype(np.int32)
    return Tensor(layer.name + "/bias", data.shape, "int32", scales, 0, 0, data)
