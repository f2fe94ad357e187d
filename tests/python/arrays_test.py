"""Arrays that the C API cannot read where they are, or must not: strided, of other byte orders, masked; and booleans."""

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


class Masks(unittest.TestCase):
    def setUp(self):
        self.plan = qplan.pack(add_of((2, 3)))
        self.a = numpy.ones((2, 3), numpy.float32)
        self.masked = numpy.ma.masked_array(self.a, mask=[[0, 1, 0], [0, 0, 0]])

    def test_masked_elements_are_refused(self):
        of_array = Pass("of_array", run=lambda pre, post: post.constant(self.masked))
        bound = self.plan.inputs[0].empty()
        with qplan.Session(self.plan) as session, qplan.Session(self.plan) as other:
            other.bind("input", 0, bound)
            for call in (
                lambda: session.run(self.masked, self.a),
                lambda: session.run(self.a, self.masked, tensors=all),
                lambda: session.run({"a": self.masked, "b": self.a}),
                lambda: session.run(self.a, self.a, out=self.masked),
                lambda: session.run({"a": self.a, "b": self.a}, out=[self.masked]),
                lambda: session.run_batch(self.a, self.masked),
                lambda: session.run_batch(self.a, self.a, out=self.masked),
                lambda: session.bind("input", 0, self.masked),
                lambda: session.bind("output", 0, self.masked),
                lambda: other.run(numpy.ma.masked_array(bound, mask=self.masked.mask), self.a),
                lambda: qplan.pack(add_of((2, 3)), bindings={"b": self.masked}),
                lambda: session.inputs[0].quantize(self.masked),
            ):
                with self.assertRaisesRegex(ValueError, "has masked elements; .*filled"):
                    call()
            with self.assertRaises(qplan.Error) as caught:
                qplan.pack(add_of((2, 3)), passes=[of_array])
            self.assertIsInstance(caught.exception.__cause__, ValueError)

    def test_masked_arrays_without_masked_elements_are_arrays(self):
        whole = numpy.ma.masked_array(self.a, mask=False)
        with qplan.Session(self.plan) as session:
            numpy.testing.assert_array_equal(session.run(whole, self.a)[0], 2 * self.a)
            numpy.testing.assert_array_equal(session.run_batch(whole, whole)[0], 2 * self.a)


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


class Booleans(unittest.TestCase):
    """Relay's bool, a byte that is 0 or 1, is NumPy's."""

    def setUp(self):
        generator = numpy.random.default_rng(3)
        self.flags = generator.random((4, 37)) < 0.5
        self.x, self.y = (generator.uniform(-1, 1, (4, 37)).astype(numpy.float32) for _ in range(2))

    def pack(self, text, **options):
        """Packs an expression of %flags, %x and %y."""
        names = [name for name in ("flags", "x", "y") if f"%{name}" in text]
        types = [f"%{name}: Tensor[(4, 37), {'bool' if name == 'flags' else 'float32'}]" for name in names]
        return qplan.pack(f"def @main({', '.join(types)}) {{ {text} }}".encode(), **options)

    def test_outputs(self):
        with qplan.Session(self.pack("less(%x, %y)")) as session:
            self.assertEqual(session.plan.outputs[0].dtype, numpy.bool_)
            self.assertEqual(str(session.plan.outputs[0].empty().dtype), "bool")
            out = numpy.zeros((4, 37), bool)
            for found in (
                session.run(self.x, self.y)[0],
                session.run({"x": self.x, "y": self.y})[0],
                session.run(self.x, self.y, out=out)[0],
                session.run_batch(self.x, self.y)[0],
                session.outputs[0].array,
            ):
                self.assertEqual(found.dtype, numpy.bool_)
                numpy.testing.assert_array_equal(found, self.x < self.y)
            with self.assertRaisesRegex(qplan.Error, "out: output 0: dtype is uint8, expected bool"):
                session.run(self.x, self.y, out=out.view(numpy.uint8))

    def test_inputs(self):
        plan = self.pack("where(%flags, %x, %y)")
        expected = numpy.where(self.flags, self.x, self.y)
        with qplan.Session(plan) as session:
            self.assertEqual(session.inputs[0].dtype, numpy.bool_)
            for found in (
                session.run(self.flags, self.x, self.y)[0],
                session.run({"flags": self.flags[::-1][::-1].tolist(), "x": self.x, "y": self.y})[0],
                session.run_batch(self.flags, self.x, self.y)[0],
            ):
                numpy.testing.assert_array_equal(found, expected)
            bound = plan.inputs[0].empty()
            bound[...] = self.flags
            session.bind("input", 0, bound)
            numpy.testing.assert_array_equal(session.run(bound, self.x, self.y)[0], expected)
            with self.assertRaisesRegex(qplan.Error, "is not quantised"):
                session.inputs[0].quantize([1.0])
        flags = qplan.random_inputs(plan)[0]
        self.assertEqual((flags.dtype, set(flags.ravel().tolist())), (numpy.bool_, {False, True}))
        self.assertTrue(qplan.check(plan))

    def test_tensors_inside(self):
        with qplan.Session(self.pack('where(less(%x, %y, name="smaller"), %x, add(%y, %y))', fuse="off")) as session:
            outputs, tensors = session.run(self.x, self.y, tensors=all)
            (flags,) = [tensor for tensor in tensors.values() if tensor.dtype == numpy.bool_]
            numpy.testing.assert_array_equal(flags, self.x < self.y)
            numpy.testing.assert_array_equal(outputs[0], numpy.where(self.x < self.y, self.x, self.y + self.y))

    def test_bindings_and_constants(self):
        plan = self.pack("where(%flags, %x, %y)", bindings={"flags": self.flags})
        expected = numpy.where(self.flags, self.x, self.y)
        with qplan.Session(plan) as session:
            numpy.testing.assert_array_equal(session.run(self.x, self.y)[0], expected)
        seen = []

        @qplan.rewrite(op("where")(any_value().dtype("bool").as_("flags"), any_value().as_("x"), any_value().as_("y")))
        def with_constant(pre, post, matches):
            seen.append(matches["flags"].dtype)
            if matches["flags"].is_constant:
                seen.append(matches["flags"].array)
                return None
            return post.call("where", post.constant(self.flags), post[matches["x"]], post[matches["y"]])

        with qplan.Session(self.pack("where(%flags, %x, %y)", passes=[with_constant])) as session:
            inputs = {"flags": ~self.flags, "x": self.x, "y": self.y}
            names = [info.name for info in session.plan.inputs]
            numpy.testing.assert_array_equal(session.run({name: inputs[name] for name in names})[0], expected)
        self.assertEqual(seen[0], numpy.bool_)
        numpy.testing.assert_array_equal(seen[-1], self.flags)


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
