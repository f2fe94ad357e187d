"""qplan.passes: patterns, rewrites and passes in Python."""

import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
import unittest
import weakref

import support
import numpy
import qplan
from qplan.passes import Pass, any_value, commutative, constant, dominates, op, optional, param

HEAD = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 4), int8]) {\n'
CLIP = '  clip(%x, a_min=-5f, a_max=6f, name="here")\n'


@qplan.rewrite(op("clip")(any_value().as_("data")).attr(a_max=6))
def widen(_pre, post, matches):
    return post.call("clip", post[matches["data"]], a_min=-5, a_max=7.0, name=matches.root.name)


class Canonical(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def canonical(self, body, passes, **options):
        path = pathlib.Path(self.folder.name) / "model.relay"
        path.write_text(HEAD + body + "}\n")
        return qplan.import_text(path, canonical=True, passes=passes, **options)

    def failure(self, build, pattern=None):
        """What is raised for a rewrite named "bad"."""
        bad = qplan.rewrite(pattern or op("clip")(any_value().as_("data")), name="bad")(build)
        with self.assertRaises(qplan.Error) as caught:
            self.canonical(CLIP, [bad])
        return caught.exception


class Rewrites(Canonical):
    def test_a_rewrite_is_part_of_the_pipeline(self):
        self.assertIn("a_max=6f", self.canonical(CLIP, []))
        self.assertIn("a_max=7f", self.canonical(CLIP, [widen]))
        self.assertIn("a_max=7f", self.canonical(CLIP, [Pass("mine", [widen], after="simplify")]))
        self.assertIn("a_max=6f", self.canonical(CLIP, [Pass("mine", [widen])], skip=["mine"]))
        self.assertIn("a_max=6f", self.canonical(CLIP, [Pass("mine", [widen])], skip=["widen"]))

    def test_none_leaves_the_node_alone(self):
        never = qplan.rewrite(op("clip"))(lambda pre, post, matches: None)
        self.assertEqual(self.canonical(CLIP, [never]), self.canonical(CLIP, []))

    def test_what_a_callback_reads(self):
        seen = []

        @qplan.rewrite(op("nn.pad").as_("pad"))
        def read(pre, _post, matches):
            node = matches.root
            seen.append((node.op, node.name, node["pad_width"], node["pad_mode"], node.attrs["pad_width"]))
            seen.append([value.is_constant for value in node.operands])
            seen.append(node.operands[1].array.tolist())
            seen.append((node.result.shape, str(node.result.dtype), node.result.num_uses))
            seen.append((node.operands[0].producer.op, pre.params[0].producer, pre.params[0].name, pre.name))
            seen.append((matches["pad"] == node.result, "nothing" in matches, len(pre.nodes), pre.outputs[0] == node.result))
            with self.assertRaises(KeyError):
                node["nonsense"]
            with self.assertRaises(KeyError):
                matches["nothing"]
            with self.assertRaisesRegex(ValueError, "is no constant"):
                node.operands[0].array

        self.canonical('  %0 = clip(%x, a_min=-5f, a_max=6f);\n  nn.pad(%0, 3, pad_width=[[0, 0], [1, 2]], name="p")\n', [read])
        self.assertEqual(
            seen[:6],
            [
                ("nn.pad", "p", [[0, 0], [1, 2]], "constant", [[0, 0], [1, 2]]),
                [False, True],
                3,
                ((1, 7), "int8", 1),
                ("clip", None, "x", "main"),
                (True, False, 2, True),
            ],
        )

    def test_exceptions_are_the_error_of_the_pack(self):
        def build(_pre, _post, _matches):
            raise ZeroDivisionError("by zero")

        error = self.failure(build)
        self.assertEqual(error.text, "rewrite 'bad' at clip 'here': ZeroDivisionError: by zero")
        self.assertIsInstance(error.__cause__, ZeroDivisionError)
        self.assertEqual(traceback.extract_tb(error.__cause__.__traceback__)[-1].name, "build")
        where = any_value().where("that fails", lambda pre, value: 1 // 0)
        self.assertIsInstance(self.failure(build, op("clip")(where)).__cause__, ZeroDivisionError)

    def test_interrupts_stay_interrupts(self):
        def build(_pre, _post, _matches):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.canonical(CLIP, [qplan.rewrite(op("clip"))(build)])

    def test_errors_of_the_library_keep_their_text(self):
        error = self.failure(lambda pre, post, m: post.call("clip", post[m["data"]], a_min="low", a_max=1, name="new"))
        self.assertEqual(error.text, "rewrite 'bad' at clip 'here': clip 'new': attribute 'a_min' must be a number")
        self.assertEqual(error.status_name, "QPLAN_MODEL_INVALID")
        error = self.failure(lambda pre, post, m: post.call("cast", post[m["data"]], dtype="int32"))
        self.assertIn("is replaced by a value of another type, Tensor[(1, 4), int32]", error.text)

    def test_stale_operands_are_told(self):
        error = self.failure(lambda pre, post, m: post.call("clip", m["data"], a_min=0, a_max=1))
        self.assertIsInstance(error.__cause__, TypeError)
        self.assertIn("write post[value]", error.text)
        self.assertIn("expected a value of the new function", self.failure(lambda pre, post, m: m["data"]).text)

    def test_the_matched_value_itself_has_no_successor_yet(self):
        error = self.failure(lambda pre, post, m: post[m.root.result])
        self.assertRegex(error.text, r"post: no new value replaces value \d+ yet: .*; build from the node's operands$")
        self.assertEqual(error.status_name, "QPLAN_INVALID_ARGUMENT")

    def test_values_of_another_call_are_told(self):
        def mixed(use):
            def build(pre, post, matches):
                data, new = matches["data"], post[matches["data"]]
                use_here = lambda inner_pre, inner_post, m: use(data, new, inner_post, m)
                self.canonical(CLIP, [qplan.rewrite(op("clip")(any_value().as_("data")), name="inner")(use_here)])

            return self.failure(build).text

        of_another = "of another callback"
        self.assertIn(of_another, mixed(lambda data, new, post, m: post[data]))
        self.assertIn(of_another, mixed(lambda data, new, post, m: post.call("clip", new, a_min=0, a_max=1)))
        self.assertIn(of_another, mixed(lambda data, new, post, m: new))

    def test_views_end_with_their_callback(self):
        kept = []
        keep = qplan.rewrite(op("clip"))(lambda pre, post, matches: kept.append((pre, post, matches, matches.root)))
        self.canonical(CLIP, [keep])
        pre, post, matches, root = kept[0]
        stale = []
        later = qplan.rewrite(op("clip"))(lambda pre, post, matches: stale[0] if stale else stale.append(post[pre.params[0]]))
        self.canonical(CLIP, [later])
        with self.assertRaisesRegex(qplan.Error, "after it has returned"):
            self.canonical(CLIP, [later])
        for use in (lambda: pre.nodes, lambda: post.why("x"), lambda: matches.root, lambda: root.op):
            with self.assertRaisesRegex(RuntimeError, "after it has returned"):
                use()
        self.assertIn("has returned", repr(root))

    def test_calls_of_the_packer_nest(self):
        inner = []

        def build(_pre, _post, _matches):
            inner.append(self.canonical(CLIP, [widen]))
            with self.assertRaises(qplan.Error):
                self.canonical(CLIP, [qplan.rewrite(op("clip"))(lambda pre, post, matches: 1 // 0)])

        self.assertIn("a_max=6f", self.canonical(CLIP, [qplan.rewrite(op("clip"))(build)]))
        self.assertIn("a_max=7f", inner[0])


class Passes(Canonical):
    def test_run_replaces_values(self):
        def lower(pre, post):
            for node in pre.nodes:
                if node.op == "clip" and node["a_min"] == -5:
                    attrs = {**node.attrs, "a_min": -6.0}
                    post.replace(node.result, post.call("clip", post[node.operands[0]], **attrs))

        self.assertIn("a_min=-6f", self.canonical(CLIP, [Pass("lower", run=lower)]))

    def test_run_may_fail(self):
        def run(_pre, _post):
            raise ValueError("no")

        with self.assertRaisesRegex(qplan.Error, "pass 'mine': ValueError: no"):
            self.canonical(CLIP, [Pass("mine", run=run)])

    def test_places_and_names_are_checked(self):
        with self.assertRaisesRegex(qplan.Error, "to run after 'nonsense', which is no pass before it"):
            self.canonical(CLIP, [Pass("mine", [widen], after="nonsense")])
        with self.assertRaisesRegex(qplan.Error, "there is a pass of that name"):
            self.canonical(CLIP, [Pass("dead_code", [widen])])
        with self.assertRaisesRegex(qplan.Error, "needs either rewrites or a function run"):
            self.canonical(CLIP, [Pass("mine")])
        with self.assertRaisesRegex(TypeError, "neither a Pass nor a Rewrite"):
            self.canonical(CLIP, [42])


class Sample(unittest.TestCase):
    def test_folds_constants_to_the_bytes_of_the_built_in_pass(self):
        result = subprocess.run(
            [sys.executable, "-B", support.REPOSITORY / "samples" / "custom_pass" / "quantize_constants.py"],
            env={**os.environ, "PYTHONPATH": str(support.REPOSITORY / "python")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("the same as with the built-in pass", result.stdout)


class Patterns(unittest.TestCase):
    def test_every_combinator_is_there(self):
        for pattern, text in (
            (any_value(), "any"),
            ((constant() | param()).as_("a"), "(constant | parameter) as 'a'"),
            (op("clip")(any_value()).attr(a_max=6.5), "clip(any) with a_max=6.5"),
            (op("nn.pad").attr(pad_width=[[0, 1], [2, 3]]), "nn.pad with pad_width=[[0, 1], [2, 3]]"),
            (op("mean").attr(axis=[1, 2], keepdims=True), "mean with axis=[1, 2] with keepdims=true"),
            (op("add", "multiply"), "add|multiply"),
            (commutative("add")(constant(), any_value()), "commutative add(constant, any)"),
            (optional("nn.pad", any_value(), constant()), "optional nn.pad(any, constant)"),
            (dominates(any_value(), ["cast"], op("clip")), "clip over {cast} over any"),
            (any_value().dtype("int8", numpy.uint8).shape(1, 2).rank(2).one_use(),
             "any of dtype int8 or uint8 of shape [1, 2] of rank 2 read once"),
            (any_value().where("that sings", lambda pre, value: True), "any that sings"),
        ):
            self.assertEqual(str(pattern), text)

    def test_mistakes_are_told(self):
        with self.assertRaisesRegex(qplan.Error, "there is no operator 'clop'"):
            op("clop")
        with self.assertRaises(TypeError):
            op("clip")("x")
        with self.assertRaises(TypeError):
            op("clip").attr(a_max=object())
        with self.assertRaises(TypeError):
            any_value().dtype("complex64")

    def test_conditions_live_as_long_as_patterns_need_them(self):
        class Condition:
            def __call__(self, pre, value):
                return True

        condition = Condition()
        alive = weakref.ref(condition)
        outer = op("clip")(any_value().where("counted", condition))
        del condition
        gc.collect()
        self.assertIsNotNone(alive())
        del outer
        gc.collect()
        self.assertIsNone(alive())


if __name__ == "__main__":
    unittest.main()
