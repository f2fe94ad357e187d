"""qplan pack --self-check and qplan check --self: a plan that checks itself where it runs."""

import json
import os
import struct
import subprocess
import unittest
import zlib

from support import DIGITS, CommandTest, run, with_digest

FAULTY = os.environ.get("QPLAN_FAULTY_COMMAND", "")  # its conv2d for SSE4.1 is wrong: faulty_kernel.cc
needs_faulty = unittest.skipUnless(os.path.exists(FAULTY), "no command with a planted fault (QPLAN_FAULTY_COMMAND)")


class SelfCheck(CommandTest):
    def packed(self, *options):
        plan = self.folder / "checked.qplan"
        self.succeed("pack", DIGITS, "-o", plan, "--self-check", "2", *options)
        return plan

    def test_it_passes_on_every_instruction_set_thread_count_and_device(self):
        plan = self.packed()
        for isa in self.isas():
            for threads in ("1", "4"):
                text = self.succeed("check", plan, "--self", "--isa", isa, "--threads", threads)
                self.assertEqual(text.splitlines()[1], "self-check: passed, 2 runs")
        npu = self.packed("--target", "vta, cpu")
        self.succeed("check", npu, "--self")
        self.succeed("check", npu, "--self", "--driver", "none")
        report = self.succeed_json("check", npu, "--self", "--json")
        self.assertEqual((report["verified"], report["self_checks"], report["self_check"]), (True, 2, "passed"))
        self.assertEqual(self.succeed_json("inspect", plan, "--json")["self_checks"], 2)
        self.assertIn("  self-checks: 2\n", self.succeed("disasm", plan))

    def test_plans_without_self_checks_keep_their_bytes_and_version(self):
        report = self.succeed_json("inspect", self.plan, "--json")
        self.assertEqual((report["version"], report["self_checks"]), ("1.5", 0))
        self.assertEqual(self.succeed_json("inspect", self.packed(), "--json")["version"], "1.7")
        self.refused(1, ["the plan has none", "--self-check"], "check", self.plan, "--self")
        self.refused(2, ["--expect", "--against"], "check", self.plan, "--self", "--against", "isas")
        for count in ("0", "65", "x"):
            self.refused(2, ["--self-check"], "pack", DIGITS, "-o", self.folder / "no.qplan", "--self-check", count)

    def test_one_flipped_bit_of_a_weight_names_its_step(self):
        plan = self.packed("--fuse", "off")
        report = self.succeed_json("inspect", plan, "--json")
        content = plan.read_bytes()
        constants = {bank for bank, entry in enumerate(report["banks"]) if entry["kind"] == "constants"}
        file_size = len(content)
        root_size, = struct.unpack_from("<I", content, 12)
        begin = (64 + root_size + 63) // 64 * 64
        weights = 0
        for step in report["steps"]:
            if step["op"] not in ("conv2d", "depthwise_conv2d", "fully_connected"):
                continue
            tensor = report["tensors"][step["inputs"][1]]
            self.assertIn(tensor["bank"], constants)
            at = begin + tensor["offset"] + tensor["bytes"] // 3
            damaged = bytearray(content)
            damaged[at] ^= 1
            self.assertEqual(len(damaged), file_size)
            path = self.file("damaged.qplan", with_digest(bytes(damaged)))
            result = run("check", path, "--self", "--json")
            self.assertEqual((result.returncode, result.stderr), (3, ""))
            fault = json.loads(result.stdout)["self_check"]
            self.assertIn(f"step {step['index']} '{step['name']}': its constants have checksum", fault)
            weights += 1
        self.assertGreater(weights, 3)

    def test_the_checksums_are_those_of_zlib(self):
        """The checksum of a step's constants is in the file: zlib computes it from the file's own bytes."""
        plan = self.packed("--fuse", "off")
        report = self.succeed_json("inspect", plan, "--json")
        content = plan.read_bytes()
        root_size, = struct.unpack_from("<I", content, 12)
        begin = (64 + root_size + 63) // 64 * 64
        expected = []
        for step in report["steps"]:
            crc = 0
            for index in step["inputs"]:
                tensor = report["tensors"][index]
                if report["banks"][tensor["bank"]]["kind"] == "constants":
                    at = begin + tensor["offset"]
                    crc = zlib.crc32(content[at : at + tensor["bytes"]], crc)
            expected.append(crc)
        self.assertIn(struct.pack(f"<{len(expected) + 1}I", len(expected), *expected), content[64 : 64 + root_size])

    @needs_faulty
    def test_a_planted_kernel_fault_is_found(self):
        plan = self.packed()
        self.succeed("check", plan, "--self", "--isa", "sse41")
        words = [FAULTY, "check", str(plan), "--self", "--isa", "sse41"]
        result = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((result.returncode, result.stderr), (3, ""))
        self.assertIn("DIFFERENT  self-check: step ", result.stdout)
        self.assertIn("'block2/add': its outputs of self-check 0 have checksum", result.stdout)
        self.assertIn("its constants are intact: conv2d_sse41", result.stdout)


if __name__ == "__main__":
    unittest.main()
