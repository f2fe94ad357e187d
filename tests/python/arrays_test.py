"""Arrays that the C API cannot read where they are, or must not: strided, of other byte orders, masked."""

import gc
import unittest
import weakref

from support import numpy, qplan
from qplan._tensor import Tensor
from qplan.passes import Pass, any_value, op

LARGE = (2900, 2900)  # float32: above 32 MB, so that memory which is freed goes back to the system


def add_of(shape):
    """Packs c = a + b of float32."""
    text = "#[version = \"0.0.5\"]\ndef @main(%a: Tensor[({0}), float32], %b: Tensor[({0}), float32]) {{ add(%a, %b) }}\n"
    return text.format(", ".join(map(str, shape))).encode()


def record_field(shape):
    """Ones whose strides are no multiples of their size."""
    record = numpy.zeros(shape, numpy.dtype([("tag", "u1"), ("value", "<f4")]))
    record["value"] = 1
    return record["value"]


class NoArray(unittest.TestCase):
    def test_none_is_no_input(self):
        a = numpy.ones((2, 3), numpy.float32)
        with qplan.Session(qplan.pack(add_of(a.shape))) as session:
            session.run(5 * a, 7 * a)
            calls = [
                lambda: session.run(None, a),
                lambda: session.run(a, None),
                lambda: session.run({"a": None, "b": a}),
                lambda: session.run_batch(None, a),
                lambda: session.run(None, a, tensors=all),
            ]
            for call in calls:
                with self.assertRaisesRegex(TypeError, "input [01] '[ab]' is None, expected an array"):
                    call()
            bound = session.plan.inputs[0].empty()
            bound[...] = 3
            session.bind("input", 0, bound)
            with self.assertRaisesRegex(TypeError, "input 0 'a' is None"):
                session.run(None, a)
            numpy.testing.assert_array_equal(session.run(bound, a)[0], bound + a)


class OtherByteOrders(unittest.TestCase):
    """The bytes of these would be read as those of other numbers."""

    def setUp(self):
        text = "def @main(%a: Tensor[(4), {0}], %b: Tensor[(4), {0}]) {{ {1} }}"
        add16 = "qnn.add(%a, %b, 1f, 0, 1f, 0, 1f, 0)"
        self.models = {
            ">f4": text.format("float32", "add(%a, %b)").encode(),
            ">i2": text.format("int16", add16).encode(),
        }

    def test_are_refused_by_sessions(self):
        for dtype, model in self.models.items():
            with qplan.Session(qplan.pack(model)) as session:
                array = session.plan.inputs[0].empty().view(dtype)
                array[...] = 1
                out = session.plan.outputs[0].empty().view(dtype)
                for call in (lambda: session.run(array, array), lambda: session.run_batch(array, array)):
                    with self.assertRaisesRegex(qplan.Error, f"dtype is {dtype}"):
                        call()
                native = array.astype(array.dtype.newbyteorder("="))
                for call in (session.run, session.run_batch):
                    with self.assertRaisesRegex(qplan.Error, f"dtype is {dtype}"):
                        call(native, native, out=out)
                for direction, other in (("input", array), ("output", out)):
                    with self.assertRaisesRegex(TypeError, f"dtype {dtype} is not of this machine's byte order"):
                        session.bind(direction, 0, other)
                numpy.testing.assert_array_equal(session.run(native, native)[0], native + native)
                with self.assertRaisesRegex(TypeError, "byte order"):
                    session.buffer((4,), dtype)

    def test_are_refused_by_the_packer(self):
        for dtype, model in self.models.items():
            array = numpy.ones(4, dtype)
            with self.assertRaisesRegex(TypeError, "byte order"):
                qplan.pack(model, bindings={"b": array})
            with self.assertRaisesRegex(TypeError, "byte order"):
                qplan.pack(model, input_types={"b": ((4,), dtype)})

            of_array = Pass("of_array", run=lambda pre, post: post.constant(array))
            with self.assertRaises(qplan.Error) as caught:
                qplan.pack(model, passes=[of_array])
            self.assertIsInstance(caught.exception.__cause__, TypeError)
            self.assertIn("byte order", str(caught.exception.__cause__))


class RecordFields(unittest.TestCase):
    def test_a_struct_keeps_the_array_that_it_points_into(self):
        for array in (record_field((3, 4)), numpy.ones(4, numpy.float32)):
            tensor = Tensor(array)
            alive, struct = weakref.ref(tensor._array), tensor.struct
            del array, tensor
            gc.collect()
            self.assertIsNotNone(alive())
            self.assertTrue(struct.data)

    def test_inputs_by_name(self):
        with qplan.Session(qplan.pack(add_of(LARGE))) as session:
            (found,) = session.run({"a": record_field(LARGE), "b": numpy.full(LARGE, 2, numpy.float32)})
            self.assertTrue((found == 3).all())

    def test_constants_of_passes(self):
        for array in (record_field(LARGE), numpy.full((3, 4), 1.5, numpy.float32)):

            @qplan.rewrite(op("add")(any_value().as_("x"), any_value().as_("y")))
            def subtract_one(pre, post, matches):
                constant = post.constant(array)
                return post.call("subtract", post[matches["x"]], constant)

            shape = array.shape
            with qplan.Session(qplan.pack(add_of(shape), passes=[subtract_one])) as session:
                (found,) = session.run(*[numpy.full(shape, 5, numpy.float32)] * 2)
                numpy.testing.assert_array_equal(found[0, :2], 5 - array[0, :2])
                self.assertTrue((found == found[0, 0]).all())


if __name__ == "__main__":
    unittest.main()
