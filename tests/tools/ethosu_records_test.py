"""Recorded jobs of Ethos-U: what is recorded replays, what was changed does not, and records may come from anybody."""

import struct
import unittest

from support import DIGITS, CommandTest, run

CONFIG = "ethos-u55-128"


def sum_over_depth(depth, count):
    """A payload with kernels that sum a map of 4 x 4 x depth in region 0 over its depth, into region 1."""
    words = []

    def set_number(code, value):
        words.append(code | value << 16)

    def set_address(code, value):
        words.extend((code | 1 << 14, value))

    maps = ((0x100, 0, (0x10A, 0x10B, 0x10C)), (0x110, 1, (0x11A, 0x11B, 0x11C)))
    for base, region, extents in maps:
        for code in extents:  # width and heights of the tile, less one
            set_number(code, 3)
        set_number(base + 0xF, region)
    for code in (0x100, 0x101, 0x102, 0x103, 0x105, 0x107, 0x109, 0x113, 0x114, 0x118, 0x120, 0x121, 0x122, 0x124, 0x125,
                 0x126, 0x12F):
        set_number(code, 0)
    for code, value in ((0x104, depth - 1), (0x111, 3), (0x112, 3), (0x115, 15), (0x116, 7), (0x117, 7), (0x127, 255),
                        (0x10D, 10), (0x12D, 14)):
        set_number(code, value)
    for base, x in ((0x00, depth), (0x10, 1)):
        for tile in range(4):
            set_address(base + tile, 0)
        for code, stride in ((4, x), (5, 4 * x), (6, 0)):
            set_address(base + code, stride)
    words += [0x005 | 2 << 16] * count + [0xffff << 16]
    head = [0x31504F43, 1 | 0x10 << 16, 0, 0x10060000, 5, 5, 5, 2 | len(words) >> 16 << 8 | (len(words) & 0xffff) << 16]
    return head, words


