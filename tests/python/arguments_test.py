"""Texts, lists and numbers that C would cut short, read letter by letter or wrap."""

import pathlib
import tempfile
import unittest

from support import DIGITS, numpy, qplan
from qplan.passes import Pass, any_value, commutative, dominates, op, optional


class Index:
    """A whole number that is no int, as some libraries have them."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Nul(unittest.TestCase):
    def refused(self, call, *arguments, **options):
        with self.assertRaisesRegex(qplan.Error, "contains a NUL character") as raised:
            call(*arguments, **options)
        self.assertEqual(raised.exception.status_name, "QPLAN_INVALID_ARGUMENT")

    def test_in_paths_is_refused(self):
        with tempfile.TemporaryDirectory(prefix="qplan_test_") as folder:
            folder = pathlib.Path(folder)
            self.refused(qplan.pack(DIGITS).save, f"{folder}/x\0junk")
            self.refused(qplan.pack, DIGITS, f"{folder}/x\0junk")
            self.assertEqual(list(folder.iterdir()), [])
        for call in (qplan.pack, qplan.import_text, qplan.explain, qplan.Plan, qplan.check):
            self.refused(call, f"{DIGITS}\0x")
        self.refused(qplan.tune, f"{DIGITS}\0x", "log")
        self.refused(qplan.tune, DIGITS, "log\0x")

    def test_in_options_is_refused(self):
        for name in ("target", "target_file", "contract", "io", "io_layout", "dump_after", "tuning", "custom_operators"):
            self.refused(qplan.pack, DIGITS, **{name: "cpu\0x"})
        for name in ("skip", "pins", "target_libs"):
            self.refused(qplan.pack, DIGITS, **{name: ["cpu\0x"]})
        self.refused(qplan.import_text, DIGITS, why_not="simplify\0x")
        self.refused(qplan.pack, DIGITS, input_types={"x\0": (1,)})
        self.refused(qplan.pack, DIGITS, bindings={"x\0": numpy.zeros(1, numpy.int8)})

    def test_in_what_sessions_and_devices_take_is_refused(self):
        self.refused(qplan.Session, qplan.pack(DIGITS), isa="auto\0x")
        self.refused(qplan.Driver, "sim.so\0x")
        self.refused(qplan.Driver().open, "vta\0x")
        self.refused(qplan.Driver().open, options="sram=quarter\0x")

    def test_in_patterns_and_passes_is_refused(self):
        build = lambda pre, post, matches: None
        self.refused(op, "clip\0x")
        self.refused(commutative, "add\0x")
        self.refused(optional, "clip\0x", any_value())
        self.refused(dominates, any_value(), ["clip\0x"], any_value())
        self.refused(any_value().as_, "x\0y")
        self.refused(any_value().where, "x\0y", lambda pre, value: True)
        self.refused(op("cast").attr, dtype="int8\0x")
        self.refused(op("cast").attr, **{"dtype\0x": "int8"})
        self.refused(qplan.rewrite(op("clip"), name="x\0y"), build)
        self.refused(Pass, "x\0y")
        self.refused(Pass, "x", after="y\0z")

    def test_in_what_callbacks_say_is_refused(self):
        calls = [
            lambda post, matches: matches["x\0y"],
            lambda post, matches: matches.root["name\0y"],
            lambda post, matches: post.call("clip\0x"),
            lambda post, matches: post.call("clip", name="x\0y"),
            lambda post, matches: post.constant(numpy.zeros(1, numpy.int8), "x\0y"),
            lambda post, matches: post.why("x\0y"),
        ]
        for call in calls:
            rewrite = qplan.rewrite(op("qnn.conv2d"))(lambda pre, post, matches, call=call: call(post, matches))
            self.refused(qplan.pack, DIGITS, passes=[rewrite])

    def test_in_the_text_of_an_exception_does_not_cut_it(self):
        @qplan.rewrite(op("qnn.conv2d"))
        def fail(_pre, _post, _matches):
            raise ValueError("before\0after")

        with self.assertRaisesRegex(qplan.Error, r"before\?after"):
            qplan.pack(DIGITS, passes=[fail])


class Lists(unittest.TestCase):
    def test_of_one_bare_string_are_refused(self):
        for name, value in (("skip", "simplify"), ("pins", "a=cpu"), ("target_libs", "lib.so")):
            for given in (value, value.encode(), pathlib.Path(value)):
                with self.assertRaisesRegex(qplan.Error, f"^{name} is .*{value}.*, expected a list: \\[.*{value}.*\\]"):
                    qplan.pack(DIGITS, **{name: given})
        with self.assertRaisesRegex(qplan.Error, "^path is 'cast', expected a list"):
            dominates(any_value(), "cast", op("clip"))
        with self.assertRaisesRegex(qplan.Error, "^arguments is '--help', expected a list"):
            qplan.tune(DIGITS, "log", arguments="--help")

    def test_may_be_generators(self):
        skipped = [bytes(qplan.pack(DIGITS, skip=names)) for names in (["remove_dead_channels"], iter(["remove_dead_channels"]))]
        self.assertEqual(*skipped)


class Models(unittest.TestCase):
    def test_bytes_are_no_path(self):
        for function in ("import_text", "explain"):
            with self.assertRaisesRegex(TypeError, rf"^qplan\.{function}\(\) takes the path of a model, found \d+ bytes; write"):
                getattr(qplan, function)(DIGITS.read_bytes())
        with self.assertRaisesRegex(TypeError, r"^qplan\.tune\(\) takes the path"):
            qplan.tune(DIGITS.read_bytes(), "log")


class Numbers(unittest.TestCase):
    def test_of_patterns_that_c_would_wrap_are_refused(self):
        for value in (-1, 2**32 + 2, 1.5, True, "2"):
            with self.assertRaisesRegex(qplan.Error, "^rank is .*, expected a number from 0 to 4294967295"):
                any_value().rank(value)
        for value in (-1, 2**64 + 3, 1.5, True):
            with self.assertRaisesRegex(qplan.Error, r"^extent 1 of shape\(\) is .*, expected a number from 0 to"):
                any_value().shape(2, value)

    def test_may_be_whatever_is_an_index(self):
        for two in (2, numpy.int64(2), numpy.uint8(2), Index(2)):
            self.assertEqual(str(any_value().rank(two).shape(two)), "any of rank 2 of shape [2]")
            self.assertEqual(bytes(qplan.pack(DIGITS, self_check=two)), bytes(qplan.pack(DIGITS, self_check=2)))


if __name__ == "__main__":
    unittest.main()
