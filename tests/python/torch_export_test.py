"""Programs that torch.export writes here, quantised by PT2E or not, against PyTorch itself."""

import io
import sys
import unittest

import support
import numpy
import qplan

try:
    import torch

    # What PT2E's quantiser and version 8 of the archive's schema need.
    from torch.ao.quantization.quantize_pt2e import prepare_pt2e  # noqa: F401
    from torch.export import export_for_training  # noqa: F401
except ImportError as error:
    print(f"skipped, PyTorch 2.6 or later is needed: {error}")
    sys.exit(77)  # ctest's SKIP_RETURN_CODE

import qplan.torch

sys.path.insert(0, str(support.REPOSITORY / "tests" / "data" / "exported"))
import networks  # noqa: E402


def saved(program):
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    return buffer.getvalue()


def run(plan, x):
    with qplan.Session(plan) as session:
        return session.run(x)[0]


class TorchExportTest(unittest.TestCase):
    def test_networks(self):
        for name in networks.NAMES:
            with self.subTest(name):
                program, x, expected, scale = networks.exported(name)
                found = run(qplan.pack(saved(program)), x)
                if name in networks.DYNAMIC_NAMES:
                    numpy.testing.assert_allclose(found, expected, rtol=0, atol=0.01 * numpy.abs(expected).max())
                    continue
                if scale is None:
                    numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * numpy.abs(expected).max())
                    continue
                steps = numpy.rint(numpy.abs(found - expected) / scale)
                print(f"{name}: {int((steps != 0).sum())} of {steps.size} outputs differ, at most {int(steps.max())} steps")
                self.assertLessEqual(steps.max(), 1)

    def test_modules(self):
        for name, (module, shape) in networks.MODULES.items():
            with self.subTest(name):
                torch.manual_seed(1)
                module, x = module.eval(), torch.randn(shape)
                program = torch.export.export(module, (x,))
                expected = program.module()(x).detach().numpy()
                found = run(qplan.torch.pack(program), x.numpy())
                numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * numpy.abs(expected).max())

    def test_example_inputs_give_the_batch(self):
        program = networks.exported("small_float_batch")[0]
        one, three = qplan.torch.pack(program), qplan.torch.pack(program, torch.zeros((3, 3, 16, 16)))
        self.assertEqual([plan.inputs[0].shape[0] for plan in (one, three)], [1, 3])


if __name__ == "__main__":
    unittest.main(warnings="ignore")
