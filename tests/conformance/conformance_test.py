"""Drivers with one fault each: the check that is about it fails, and others go on.

usage: conformance_test.py PROGRAM BROKEN_DRIVER [unittest's arguments]
"""

import json
import os
import subprocess
import sys
import unittest

# Fault, the check that must find it.
FAULTS = {
    "serves_any_version": "entry.version",
    "writes_all": "struct.smaller",
    "crashes": "handle.others",
    "never_busy": "memory.release_busy",
    "takes_truncated": "blob.truncated",
    "ignores_hash": "blob.hash",
    "spoils_output": "job.results",
    "writes_input": "job.inputs",
    "forgets_done": "queue.done",
    "waits_for_ever": "queue.wait",
    "blocks_when_full": "queue.full",
    "reset_does_nothing": "queue.reset",
    "reset_waits": "queue.bounded",
    "close_waits": "queue.bounded",
    "takes_any_range": "memory.ranges",
    "leaks": "memory.hooks",
    "ignores_class": "memory.classes",
    "names_no_contract": "capabilities.sane",
}


class Conformance(unittest.TestCase):
    program = ""
    driver = ""

    def run_suite(self, fault, *arguments):
        environment = dict(os.environ, QPLAN_BROKEN=fault)
        return subprocess.run([self.program, self.driver, *arguments], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300, check=False)

    def results(self, fault, *arguments):
        result = self.run_suite(fault, "--json", *arguments)
        checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
        self.assertEqual(result.returncode, int(any(c["result"] == "fail" for c in checks.values())))
        return checks

    def test_each_fault_is_found_by_its_check(self):
        for fault, name in FAULTS.items():
            with self.subTest(fault=fault):
                check = self.results(fault, "--only", name)[name]
                self.assertEqual(check["result"], "fail", check)
                self.assertNotEqual(check["why"], "")
                self.assertNotIn("\n", check["why"])

    def test_without_a_fault_the_same_checks_pass(self):
        checks = self.results("", *(word for name in FAULTS.values() for word in ("--only", name)))
        self.assertEqual({name: check["result"] for name, check in checks.items()},
                         {name: "pass" for name in FAULTS.values()})

    def test_a_crash_is_one_failed_check(self):
        checks = self.results("crashes", "--only", "handle", "--only", "memory.map")
        self.assertEqual(checks["handle.others"]["result"], "fail")
        self.assertIn("crashed", checks["handle.others"]["why"])
        self.assertEqual(checks["memory.map"]["result"], "pass")

    def test_what_cannot_be_tried(self):
        for arguments in (["/nonexistent/libx.so"], [], [self.driver, "--only", "no.such.check"], ["--unknown"]):
            result = subprocess.run([self.program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True, timeout=60, check=False)
            self.assertEqual(result.returncode, 2, result)
            self.assertNotEqual(result.stderr, "")

    def test_list(self):
        listed = subprocess.run([self.program, "--list"], stdout=subprocess.PIPE, text=True, timeout=60, check=True)
        for name in FAULTS.values():
            self.assertIn(name, listed.stdout)


if __name__ == "__main__":
    Conformance.program, Conformance.driver = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
