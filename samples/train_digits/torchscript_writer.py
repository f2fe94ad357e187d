"""Writes the digits network as a TorchScript archive, of the operators that PyTorch's static quantisation leaves."""
import io

import numpy as np
import torch
from torch.ao.nn import quantized as nnq
from torch.nn.intrinsic import quantized as intrinsic
from torch.nn import functional


class Digits(torch.nn.Module):
    def __init__(self, image, layers):
        super().__init__()
        self.image, self.layers = image, layers
        scale_of = {"image": image.scale}
        for index, layer in enumerate(layers):
            if layer.op in ("conv", "dense"):
                self.add_module(f"layer{index}", _module(layer, scale_of[layer.inputs[0]]))
            scale_of[layer.name] = layer.output.scale

    def forward(self, image):
        values = {"image": torch.quantize_per_tensor(image, self.image.scale, self.image.zero_point, torch.quint8)}
        of = {"image": self.image}
        for index, layer in enumerate(self.layers):
            x, scale, zero_point = values[layer.inputs[0]], layer.output.scale, layer.output.zero_point
            if layer.op == "conv":
                if layer.pads[0] != layer.pads[2]:  # modules pad both ends alike
                    top, left, bottom, right = layer.pads
                    before = of[layer.inputs[0]]
                    padded = functional.pad(x.dequantize(), (left, right, top, bottom))
                    x = torch.quantize_per_tensor(padded, before.scale, before.zero_point, torch.quint8)
                x = getattr(self, f"layer{index}")(x)
            elif layer.op == "dense":
                x = getattr(self, f"layer{index}")(x)
            elif layer.op == "add":
                x = torch.ops.quantized.add_relu(x, values[layer.inputs[1]], scale, zero_point)
            elif layer.op == "pool":
                x = functional.avg_pool2d(x, layer.kernel)
            elif layer.op == "flatten":
                x = torch.flatten(x, 1)
            else:
                x = torch.quantize_per_tensor(torch.softmax(x.dequantize(), 1), scale, zero_point, torch.quint8)
            values[layer.name], of[layer.name] = x, layer.output
        return x.dequantize()


def _module(layer, input_scale):
    scales = torch.from_numpy(np.broadcast_to(layer.scales, len(layer.weights)).astype(np.float64))
    zeros = torch.zeros(len(scales), dtype=torch.int64)
    integers = torch.from_numpy(layer.weights.copy())
    bias = torch.from_numpy((layer.bias * (np.float32(input_scale) * layer.scales).astype(np.float64)).astype(np.float32))
    if layer.op == "dense":
        module = nnq.Linear(layer.weights.shape[1], layer.weights.shape[0])
        weights = torch._make_per_tensor_quantized_tensor(integers, float(layer.scales[0]), 0)
    else:
        kind = intrinsic.ConvReLU2d if layer.relu else nnq.Conv2d
        pads = (0, 0) if layer.pads[0] != layer.pads[2] else layer.pads[:2]
        module = kind(layer.weights.shape[1] * layer.groups, layer.weights.shape[0], layer.kernel, layer.stride, pads,
                      groups=layer.groups)
        weights = torch._make_per_channel_quantized_tensor(integers, scales, zeros, 0)
    module.set_weight_bias(weights, bias)
    module.scale, module.zero_point = layer.output.scale, layer.output.zero_point
    return module


def write(image, shape, layers):
    """The file's bytes."""
    torch.backends.quantized.engine = "qnnpack"
    module = Digits(image, layers).eval()
    with torch.no_grad():
        traced = torch.jit.freeze(torch.jit.trace(module, torch.zeros(shape)))
    buffer = io.BytesIO()
    torch.jit.save(traced, buffer)
    return buffer.getvalue()
