"""Recurrent layers as PyTorch exports them to ONNX (Debian 12: PyTorch 1.13.1), with PyTorch's outputs:
the oracle of tests/models/onnx_recurrent_test.cc.

usage: export.py OUT_DIR
Writes <name>.onnx and <name>.bin: the inputs and then the outputs, float32, in the order of the model.
"""
import pathlib
import sys

import numpy as np
import torch
from torch import nn


class Tagger(nn.Module):
    """A label for each step: two layers in both directions, the batch first."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(10, 3)

    def forward(self, x):
        return self.head(self.rnn(x)[0])


class Classifier(nn.Module):
    """One label for the sequence, from the state after the last step."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 9, num_layers=2, batch_first=True)
        self.head = nn.Linear(9, 3)

    def forward(self, x):
        return torch.softmax(self.head(self.rnn(x)[1][-1]), 1)


class Streaming(nn.Module):
    """The application keeps the states."""

    def __init__(self, layer):
        super().__init__()
        self.rnn = layer

    def forward(self, x, *states):
        y, after = self.rnn(x, states if len(states) == 2 else states[0])
        return (y, *after) if len(states) == 2 else (y, after)


MODELS = {
    "tagger": (Tagger, [(1, 7, 6)]),
    "classifier": (Classifier, [(1, 11, 4)]),
    "streaming_lstm": (lambda: Streaming(nn.LSTM(3, 8)), [(2, 1, 3), (1, 1, 8), (1, 1, 8)]),
    "streaming_gru": (lambda: Streaming(nn.GRU(3, 8, bidirectional=True)), [(2, 1, 3), (2, 1, 8)]),
}

out = pathlib.Path(sys.argv[1])
torch.manual_seed(17)
for name, (make, shapes) in MODELS.items():
    model = make().eval()
    inputs = tuple(torch.randn(shape) for shape in shapes)
    with torch.no_grad():
        outputs = model(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    torch.onnx.export(model, inputs, out / f"{name}.onnx", opset_version=14)
    arrays = [t.numpy().astype(np.float32) for t in inputs + outputs]
    (out / f"{name}.bin").write_bytes(b"".join(a.tobytes() for a in arrays))
