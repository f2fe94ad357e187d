"""Networks that torch.export writes, quantised by PT2E or not, with an input and what PyTorch computes of it.

    python3 networks.py FOLDER [NAME ...]

For each network it writes <name>.pt2, and <name>.bin with the input and then the output as float32. Without names it
writes all. Needs PyTorch 2.6 or later; the files beside this one are those of PyTorch 2.6 (Debian 13).
"""

import pathlib
import sys
import warnings

import numpy
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  (the operators of Choices)
from torch import nn
from torch.nn import functional as F


def conv_bn(inputs, outputs, kernel=3, stride=1, groups=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)
    )


class InvertedResidual(nn.Module):
    """A block of MobileNet V2."""

    def __init__(self, inputs, outputs, stride, expand):
        super().__init__()
        hidden = inputs * expand
        self.expand = conv_bn(inputs, hidden, 1)
        self.depthwise = conv_bn(hidden, hidden, 3, stride, hidden)
        self.project = conv_bn(hidden, outputs, 1)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        y = F.relu6(self.expand(x))
        y = F.hardtanh(self.depthwise(y), 0.0, 6.0)
        y = self.project(y)
        return x + y if self.adds else y


class MobileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = conv_bn(3, 16, 3, 2)
        self.blocks = nn.Sequential(
            InvertedResidual(16, 16, 1, 2), InvertedResidual(16, 24, 2, 4), InvertedResidual(24, 24, 1, 4)
        )
        self.last = nn.Linear(24, 10)

    def forward(self, x):
        x = self.blocks(F.relu6(self.first(x)))
        x = F.adaptive_avg_pool2d(x, (1, 1))
        return self.last(torch.flatten(x, 1))


class BasicBlock(nn.Module):
    """A block of ResNet."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = conv_bn(inputs, outputs, 3, stride)
        self.second = conv_bn(outputs, outputs)
        self.shortcut = conv_bn(inputs, outputs, 1, stride) if stride != 1 else nn.Identity()

    def forward(self, x):
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = conv_bn(3, 16)
        self.blocks = nn.Sequential(BasicBlock(16, 16, 1), BasicBlock(16, 32, 2), BasicBlock(32, 32, 1))
        self.last = nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.first(x)), 3, 2, 1)
        x = self.blocks(x).mean([2, 3])
        return self.last(x)


class Pieces(nn.Module):
    """Operators that move elements, and activations that become tables."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, 1, 1)
        self.left = nn.Conv2d(4, 8, 1)
        self.right = nn.Conv2d(4, 8, 3, 2, 1, bias=False)
        self.last = nn.Linear(64, 6)

    def forward(self, x):
        x = F.hardswish(self.first(x))
        a, b = torch.split(x, 4, 1)
        a = F.avg_pool2d(F.leaky_relu(self.left(a), 0.1), 2)
        b = torch.sigmoid(self.right(b))
        x = torch.cat([a * b, b], 1)
        x = x.permute(0, 2, 3, 1).reshape(x.shape[0], -1, 64)
        return torch.tanh(self.last(x)).transpose(1, 2)


