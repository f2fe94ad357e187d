"""The float network and its training: two separable residual blocks, 16 x 16 x 1 -> 10 classes.

The layer list is the one description of the network: the PyTorch module is built from it, and so is the quantised model.
"""
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Layer:
    name: str
    op: str                    # conv | depthwise | add | average_pool | reshape | fully_connected | softmax
    inputs: tuple              # names of layers; "image" is the network's input
    channels: int = 0          # of the output
    kernel: int = 1
    stride: int = 1
    relu: bool = False


LAYERS = (
    Layer("stem", "conv", ("image",), channels=24, kernel=3, stride=2, relu=True),
    Layer("block1/depthwise", "depthwise", ("stem",), channels=24, kernel=3, relu=True),
    Layer("block1/pointwise", "conv", ("block1/depthwise",), channels=24),
    Layer("block1/add", "add", ("stem", "block1/pointwise"), channels=24, relu=True),
    Layer("down/depthwise", "depthwise", ("block1/add",), channels=24, kernel=3, stride=2, relu=True),
    Layer("down/pointwise", "conv", ("down/depthwise",), channels=64, relu=True),
    Layer("block2/depthwise", "depthwise", ("down/pointwise",), channels=64, kernel=3, relu=True),
    Layer("block2/pointwise", "conv", ("block2/depthwise",), channels=64),
    Layer("block2/add", "add", ("down/pointwise", "block2/pointwise"), channels=64, relu=True),
    Layer("pool", "average_pool", ("block2/add",), channels=64, kernel=4, stride=4),
    Layer("flat", "reshape", ("pool",), channels=64),
    Layer("classes", "fully_connected", ("flat",), channels=10),
    Layer("probabilities", "softmax", ("classes",), channels=10),
)
CONVOLUTIONS = ("conv", "depthwise")


def same_padding(size, kernel, stride):
    """TensorFlow's SAME: (before, after); an odd total puts more after."""
    total = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def apply_layer(layer, inputs, weights, bias):
    """One layer in float, NCHW tensors."""
    x = inputs[0]
    if layer.op in CONVOLUTIONS:
        top, bottom = same_padding(x.shape[2], layer.kernel, layer.stride)
        left, right = same_padding(x.shape[3], layer.kernel, layer.stride)
        groups = x.shape[1] if layer.op == "depthwise" else 1
        x = functional.conv2d(functional.pad(x, (left, right, top, bottom)), weights, bias, stride=layer.stride,
                              groups=groups)
    elif layer.op == "add":
        x = x + inputs[1]
    elif layer.op == "average_pool":
        x = functional.avg_pool2d(x, layer.kernel, layer.stride)
    elif layer.op == "reshape":
        x = x.flatten(1)
    elif layer.op == "fully_connected":
        x = functional.linear(x, weights, bias)
    elif layer.op == "softmax":
        x = functional.softmax(x, dim=-1)
    return functional.relu(x) if layer.relu else x


