"""qplan.torch: modules that PyTorch quantises here, against PyTorch itself."""

import io
import sys
import unittest

import support
import numpy
import qplan

try:
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)  # ctest's SKIP_RETURN_CODE

import qplan.torch

SHAPE = (1, 3, 8, 8)


class Excitation(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = torch.nn.AdaptiveAvgPool2d(1)
        self.squeeze = torch.nn.Conv2d(8, 4, 1)
        self.relu = torch.nn.ReLU()
        self.expand = torch.nn.Conv2d(4, 8, 1)
        self.gate = torch.nn.Hardsigmoid()
        self.sums = torch.ao.nn.quantized.FloatFunctional()

    def forward(self, x):
        return self.sums.mul(self.gate(self.expand(self.relu(self.squeeze(self.pool(x))))), x)


class Net(torch.nn.Module):
    """Most of what is imported; one shape of everything."""

    def __init__(self):
        super().__init__()
        self.quant = torch.ao.quantization.QuantStub()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.swish = torch.nn.Hardswish()
        self.excitation = Excitation()
        self.max_pool = torch.nn.MaxPool2d(3, 2, 1)
        self.grouped = torch.nn.Conv2d(8, 8, 3, padding=1, groups=4)
        self.relu = torch.nn.ReLU()
        self.sigmoid = torch.nn.Sigmoid()
        self.leaky = torch.nn.LeakyReLU(0.1)
        self.block = torch.nn.Sequential(
            torch.nn.Conv2d(8, 8, 1, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU()
        )
        self.sums = torch.ao.nn.quantized.FloatFunctional()
        self.joined = torch.ao.nn.quantized.FloatFunctional()
        self.avg_pool = torch.nn.AvgPool2d(2)
        self.linear = torch.nn.Linear(16, 5)
        self.dequant = torch.ao.quantization.DeQuantStub()

    def forward(self, x):
        x = self.excitation(self.swish(self.conv(self.quant(x))))
        x = self.relu(self.grouped(self.max_pool(x)))
        y = self.leaky(x)
        y = self.sums.add_relu(self.block(y), y)
        x = self.avg_pool(self.joined.cat([self.sigmoid(x), y], 1))
        return self.dequant(self.linear(x.mean([2, 3])))


def quantised():
    """The network, quantised with QNNPACK's settings (no reduced range), and calibrated with noise."""
    torch.manual_seed(7)
    torch.backends.quantized.engine = "qnnpack"
    net = Net().eval()
    net = torch.ao.quantization.fuse_modules(
        net, [["block.0", "block.1", "block.2"], ["excitation.squeeze", "excitation.relu"]]
    )
    net.qconfig = torch.ao.quantization.get_default_qconfig("qnnpack")
    torch.ao.quantization.prepare(net, inplace=True)
    for _ in range(4):
        net(torch.randn(SHAPE))
    return torch.ao.quantization.convert(net)


def saved(module):
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    return buffer.getvalue()


@unittest.skipUnless("qnnpack" in torch.backends.quantized.supported_engines, "torch has no quantised engine")
class TorchTest(unittest.TestCase):
    def setUp(self):
        self.module = quantised()
        self.example = torch.randn(SHAPE)

    def check_outputs(self, plan):
        step = self.module.linear.scale
        with qplan.Session(plan) as session:
            for seed in range(8):
                torch.manual_seed(seed)
                x = torch.randn(SHAPE)
                (found,) = session.run(x.numpy())
                expected = self.module(x).numpy()
                self.assertLessEqual(numpy.abs(found - expected).max(), 1.01 * step, f"seed {seed}")

    def test_module(self):
        plan = qplan.torch.pack(self.module, self.example)
        self.assertEqual([(i.name, i.shape) for i in plan.inputs], [("x", SHAPE)])
        self.check_outputs(plan)

    def test_every_form_gives_the_same_plan(self):
        traced = torch.jit.trace(self.module, self.example)
        scripted = torch.jit.script(self.module)
        frozen = torch.jit.freeze(traced.eval())
        plans = [qplan.torch.pack(m, self.example) for m in (self.module, traced, scripted, frozen)]
        plans += [qplan.pack(saved(m), input_types={"x": SHAPE}) for m in (traced, scripted, frozen)]
        digests = {plan.inspect()["content_digest"] for plan in plans}
        self.assertEqual(len(digests), 1)

    def test_wrong_arguments_are_explained(self):
        with self.assertRaisesRegex(qplan.Error, "expected a torch.nn.Module"):
            qplan.torch.pack(lambda x: x, self.example)
        with self.assertRaisesRegex(qplan.Error, "'x' is torch.float64, expected torch.float32"):
            qplan.torch.pack(torch.jit.freeze(torch.jit.trace(self.module, self.example).eval()), self.example.double())
        with self.assertRaisesRegex(qplan.Error, "--input-shape x="):
            qplan.pack(qplan.torch.archive(self.module, self.example)[0])

    def test_float_modules(self):
        module = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()).eval()
        plan = qplan.torch.pack(module, self.example)
        with qplan.Session(plan) as session, torch.no_grad():
            (found,) = session.run(self.example.numpy())
            numpy.testing.assert_allclose(found, module(self.example).numpy(), rtol=1e-5, atol=1e-6)

    def test_the_callers_module_keeps_its_mode(self):
        class Failing(torch.nn.Module):
            def forward(self, x):
                raise ValueError("no forward")

        def net(*more):
            layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Dropout(0.5), torch.nn.ReLU(), *more).train()
            layers[0].eval()  # as somebody would freeze a part
            return layers

        modes = lambda module: [part.training for part in module.modules()]
        plain, scripted, failing = net(), torch.jit.script(net()), net(Failing())
        for module in (plain, scripted, failing):
            before = modes(module)
            self.assertIn(True, before)
            self.assertIn(False, before)
            if module is failing:
                with self.assertRaisesRegex(ValueError, "no forward"):
                    qplan.torch.pack(module, self.example)
            else:
                plan = qplan.torch.pack(module, self.example)
                self.assertNotIn("drop", plan.disasm())
            self.assertEqual(modes(module), before)
        plain.eval()
        qplan.torch.pack(plain, self.example)
        self.assertEqual(set(modes(plain)), {False})

    def test_operators_that_are_not_imported_are_named(self):
        class Cumulative(torch.nn.Module):
            def forward(self, x):
                return torch.cummax(x, 1)[0]

        with self.assertRaisesRegex(qplan.Error, "aten::cummax"):
            qplan.torch.pack(Cumulative(), self.example)


if __name__ == "__main__":
    unittest.main()