class Small(nn.Module):
    """The kinds of layers of MobileNet V2 in a file that is small."""

    def __init__(self):
        super().__init__()
        self.first = conv_bn(3, 8, 3, 2)
        self.depthwise = conv_bn(8, 8, groups=8)
        self.project = nn.Conv2d(8, 8, 1)
        self.last = nn.Linear(8, 5)

    def forward(self, x):
        x = F.relu6(self.first(x))
        x = x + self.project(F.relu(self.depthwise(x)))
        return self.last(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Dense(nn.Module):
    """Linear layers, which XNNPACK's quantiser quantises dynamically."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(24, 32)
        self.last = nn.Linear(32, 7, bias=False)

    def forward(self, x):
        return self.last(F.relu(self.first(x)))


class Choices(nn.Module):
    """What choose_qparams chooses for each row, and what the row's integers stand for."""

    def forward(self, x):
        ops = torch.ops.quantized_decomposed
        affine, symmetric = ops.choose_qparams.tensor, ops.choose_qparams_symmetric.tensor
        forms = [
            (affine, (-128, 127), torch.int8), (affine, (0, 127), torch.uint8),
            (symmetric, (-127, 127), torch.int8), (symmetric, (0, 255), torch.uint8),
        ]
        found = []
        for choose, (least, most), dtype in forms:
            for row in torch.unbind(x):
                scale, point = choose(row, least, most, 2**-12, dtype)
                integers = ops.quantize_per_tensor.tensor(row, scale, point, least, most, dtype)
                found.append(ops.dequantize_per_tensor.tensor(integers, scale, point, least, most, dtype))
        return torch.stack(found)

    @staticmethod
    def example():
        """Rows of both signs, of one, of zeros and of numbers whose scale is the least."""
        x = torch.randn((8, 24))
        x[1], x[2], x[3], x[4] = x[1].abs() + 1, -x[2].abs() - 0.5, 0.0, x[4] * 1e-3
        x[5], x[6] = x[5] * 1e4, x[6].abs() * 100
        x[6, 0] = -0.37
        return x


NETWORKS = {
    "small": Small, "mobilenet": MobileNet, "resnet": ResNet, "pieces": Pieces, "dense": Dense, "choices": Choices,
}
SHAPE = (2, 3, 32, 32)
SHAPES = {"small": (2, 3, 16, 16), "dense": (4, 3, 24), "choices": (8, 24)}


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


class Attention(nn.Module):
    """Self-attention of four heads."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.query, self.key, self.value, self.last = (nn.Linear(16, 16) for _ in range(4))

    def forward(self, x):
        batch, steps, features = x.shape
        y = self.norm(x)
        heads = [layer(y).view(batch, steps, 4, 4).transpose(1, 2) for layer in (self.query, self.key, self.value)]
        y = F.scaled_dot_product_attention(*heads)
        return x + self.last(y.transpose(1, 2).reshape(batch, steps, features))


class Sequence(nn.Module):
    """Recurrent layers: two of them, in both directions."""

    def __init__(self, kind, **options):
        super().__init__()
        self.layer = kind(6, 5, **options)
        width = 10 if self.layer.bidirectional else 5
        self.last = nn.Linear(width, 3)

    def forward(self, x):
        y, states = self.layer(x)
        states = states if isinstance(states, tuple) else (states,)
        return self.last(y).sum(2) + sum(state.mean() for state in states)


def in_place(x):
    y = x * 2
    y += 1
    y.relu_()
    a, b = y.chunk(2, 1)
    return torch.cat([a, F.silu(b, inplace=True)], 1)


def functions(x):
    y = torch.exp(-x.abs()) / (1 + x.pow(2)).sqrt() + torch.rsqrt(x.abs() + 1) * torch.log(x.abs() + 2)
    y = y + torch.erf(x) + torch.reciprocal(x.abs() + 3) + (x.abs() + 1) ** 1.5
    return y + torch.maximum(x, x * 2).clamp(min=-1).clamp(max=3)


def reductions(x):
    return torch.stack([x.sum((2, 3)), x.amax((2, 3)), x.amin((2, 3)), x.mean((2, 3))], 1)


def parts(x):
    return torch.cat([x.unbind(1)[i][:, None, 1:4:2, :5].expand(-1, 3, -1, -1) for i in range(3)], 1)


# Operators on float32 one beside the other: name -> (module, shape of its input).
IMAGE = (1, 4, 6, 8)
MODULES = {
    "transposed": (
        nn.Sequential(nn.ConvTranspose2d(4, 6, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose2d(6, 4, 2, 2, groups=2)),
        IMAGE,
    ),
    "transposed_uneven": (nn.ConvTranspose2d(4, 6, (3, 4), (1, 3), (2, 0), (0, 2), dilation=(2, 1)), IMAGE),
    "sequence": (
        nn.Sequential(
            nn.Conv1d(4, 6, 3, 2, 1), nn.BatchNorm1d(6), nn.GELU(), nn.Conv1d(6, 6, 5, padding="same"),
            nn.ConvTranspose1d(6, 3, 4, 2, 1),
        ),
        (1, 4, 16),
    ),
    "same_padding": (nn.Conv2d(4, 6, (2, 3), padding="same", dilation=(1, 2)), IMAGE),
    "normalisations": (
        nn.Sequential(nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.LayerNorm([4, 6, 8]), nn.LayerNorm(8)),
        IMAGE,
    ),
    "activations": (
        nn.Sequential(
            nn.SiLU(), nn.ELU(), nn.Hardswish(), nn.Hardsigmoid(), nn.GELU("tanh"), nn.Tanh(), nn.LeakyReLU(0.2),
            nn.Sigmoid(), nn.Softmax(1), nn.LogSoftmax(2),
        ),
        IMAGE,
    ),
    "functions": (Function(functions), IMAGE),
    "reductions": (Function(reductions), IMAGE),
    "sizes": (
        nn.Sequential(
            nn.Upsample(scale_factor=2, mode="bilinear"), nn.Upsample(size=(7, 9), mode="bilinear", align_corners=True),
            nn.Upsample(scale_factor=2),
        ),
        IMAGE,
    ),
    "shuffle": (nn.Sequential(nn.PixelShuffle(2), nn.Flatten(), nn.Unflatten(1, (2, -1))), IMAGE),
    "parts": (Function(parts), IMAGE),
    "products": (Function(lambda x: (x @ x.transpose(2, 3)) + torch.bmm(x[0], x[0].transpose(1, 2)).sum()), IMAGE),
    "attention": (Attention(), (1, 5, 16)),
    "transformer": (nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), (1, 5, 16)),
    "in_place": (Function(in_place), IMAGE),
    "lstm": (Sequence(nn.LSTM, num_layers=2, bidirectional=True, batch_first=True), (1, 7, 6)),
    "lstm_without_bias": (Sequence(nn.LSTM, bias=False), (7, 2, 6)),
    "gru": (Sequence(nn.GRU, num_layers=2, bidirectional=True), (7, 1, 6)),
    "gru_batch_first": (Sequence(nn.GRU, batch_first=True), (2, 7, 6)),
}


def with_statistics(network, shape):
    """Batch normalisation as after training: it has seen data."""
    network.train()
    for _ in range(2):
        network(torch.randn(shape))
    return network.eval()


def quantised(network, example, dynamic_shapes=None, is_dynamic=False):
    from torch.ao.quantization.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torch.ao.quantization.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    graph = torch.export.export_for_training(network, example, dynamic_shapes=dynamic_shapes).module()
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=is_dynamic)
    graph = prepare_pt2e(graph, XNNPACKQuantizer().set_global(config))
    for _ in range(4):
        graph(torch.randn(example[0].shape))
    return convert_pt2e(graph)


def output_scale(program):
    """The scale of the last dequantisation."""
    nodes = [n for n in program.graph.nodes if "dequantize_per_tensor" in str(n.target)]
    return float(nodes[-1].args[1])


def exported(name):
    """(program, input, output, scale of the output or None) of "<network>_<kind>"; the input has a batch of one."""
    network_name, kind = name.split("_", 1)
    shape = SHAPES.get(network_name, SHAPE)
    torch.manual_seed(3)
    network = with_statistics(NETWORKS[network_name](), shape)
    one = network.example() if network_name == "choices" else torch.randn((1, *shape[1:]))
    example, open_batch = (one,), None
    if kind.endswith("_batch"):
        example, open_batch = (torch.randn(shape),), ({0: torch.export.Dim("batch")},)
    if kind.startswith("int8") or kind.startswith("dynamic"):
        network = quantised(network, example, open_batch, kind.startswith("dynamic"))
    program = torch.export.export(network, example, dynamic_shapes=open_batch)
    with torch.no_grad():
        output = program.module()(one)
    scale = output_scale(program) if kind.startswith("int8") else None
    return program, one.numpy(), output.numpy(), scale


IMAGE_NETWORKS = ("small", "mobilenet", "resnet", "pieces")
NAMES = [f"{network}_{kind}" for network in IMAGE_NETWORKS for kind in ("float", "float_batch", "int8", "int8_batch")]
# Linear layers are quantised, in a network with others too. A number that is rounded the other way is a step off.
DYNAMIC_NAMES = ["dense_dynamic", "dense_dynamic_batch", "small_dynamic", "pieces_dynamic_batch"]
NAMES += ["choices_float", *DYNAMIC_NAMES]


def main(folder, names):
    warnings.simplefilter("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or NAMES:
        program, x, y, scale = exported(name)
        torch.export.save(program, folder / f"{name}.pt2")
        (folder / f"{name}.bin").write_bytes(x.tobytes() + numpy.ascontiguousarray(y).tobytes())
        print(name, "float32" if scale is None else f"output scale {scale!r}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