class DigitsNet(nn.Module):
    """Convolutions carry a batch normalisation while training; fold() moves it into weights and bias."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterDict()
        self.bias = nn.ParameterDict()
        self.norms = nn.ModuleDict()
        channels = {"image": 1}
        for layer in LAYERS:
            channels[layer.name] = layer.channels
            shape = self.weights_shape(layer, channels[layer.inputs[0]])
            if shape is None:
                continue
            key = layer.name.replace("/", "_")
            fan_in = int(np.prod(shape[1:]))
            self.weights[key] = nn.Parameter(torch.randn(shape) * math.sqrt(2.0 / fan_in))
            if layer.op in CONVOLUTIONS:
                self.norms[key] = nn.BatchNorm2d(layer.channels)
            else:
                self.bias[key] = nn.Parameter(torch.zeros(layer.channels))

    @staticmethod
    def weights_shape(layer, channels_in):
        if layer.op == "conv":
            return (layer.channels, channels_in, layer.kernel, layer.kernel)
        if layer.op == "depthwise":
            return (layer.channels, 1, layer.kernel, layer.kernel)
        if layer.op == "fully_connected":
            return (layer.channels, channels_in)
        return None

    def forward(self, image):
        """Logits; the softmax belongs to the loss."""
        values = {"image": image}
        for layer in LAYERS[:-1]:
            key = layer.name.replace("/", "_")
            inputs = [values[name] for name in layer.inputs]
            if key in self.norms:
                plain = Layer(layer.name, layer.op, layer.inputs, layer.channels, layer.kernel, layer.stride)
                x = self.norms[key](apply_layer(plain, inputs, self.weights[key], None))
                values[layer.name] = functional.relu(x) if layer.relu else x
            else:
                weights = self.weights[key] if key in self.weights else None
                bias = self.bias[key] if key in self.bias else None
                values[layer.name] = apply_layer(layer, inputs, weights, bias)
        return values[LAYERS[-2].name]

    def fold(self):
        """{layer name: (weights, bias)} as float64 tensors, batch normalisation folded in."""
        folded = {}
        for layer in LAYERS:
            key = layer.name.replace("/", "_")
            if key in self.norms:
                norm = self.norms[key]
                scale = (norm.weight / torch.sqrt(norm.running_var + norm.eps)).detach().double()
                weights = self.weights[key].detach().double() * scale[:, None, None, None]
                folded[layer.name] = (weights, norm.bias.detach().double() - norm.running_mean.double() * scale)
            elif key in self.weights:
                folded[layer.name] = (self.weights[key].detach().double(), self.bias[key].detach().double())
        return folded


def run_folded(folded, images):
    """All values of the folded float network, {name: NCHW float64 tensor}."""
    values = {"image": images.double()}
    for layer in LAYERS:
        weights, bias = folded.get(layer.name, (None, None))
        values[layer.name] = apply_layer(layer, [values[name] for name in layer.inputs], weights, bias)
    return values


def augment(images, generator):
    """Small shifts, turns, scalings and contrast changes; images: [n, 1, h, w] in 0..1."""
    count = images.shape[0]

    def uniform(low, high):
        return low + (high - low) * torch.rand(count, generator=generator)

    angle, scale = uniform(-0.16, 0.16), uniform(0.9, 1.12)
    theta = torch.zeros(count, 2, 3)
    theta[:, 0, 0], theta[:, 0, 1] = torch.cos(angle) * scale, -torch.sin(angle) * scale
    theta[:, 1, 0], theta[:, 1, 1] = torch.sin(angle) * scale, torch.cos(angle) * scale
    theta[:, 0, 2], theta[:, 1, 2] = uniform(-0.12, 0.12), uniform(-0.12, 0.12)
    grid = functional.affine_grid(theta, list(images.shape), align_corners=False)
    moved = functional.grid_sample(images, grid, align_corners=False)
    return torch.clamp(moved * uniform(0.8, 1.0)[:, None, None, None], 0, 1)


def train(images, labels, epochs, log):
    """images: float32 [n, 1, 16, 16] in 0..1. Deterministic on one machine: one thread, fixed seeds."""
    torch.manual_seed(7)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    generator = torch.Generator().manual_seed(11)
    net = DigitsNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3, weight_decay=1e-4)
    batch = 64
    batches = math.ceil(len(images) / batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=8e-3, total_steps=epochs * batches)
    for epoch in range(epochs):
        net.train()
        order = torch.randperm(len(images), generator=generator)
        total = 0.0
        for begin in range(0, len(images), batch):
            chosen = order[begin:begin + batch]
            loss = functional.cross_entropy(net(augment(images[chosen], generator)), labels[chosen],
                                            label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss) * len(chosen)
        if epoch % 10 == 9:
            log(f"epoch {epoch + 1}: loss {total / len(images):.4f}")
    net.eval()
    return net
