"""qplan sign and qplan verify: Ed25519 signatures, checked here with the formulas of RFC 8032."""

import hashlib
import os
import shutil
import stat
import struct
import unittest

from support import CommandTest, run

P = 2**255 - 19
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):
    (x1, y1), (x2, y2) = a, b
    k = D * x1 * x2 * y1 * y2 % P
    return (x1 * y2 + x2 * y1) * pow(1 + k, P - 2, P) % P, (y1 * y2 + x1 * x2) * pow(1 - k, P - 2, P) % P


def multiply(point, scalar):
    result = (0, 1)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result


def decompress(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    assert (x * x - square) % P == 0
    return (P - x if x & 1 != sign else x), y


BASE = decompress(bytes.fromhex("5866666666666666666666666666666666666666666666666666666666666666"))


def is_signed(public, message, signature):
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little")
    left = multiply(BASE, int.from_bytes(signature[32:], "little"))
    return left == add(decompress(signature[:32]), multiply(decompress(public), challenge))


class Sign(CommandTest):
    def setUp(self):
        super().setUp()
        self.key = self.folder / "release.key"
        made = run("sign", "--new-key", self.key)
        if "without libsodium" in made.stderr:
            self.skipTest("the command was built without libsodium (Debian: libsodium-dev)")
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        self.pub = self.folder / "release.key.pub"
        self.signed = self.folder / "signed.qplan"

    def sign(self, *arguments):
        self.succeed("sign", self.plan, "--key", self.key, "-o", self.signed, *arguments)

    def test_the_signature_is_that_of_rfc_8032(self):
        # The first test vector of section 7.1, so that the formulas above are right.
        self.assertTrue(is_signed(
            bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"), b"",
            bytes.fromhex("e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b")))
        self.sign("--counter", "7")
        plan, file = self.plan.read_bytes(), self.signed.read_bytes()
        self.assertEqual(file[:len(plan)], plan)
        trailer = file[len(plan):]
        public = bytes.fromhex(self.pub.read_text().split()[1])
        magic, version, algorithm, counter = struct.unpack_from("<4sHHQ", trailer)
        self.assertEqual((magic, version, algorithm, counter, len(trailer)), (b"QPSG", 1, 1, 7, 88))
        self.assertEqual(trailer[16:24], hashlib.sha256(public).digest()[:8])
        message = trailer[:24] + struct.pack("<Q", len(plan)) + hashlib.sha256(plan).digest()
        self.assertTrue(is_signed(public, message, trailer[24:]))
        self.assertFalse(is_signed(public, message[:-1] + b"x", trailer[24:]))

    def test_verify_accepts_it_and_everything_else_reads_the_plan_as_before(self):
        self.sign("--counter", "7")
        self.assertIn("counter 7", self.succeed("verify", self.signed, "--key", self.pub, "--min-counter", "7"))
        report = self.succeed_json("verify", self.signed, "--key", self.pub, "--json")
        self.assertEqual(report["counter"], 7)
        self.succeed("check", self.signed)
        self.succeed("run", self.signed, "--input", self.digit_input(3), "--output-dir", self.folder / "out")
        self.assertEqual((self.folder / "out" / "output0.bin").read_bytes(), self.digit_output(3))

    def test_a_path_that_is_not_utf8_is_in_the_json(self):
        self.sign("--counter", "7")
        path = self.folder / os.fsdecode(b"\xff.qplan")
        shutil.copy(self.signed, path)
        report = self.succeed_json("verify", path, "--key", self.pub, "--json")
        self.assertEqual((report["plan"], report["counter"]), (str(self.folder / "\ufffd.qplan"), 7))

    def test_signing_again_replaces_the_signature(self):
        self.sign("--counter", "1")
        size = self.signed.stat().st_size
        self.succeed("sign", self.signed, "--key", self.key, "--counter", "2")
        self.assertEqual(self.signed.stat().st_size, size)
        self.assertEqual(self.succeed_json("verify", self.signed, "--key", self.pub, "--json")["counter"], 2)

    def test_what_was_changed_or_is_older_or_of_another_key_is_refused(self):
        self.sign("--counter", "7")
        verify = ("verify", self.signed, "--key", self.pub)
        self.refused(1, ["counter 7, expected at least 8"], *verify, "--min-counter", "8")
        self.refused(1, ["the plan is not signed"], "verify", self.plan, "--key", self.pub)
        other = self.folder / "other.key"
        self.succeed("sign", "--new-key", other)
        self.refused(1, ["not that of a trusted key"], "verify", self.signed, "--key", f"{other}.pub")
        self.succeed("verify", self.signed, "--key", f"{other}.pub", "--key", self.pub)
        data = bytearray(self.signed.read_bytes())
        for at in (100, len(self.plan.read_bytes()) - 1, len(data) - 1, len(data) - 80):
            changed = bytearray(data)
            changed[at] ^= 1
            self.signed.write_bytes(changed)
            self.refused(1, ["not that of a trusted key"], *verify)

    def test_keys_are_kept_apart_and_secret(self):
        self.assertEqual(stat.S_IMODE(os.stat(self.key).st_mode), 0o600)
        self.refused(1, ["the file exists", "another name"], "sign", "--new-key", self.key)
        lost = self.folder / "lost.key"  # a public key that devices have is no less worth than the secret one
        public = self.file("lost.key.pub", b"kept")
        self.refused(1, ["lost.key.pub", "the file exists"], "sign", "--new-key", lost)
        self.assertEqual((lost.exists(), public.read_bytes()), (False, b"kept"))
        self.refused(1, ["is a public key, expected the secret one"], "sign", self.plan, "--key", self.pub, "-o", self.signed)
        self.refused(1, ["is a secret key, expected the public one"], "verify", self.plan, "--key", self.key)
        self.refused(1, ["is no key of qplan sign"], "verify", self.plan, "--key", self.file("x", b"qplan-ed25519-public-1 12"))
        self.assertFalse(self.signed.exists())

    def test_a_pair_that_cannot_be_written_leaves_no_file(self):
        before = self.left_behind()
        long = self.folder / ("k" * 252)  # a name that has no room for .pub
        self.refused(1, [".pub", "cannot be created", "File name too long"], "sign", "--new-key", long)
        other = self.folder / "other.key"
        self.refused(1, ["other.key", "cannot be written", "File too large"], "sign", "--new-key", other, file_size_limit=40)
        self.assertEqual(self.left_behind(), before)
        self.succeed("sign", "--new-key", other)

    def test_a_new_key_stands_alone(self):
        other = self.folder / "other.key"
        for option, arguments in (("PLAN", [self.plan]), ("--key", ["--key", self.key]), ("--counter", ["--counter", "0"]),
                                  ("--output", ["-o", self.signed])):
            self.refused(2, [f"--new-key: stands alone, found it with {option}"], "sign", *arguments, "--new-key", other)
        self.refused(2, ["stands alone"], "sign", self.plan, "--key", self.key, "-o", self.signed, "--counter", "3",
                     "--new-key", other)
        self.assertEqual(self.left_behind(), ["release.key", "release.key.pub"])

    def test_damaged_plans_are_not_signed(self):
        data = bytearray(self.plan.read_bytes())
        data[-1] ^= 1
        damaged = self.file("damaged.qplan", bytes(data))
        self.refused(1, ["SHA-256"], "sign", damaged, "--key", self.key)
        self.assertEqual(damaged.read_bytes(), bytes(data))


if __name__ == "__main__":
    unittest.main()
