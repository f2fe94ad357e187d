"""Operators of TorchScript archives, traced and frozen, against PyTorch itself."""

import io
import sys
import typing
import unittest
import warnings

import support  # noqa: F401
import numpy
import qplan

try:
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)  # ctest's SKIP_RETURN_CODE

import qplan.torch

F = torch.nn.functional
warnings.simplefilter("ignore")


class Pair(typing.NamedTuple):
    out: torch.Tensor
    aux: torch.Tensor


class Called(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def archives(module, x):
    """The module traced, as it is and frozen."""
    traced = torch.jit.trace(module.eval(), x, check_trace=False, strict=False)
    for script in (traced, torch.jit.freeze(traced)):
        buffer = io.BytesIO()
        torch.jit.save(script, buffer)
        name = script.forward.schema.arguments[1].name
        yield buffer.getvalue(), name


def results(module, x):
    """What qplan computes, of each archive: lists of arrays."""
    for data, name in archives(module, x):
        plan = qplan.pack(data, input_types={name: (tuple(x.shape), x.numpy().dtype)})
        with qplan.Session(plan) as session:
            yield session.run(x.numpy())


class Operators(unittest.TestCase):
    def check(self, module, x, rtol=1e-5):
        if not isinstance(module, torch.nn.Module):
            module = Called(module)
        with torch.no_grad():
            expected = module.eval()(x)
            found = list(results(module, x))
        expected = [e.numpy() for e in (expected if isinstance(expected, tuple) else [expected])]
        for arrays in found:
            self.assertEqual(len(arrays), len(expected))
            for array, wanted in zip(arrays, expected):
                self.assertEqual((array.dtype, array.shape), (wanted.dtype, wanted.shape))
                if wanted.dtype == numpy.float32:
                    most = numpy.abs(wanted[numpy.isfinite(wanted)]).max(initial=0)
                    numpy.testing.assert_allclose(array, wanted, rtol=rtol, atol=rtol * most)
                else:
                    numpy.testing.assert_array_equal(array, wanted)

    def refuse(self, module, x, message):
        if not isinstance(module, torch.nn.Module):
            module = Called(module)
        with self.assertRaisesRegex(qplan.Error, message):
            next(results(module, x))


class FloatOperators(Operators):
    def setUp(self):
        torch.manual_seed(3)
        self.sequence = torch.randn(2, 6, 12)
        self.image = torch.randn(2, 6, 8, 10)

    def test_positions_of_largest_and_smallest_elements(self):
        ties = torch.randint(0, 3, (2, 6, 8, 10)).float()
        for data in (self.image, ties):
            for name in ("argmax", "argmin"):
                for arguments in ((1,), (-1, True), (2,), (0, True)):
                    with self.subTest(name, arguments=arguments):
                        self.check(lambda x: getattr(x, name)(*arguments), data)
        self.check(lambda x: x.argmax(), self.image)
        self.check(lambda x: x.argmax(None, True), self.image)
        self.check(lambda x: (x * 2, x.argmin(1)), self.image)

    def test_prelu(self):
        for parameters in (1, 6):
            module = torch.nn.PReLU(parameters)
            with torch.no_grad():
                module.weight.copy_(torch.linspace(-0.5, 1.5, parameters))
            for data in (self.image, self.sequence, self.sequence[:, :, 0]):
                self.check(module, data)

    def test_softplus_and_mish(self):
        wide = self.image * 20
        for module in (torch.nn.Softplus(), torch.nn.Softplus(2.5), torch.nn.Softplus(0.5, 3), torch.nn.Mish()):
            self.check(module, wide)
            self.check(module, self.sequence)

    def test_other_activations(self):
        for module in (torch.nn.SELU(), torch.nn.LogSigmoid(), torch.nn.Dropout2d()):
            with self.subTest(str(module)):
                self.check(module, self.image)
        self.check(lambda x: (x * 2).tanh_() + x.square(), self.image)
        self.check(lambda x: torch.unsafe_chunk(x, 2, 1), self.image)

    def test_sums_and_differences_with_a_factor(self):
        row = torch.randn(10)
        self.check(lambda x: 2.5 - x, self.image)
        self.check(lambda x: torch.rsub(x, row, alpha=0.75), self.image)
        self.check(lambda x: torch.rsub(x, 3, alpha=2), self.image)
        for name in ("add", "sub"):
            self.check(lambda x: getattr(torch, name)(x, row, alpha=3), self.image)
            self.check(lambda x: getattr(torch, name)(x, x * x, alpha=-0.5), self.image)
            self.check(lambda x: getattr(torch, name)(x, 2, alpha=3), self.image)
            self.check(lambda x: getattr(x * 1, name + "_")(row, alpha=3), self.image)

    def test_pools_of_sequences_and_of_data_without_a_batch(self):
        for module in (
            torch.nn.MaxPool1d(2),
            torch.nn.MaxPool1d(3, 2, 1),
            torch.nn.MaxPool1d(5, 4, ceil_mode=True),
            torch.nn.AvgPool1d(2),
            torch.nn.AvgPool1d(3, 2, 1),
            torch.nn.AvgPool1d(3, 2, 1, count_include_pad=False),
            torch.nn.AvgPool1d(5, 4, 2, ceil_mode=True),
            torch.nn.AdaptiveAvgPool1d(1),
            torch.nn.AdaptiveAvgPool1d(4),
        ):
            with self.subTest(str(module)):
                self.check(module, self.sequence)
                self.check(module, self.sequence[0])
        for module in (torch.nn.MaxPool2d(3, 2, 1), torch.nn.AvgPool2d(2), torch.nn.AdaptiveAvgPool2d(2)):
            with self.subTest(str(module)):
                self.check(module, self.image[0])

    def test_padding_same_and_valid(self):
        for padding in ("same", "valid"):
            for kernel, dilation in ((3, 1), (4, 1), (3, 2), (2, 3)):
                with self.subTest(padding, kernel=kernel, dilation=dilation):
                    self.check(torch.nn.Conv1d(6, 4, kernel, padding=padding, dilation=dilation), self.sequence)
                    self.check(torch.nn.Conv2d(6, 4, kernel, padding=padding, dilation=dilation), self.image)
        self.check(torch.nn.Conv2d(6, 6, 3, padding="same", groups=6, bias=False), self.image)

    def test_repeated_and_turned_elements(self):
        column = torch.randn(6, 1, 1)
        self.check(lambda x: x.flip(-1), self.image)
        self.check(lambda x: x.flip([1, 3]), self.image)
        self.check(lambda x: x.repeat(1, 2, 1, 3), self.image)
        self.check(lambda x: x.repeat(2, 1, 2, 1), self.sequence)
        self.check(lambda x: x[:, :1].expand_as(x) * x, self.image)
        self.check(lambda x: column.expand_as(x) + x, self.image)
        self.check(lambda x: column.repeat(1, 8, 10) + x, self.image)
        self.check(lambda x: x[:1, :1, :1, :1].expand(3, 4, 5, 2), self.image)

    def test_choices_by_a_condition(self):
        mask = torch.rand(8, 10) > 0.5
        row = torch.randn(10)
        self.check(lambda x: torch.where(mask, x, row), self.image)
        self.check(lambda x: torch.where(x > 0.1, x, x * 2), self.image)
        self.check(lambda x: torch.where(x >= row, x, torch.zeros(())), self.image)
        self.check(lambda x: x.masked_fill(mask, -1.5), self.image)
        self.check(lambda x: torch.softmax(x.masked_fill(mask, float("-inf")), -1), self.image)
        self.check(lambda x: (x * 2).masked_fill_(~mask, 3), self.image)
        self.check(lambda x: x.masked_fill(x < row, 0), self.image)
        self.refuse(lambda x: torch.where(x > 0)[0], self.image, "aten::where with a condition alone")

    def test_outputs_of_dicts_and_named_tuples(self):
        class Dicts(torch.nn.Module):
            def forward(self, x):
                results = {"out": x * 2}
                results["aux"] = x + 1
                return results

        class Named(torch.nn.Module):
            def forward(self, x):
                return Pair(x * 2, x + 1)

        x = self.sequence
        scripted = [torch.jit.script(module.eval()) for module in (Dicts(), Named())]
        for script in scripted + [torch.jit.freeze(script) for script in scripted]:
            buffer = io.BytesIO()
            torch.jit.save(script, buffer)
            plan = qplan.pack(buffer.getvalue(), input_types={"x": tuple(x.shape)})
            self.assertEqual([tensor.name for tensor in plan.outputs], ["out", "aux"])
            with qplan.Session(plan) as session:
                found = session.run(x.numpy())
            for array, expected in zip(found, (x * 2, x + 1)):
                numpy.testing.assert_array_equal(array, expected.numpy())
        plan = qplan.torch.pack(Dicts(), x)
        self.assertEqual([tensor.name for tensor in plan.outputs], ["out", "aux"])

    def test_refusals_say_what_to_do(self):
        class Loop(torch.nn.Module):
            def forward(self, x):
                while bool(x.sum() > 0):
                    x = x - 1
                return x

        def packed(script):
            buffer = io.BytesIO()
            torch.jit.save(script, buffer)
            return qplan.pack(buffer.getvalue(), input_types={script.forward.schema.arguments[1].name: (1, 3, 8, 8)})

        with self.assertRaisesRegex(qplan.Error, "control flow.*\n.*trace it"):
            packed(torch.jit.script(Loop().eval()))
        module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).eval()
        traced = torch.jit.trace(module, torch.randn(1, 3, 8, 8))
        with self.assertRaisesRegex(qplan.Error, "optimize_for_inference"):
            packed(torch.jit.optimize_for_inference(traced))

    def test_comparisons(self):
        data = (self.image * 2).round()
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            with self.subTest(name):
                self.check(lambda x: getattr(x, name)(1), data)
                self.check(lambda x: getattr(x, name)(x.flip(0)), data)
                self.check(lambda x: getattr(x, name)(0.5).float() + x, data)
        self.check(lambda x: (x > 0) * x, data)

    def test_integers(self):
        for dtype in (torch.int64, torch.int32):
            x = torch.randint(-50, 50, (3, 4, 5), dtype=dtype)
            for name in ("sum", "prod", "amax", "amin"):
                with self.subTest(name, dtype=dtype):
                    self.check(lambda x: getattr(x, name)(1), x)
                    self.check(lambda x: getattr(x, name)(-1, keepdim=True), x)
            self.check(lambda x: x.sum(), x)
            self.check(lambda x: x.sum((0, 2)), x)
            self.check(lambda x: x + 3 * x - x.flip(0), x)
            self.check(lambda x: 7 - x, x)
            self.check(lambda x: torch.maximum(x, x.flip(1)), x)
            for mode in ("floor", "trunc"):
                self.check(lambda x: torch.div(x, 7, rounding_mode=mode), x)
                self.check(lambda x: torch.div(x, x.flip(1) * 2 + 1, rounding_mode=mode), x)
            for name in ("eq", "ne", "lt", "le", "gt", "ge"):
                self.check(lambda x: getattr(x, name)(4), x)
                self.check(lambda x: getattr(x, name)(x.flip(0)), x)
        large = torch.full((2, 3), 2**40 + 1)
        self.check(lambda x: (x.sum(1), x.prod(1), x // 3), large)
        self.refuse(lambda x: torch.add(x, x, alpha=2), large, "integers and a factor")
        self.refuse(lambda x: x * 0.5, large, "int64 tensors")


@unittest.skipUnless("qnnpack" in torch.backends.quantized.supported_engines, "torch has no quantised engine")
class QuantisedOperators(Operators):
    """Modules that end with a quantised tensor, whose integers must be PyTorch's."""

    def setUp(self):
        torch.manual_seed(4)
        torch.backends.quantized.engine = "qnnpack"

    def quantised(self, function, scale=0.05, zero_point=117, dtype=torch.quint8):
        return lambda x: function(torch.quantize_per_tensor(x, scale, zero_point, dtype))

    def every_integer(self, scale, zero_point, dtype):
        integers = torch.arange(256).reshape(1, 2, 8, 16) + torch.iinfo(dtype).min
        return (integers - zero_point).float() * scale

    def check_integers(self, function, scale, zero_point, dtype, data=None):
        x = self.every_integer(scale, zero_point, dtype) if data is None else data
        module = Called(self.quantised(function, scale, zero_point, dtype))
        with torch.no_grad():
            expected = module(x)
            self.assertTrue(expected.is_quantized)
            for (array,) in results(module, x):
                numpy.testing.assert_array_equal(array, expected.int_repr().numpy())
            # Its scale and zero point are what comes out of dequantize.
            module = Called(lambda x: self.quantised(function, scale, zero_point, dtype)(x).dequantize())
            for (array,) in results(module, x):
                numpy.testing.assert_array_equal(array, module(x).numpy())

    def test_sums_and_products_with_a_number(self):
        # 0.1 is no number of float32: 0.75 / 0.1 is half way between two integers.
        for dtype, zero_point in ((torch.quint8, 117), (torch.quint8, 3), (torch.qint8, -7), (torch.qint8, 100)):
            for number in (0.75, -0.75, 3, -3, 9.9, -11, 0.0, 150.0, -150.0):
                for name in ("add_scalar", "mul_scalar", "add_scalar_relu", "mul_scalar_relu", "add", "mul"):
                    with self.subTest(name, dtype=dtype, zero_point=zero_point, number=number):
                        operator = getattr(torch.ops.quantized, name)
                        self.check_integers(lambda q: operator(q, number), 0.1, zero_point, dtype)

    def test_numbers_one_after_the_other(self):
        for scale in (0.1, 0.0234):
            self.check_integers(
                lambda q: torch.ops.quantized.add_scalar(
                    torch.ops.quantized.mul_scalar(torch.ops.quantized.mul_scalar(q, 0.7), -1.3), 0.35
                ),
                scale,
                99,
                torch.quint8,
            )

    def test_batch_normalisation(self):
        for rank, name in ((4, "batch_norm2d"), (4, "batch_norm2d_relu"), (3, "batch_norm1d"), (4, "batch_norm")):
            for seed in range(6):
                torch.manual_seed(seed)
                channels, dtype = 32, (torch.quint8, torch.qint8)[seed % 2]
                weight, bias, mean = torch.randn(3, channels).unbind(0)
                variance = torch.rand(channels) + 0.01
                scale, zero_point = 0.01 + float(torch.rand(1)) * 0.1, int(torch.randint(0, 100, ()))
                data = self.every_integer(scale, zero_point, dtype).reshape(1, 1, 16, 16).repeat(1, channels, 1, 1)
                with self.subTest(name, seed=seed):
                    operator = getattr(torch.ops.quantized, name)
                    self.check_integers(
                        lambda q: operator(q, weight, bias, mean, variance, 1e-5, 0.043, 31),
                        scale,
                        zero_point,
                        dtype,
                        data if rank == 4 else data[:, :, :, 0],
                    )

    def test_convolutions_of_sequences(self):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.quant = torch.ao.quantization.QuantStub()
                self.first = torch.nn.Conv1d(4, 8, 3, stride=2, padding=1)
                self.relu = torch.nn.ReLU()
                self.pool = torch.nn.MaxPool1d(2)
                self.second = torch.nn.Conv1d(8, 6, 2, dilation=2, groups=2, bias=False)

            def forward(self, x):
                return self.second(self.pool(self.relu(self.first(self.quant(x)))))

        net = torch.ao.quantization.fuse_modules(Net().eval(), [["first", "relu"]])
        net.qconfig = torch.ao.quantization.get_default_qconfig("qnnpack")
        torch.ao.quantization.prepare(net, inplace=True)
        for _ in range(4):
            net(torch.randn(1, 4, 30))
        net = torch.ao.quantization.convert(net)
        x = torch.randn(1, 4, 30)
        for (array,) in results(net, x):
            numpy.testing.assert_array_equal(array, net(x).int_repr().numpy())
        buffer = io.BytesIO()
        torch.jit.save(torch.jit.script(net), buffer)
        with qplan.Session(qplan.pack(buffer.getvalue(), input_types={"x": tuple(x.shape)})) as session:
            numpy.testing.assert_array_equal(session.run(x.numpy())[0], net(x).int_repr().numpy())

    def test_bilinear_interpolation(self):
        def to(sizes, **options):
            return lambda q: F.interpolate(q, sizes, mode="bilinear", **options)

        for dtype, zero_point in ((torch.quint8, 117), (torch.quint8, 118), (torch.qint8, -7)):
            for layout in (torch.contiguous_format, torch.channels_last):
                for height, width in ((8, 10), (3, 5)):
                    data = (torch.rand(2, 8, height, width) * 12.7).contiguous(memory_format=layout)
                    for function in (
                        to((2 * height, 2 * width)),
                        to((4 * height, width)),
                        to((8 * height, 16 * width)),
                        to((height, width)),
                        to((2 * height - 1, 2 * width - 1), align_corners=True),
                        lambda q: F.interpolate(q, scale_factor=2, mode="bilinear"),
                    ):
                        self.check_integers(function, 0.05, zero_point, dtype, data)
            halves = torch.rand(1, 2, 8, 10) * 12.7
            self.check_integers(to((4, 5)), 0.05, zero_point, dtype, halves)
        self.refuse(self.quantised(to((12, 15))), torch.rand(1, 2, 8, 10), "from 8 to 12 elements, where kernels")

    def test_turned_and_repeated_tensors(self):
        for function in (lambda q: q.flip([1, 3]), lambda q: q.repeat(1, 2, 1, 1)):
            self.check_integers(function, 0.05, 11, torch.quint8)


if __name__ == "__main__":
    unittest.main()