class EthosuRecords(CommandTest):
    """self.job: the only job of a run of the digits model."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.npu_plan = cls._class_folder / "npu.qplan"
        result = run("pack", DIGITS, "-o", cls.npu_plan, "--target", f"{CONFIG}, cpu", "--no-cost-gate")
        assert result.returncode == 0, result.stderr

    def setUp(self):
        super().setUp()
        self.jobs = self.record()
        self.job = self.jobs / "job-0000"

    def record(self, *options):
        jobs = self.folder / "jobs"
        report = self.succeed_json("run", self.npu_plan, "--input", self.digit_input(3), "--output-dir", self.folder / "out",
                                   "--json", "--npu-record", jobs, *options)
        self.assertEqual((self.folder / "out" / "output0.bin").read_bytes(), self.digit_output(3))
        self.assertEqual([region["device_runs"] for region in report["npu"]["regions"]], [1])
        return jobs

    def lines(self, *directives):
        """Lines of job.txt that begin with one of the words."""
        return [line.split() for line in (self.job / "job.txt").read_text().splitlines() if line.split()[0] in directives]

    def fails(self, text, lines=None, *options):
        if lines is not None:
            (self.job / "job.txt").write_text("".join(line + "\n" for line in lines))
        result = run("npu", "replay", self.job, *options)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn(text, result.stderr)
        self.assertRegex(result.stdout, r"FAILED: replay: .")
        return result.stdout

    def replace(self, word, change):
        """Lines of the job, those that begin with the word changed."""
        lines = (self.job / "job.txt").read_text().splitlines()
        return [change(line) if line.split()[0] == word else line for line in lines]

    def test_a_recorded_job_replays_to_its_bytes(self):
        text = self.succeed("npu", "replay", self.jobs)
        self.assertIn("job-0000: 1 check OK, ", text)
        (job,) = self.succeed_json("npu", "replay", self.jobs, "--json")
        self.assertTrue(job["ok"])
        self.assertGreater(job["macs"], 0)
        ((_, region, offset, size, file),) = self.lines("check")
        self.assertEqual(job["checks"], [{"address": offset, "bytes": size, "file": file, "result": "OK", "region": region}])

    def test_intermediate_tensors_are_checked_on_request(self):
        few = len(self.lines("check"))
        self.record("--npu-record-all")
        checks = self.lines("check")
        self.assertGreater(len(checks), few)
        self.assertIn(f"{len(checks)} checks OK", self.succeed("npu", "replay", self.jobs))
        # One of them that is not an output: a byte of it that is different is found.
        *_, file = checks[-1]
        data = bytearray((self.job / file).read_bytes())
        data[0] ^= 1
        (self.job / file).write_bytes(data)
        self.assertIn(file, self.fails("byte 0 of"))

    def test_all_needs_a_directory(self):
        result = run("run", self.npu_plan, "--input", self.digit_input(3), "--npu-record-all")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--npu-record", result.stderr)

    def test_a_byte_that_differs_is_in_its_check(self):
        ((_, region, offset, size, file),) = self.lines("check")
        data = bytearray((self.job / file).read_bytes())
        data[-1] ^= 0x10
        (self.job / file).write_bytes(data)
        out = self.fails(f"byte {len(data) - 1} of '{file}'")
        self.assertIn(f"{file} ({size} bytes at {offset} of region {region}): differs", out)

    def test_other_weights_give_other_bytes(self):
        read_only = {words[1] for words in self.lines("readonly")}
        file = max((words[3] for words in self.lines("load") if words[1] in read_only),
                   key=lambda name: (self.job / name).stat().st_size)
        data = bytearray((self.job / file).read_bytes())
        (self.job / file).write_bytes(bytes(len(data)))
        self.assertRegex(run("npu", "replay", self.job).stdout, "FAILED: replay: ")

    def test_regions_are_few_known_and_first(self):
        self.fails("region '8', expected 0 to 7", ["target ethosu", "region 8 16"])
        self.fails("a second 'region 1'", ["target ethosu", "region 1 16", "region 1 16"])
        self.fails("region '2' is not known; regions come first", ["target ethosu", "region 1 16", "load 2 0 payload.bin"])
        self.fails("region '2' is not known; regions come first", ["target ethosu", "check 2 0 8 x", "region 2 16"])
        self.fails("region '-1' is not known", ["target ethosu", "region 1 16", "readonly -1"])
        self.fails("'x' is not a number of bytes", ["target ethosu", "region 1 x"])

    def test_ranges_are_in_their_regions(self):
        self.fails("are outside region", self.replace("load", lambda line: " ".join(
            [*line.split()[:2], "0xffffffffffffffff", line.split()[3]])))
        self.succeed_again()
        self.fails("are outside region", self.replace("check", lambda line: " ".join(
            [*line.split()[:2], "1", "0xffffffffffffffff", line.split()[4]])))

    def succeed_again(self):
        self.record()
        self.succeed("npu", "replay", self.job)

    def test_memory_and_work_are_bounded(self):
        self.fails("option memory=BYTES", ["target ethosu", "region 0 0xffffffffffff"])
        self.fails("keeps track of 16777216; readonly regions count less",
                     ["target ethosu", "region 0 16777217", "run payload.bin", "check 0 0 1 x"])
        self.succeed_again()
        self.fails("option work=N allows more", None, "--npu-options", "work=1000")

    def test_work_counts_what_a_kernel_reads(self):
        # One cycle of the device reads many elements; the simulator reads each.
        word = struct.unpack_from("<I", (self.job / "payload.bin").read_bytes(), 8)[0]
        for count, text in ((1, "byte 0 of 'check'"), (2, "option work=N allows more")):
            head, words = sum_over_depth(4096, count)
            head[2] = word
            (self.job / "payload").write_bytes(struct.pack(f"<{len(head) + len(words)}I", *head, *words))
            (self.job / "zeros").write_bytes(bytes(16 * 4096))
            (self.job / "check").write_bytes(b"\1")
            self.fails(text, ["target ethosu", "region 0 65536", "region 1 16", "readonly 0", "load 0 0 zeros", "run payload",
                              "check 1 0 1 check"], "--npu-options", "work=100000")

    def test_loads_bring_all_that_is_read_only(self):
        read_only = {words[1] for words in self.lines("readonly")}
        region, file = next((words[1], words[3]) for words in self.lines("load") if words[1] in read_only)
        (self.job / file).write_bytes((self.job / file).read_bytes()[:-1])
        size = (self.job / file).stat().st_size
        self.fails(f"byte {size} of region {region} is readonly, and no load brings it")

    def test_a_job_runs_once_and_checks_something(self):
        self.fails("no run", ["target ethosu", "region 0 16"])
        self.fails("no check", ["target ethosu", "region 0 16", "run payload.bin"])
        self.fails("a second 'run'", ["target ethosu", "run payload.bin", "run payload.bin"])
        self.fails("cannot understand 'size'", ["target ethosu", "size 100"])

    def test_files_are_inside_the_directory(self):
        self.fails("outside the job's directory",
                     self.replace("load", lambda line: " ".join(line.split()[:3] + ["../job-0000/payload.bin"])))

    def test_streams_are_checked_before_they_run(self):
        payload = self.job / "payload.bin"
        data = payload.read_bytes()
        payload.write_bytes(data[:40])
        self.fails("payload")
        payload.write_bytes(b"COP2" + data[4:])
        self.fails("begins with 'COP1'")
        payload.write_bytes(data[:8] + struct.pack("<I", 0x12345678) + data[12:])
        self.fails("unknown configuration")
        # What a job may not write: its only output, called read-only.
        payload.write_bytes(data)
        region = self.lines("check")[0][1]
        self.fails("a region that is read only is written", (self.job / "job.txt").read_text().splitlines() + [f"readonly {region}"])


if __name__ == "__main__":
    unittest.main()
