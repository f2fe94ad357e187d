"""Copies and pickles of what owns something of the library: none may release it twice."""

import copy
import gc
import pickle
import unittest

from support import DIGITS, digit_input, digit_output, numpy, qplan
from qplan.passes import any_value, op

COPIES = (copy.copy, copy.deepcopy)


class Copies(unittest.TestCase):
    def test_of_a_pattern_live_on_when_the_pattern_is_gone(self):
        for make in COPIES:
            pattern = op("clip")(any_value().as_("x"))
            copied = make(pattern)
            del pattern
            gc.collect()
            self.assertEqual(str(copied), "clip(any as 'x')")
            self.assertEqual(str(make([copied, op("clip")])[1]), "clip")

    def test_of_a_pattern_own_no_second_handle(self):
        pattern = op("clip")
        for make in COPIES:
            self.assertIs(make(pattern), pattern)

    def test_of_a_plan_are_the_plan(self):
        plan = qplan.pack(DIGITS)
        for make in COPIES:
            self.assertIs(make(plan), plan)
        again = pickle.loads(pickle.dumps(plan))
        self.assertEqual(bytes(again), bytes(plan))
        numpy.testing.assert_array_equal(qplan.Session(again).run(digit_input(3))[0], digit_output(3))

    def test_of_a_session_are_refused(self):
        with qplan.Session(qplan.pack(DIGITS)) as session:
            for make in COPIES:
                with self.assertRaisesRegex(TypeError, "a Session cannot be copied: .*make a new one"):
                    make(session)

    def test_of_drivers_devices_and_buffers_are_refused(self):
        driver = qplan.Driver()
        with qplan.Session(qplan.pack(DIGITS, target="vta, cpu", cost_gate=False), devices=[driver.open()]) as session:
            for owner in (driver, driver.open(), session.buffer((4,), numpy.int8)):
                for make in (*COPIES, pickle.dumps):
                    with self.assertRaisesRegex(TypeError, f"a {type(owner).__name__} "):
                        make(owner)

    def test_of_what_a_callback_sees_end_with_the_callback(self):
        kept = []

        @qplan.rewrite(op("nn.conv2d") | op("qnn.conv2d"))
        def keep(pre, post, _matches):
            kept.extend(make(view) for make in COPIES for view in (pre, post, pre.params[0]))

        qplan.pack(DIGITS, passes=[keep])
        for view in kept:
            with self.assertRaisesRegex(RuntimeError, "used after it has returned"):
                view.nodes if isinstance(view, qplan.passes.Pre) else view._handle if hasattr(view, "_handle") else view.shape

    def test_pickles_of_what_belongs_to_the_process_are_refused(self):
        with qplan.Session(qplan.pack(DIGITS)) as session:
            for owner, name in ((op("clip"), "_Op"), (any_value(), "Pattern"), (session, "Session")):
                with self.assertRaisesRegex(TypeError, f"a {name} belongs to its process and cannot be pickled"):
                    pickle.dumps(owner)


if __name__ == "__main__":
    unittest.main()
