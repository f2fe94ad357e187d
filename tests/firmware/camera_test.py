"""A camera's frame as a model's input (qplan/camera.h), against formulas in exact fractions that share no code with it.

usage: camera_test.py QPLAN LIBQPLAN BUILD_DIR    (run by ctest)
"""
import os
import random
import shutil
import struct
import subprocess
import sys
import unittest
from fractions import Fraction
from math import floor

from emit_c_test import DIGITS, ROOT, STRICT, read, run, sources

QPLAN = LIBRARY = BUILD = None
FORMATS = ["grey8", "rgb888", "bgr888", "rgb565", "rgb565be", "yuyv", "uyvy"]
PIXEL_BYTES = [1, 3, 3, 2, 2, 2, 2]
INT8, UINT8, FLOAT32 = range(3)
NEAREST, BILINEAR = range(2)
# Positions and values in a case of int8 whose sums would overflow, or which say nothing.
UNSAFE = ((10, 128), (10, -129), (10, 2147483647), (10, -2147483648), (11, float("inf")), (12, [0.0, float("nan"), 0.0]),
          (12, [float("inf")] * 3), (12, [0.0, 0.0, float("-inf")]), (13, [1.0, float("inf"), 1.0]), (13, [float("nan")] * 3))

# The frame on standard input; the tensor, which begins as bytes of 0xee between guards, on standard output.
MAIN = """
#include <qplan/camera.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
  long n[16];
  float f[7];
  int i;
  int32_t status;
  size_t size, frame_bytes;
  qplan_camera_frame frame;
  qplan_camera_tensor tensor;
  uint8_t *pixels, *data;
  if (argc != 24) return 9;
  for (i = 0; i < 16; ++i) n[i] = strtol(argv[1 + i], NULL, 10);
  for (i = 0; i < 7; ++i) f[i] = strtof(argv[17 + i], NULL);
  frame_bytes = (size_t)n[0];
  pixels = malloc(frame_bytes);
  if (pixels == NULL || fread(pixels, 1, frame_bytes, stdin) != frame_bytes) return 8;
  frame.pixels = pixels;
  frame.format = (uint32_t)n[1];
  frame.width = (uint32_t)n[2];
  frame.height = (uint32_t)n[3];
  frame.stride = (uint32_t)n[4];
  frame.crop_x = (uint32_t)n[5];
  frame.crop_y = (uint32_t)n[6];
  frame.crop_width = (uint32_t)n[7];
  frame.crop_height = (uint32_t)n[8];
  tensor.type = (uint32_t)n[9];
  tensor.width = (uint32_t)n[10];
  tensor.height = (uint32_t)n[11];
  tensor.channels = (uint32_t)n[12];
  tensor.filter = (uint32_t)n[13];
  tensor.zero_point = (int32_t)n[14];
  tensor.scale = f[0];
  memcpy(tensor.mean, f + 1, sizeof tensor.mean);
  memcpy(tensor.std, f + 4, sizeof tensor.std);
  size = (size_t)n[15];
  data = malloc(size + 128);
  if (data == NULL) return 7;
  memset(data, 0xee, size + 128);
  tensor.data = data + 64;
  status = qplan_camera_to_tensor(&frame, &tensor);
  fwrite(&status, sizeof status, 1, stdout);
  fwrite(data, 1, size + 128, stdout);
  free(data);
  free(pixels);
  return 0;
}
"""


def f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def clamp(value, low=0, high=255):
    return max(low, min(high, value))


def colour(data, stride, fmt, x, y):
    """(red, green, blue) and grey of a pixel."""
    at = y * stride + x * PIXEL_BYTES[fmt]
    name = FORMATS[fmt]
    if name == "grey8":
        return (data[at],) * 3, data[at]
    if name in ("yuyv", "uyvy"):
        pair = y * stride + (x // 2) * 4
        group = data[pair:pair + 4]
        u, v = (group[1], group[3]) if name == "yuyv" else (group[0], group[2])
        luma = group[(x % 2) * 2] if name == "yuyv" else group[(x % 2) * 2 + 1]
        c, d, e = luma - 16, u - 128, v - 128
        rgb = tuple(clamp(floor(Fraction(value + 128, 256)))
                    for value in (298 * c + 409 * e, 298 * c - 100 * d - 208 * e, 298 * c + 516 * d))
        return rgb, clamp(floor(Fraction(298 * c + 128, 256)))
    if name in ("rgb565", "rgb565be"):
        word = int.from_bytes(data[at:at + 2], "little" if name == "rgb565" else "big")
        r, g, b = word >> 11, word >> 5 & 63, word & 31
        rgb = (r * 8 + r // 4, g * 4 + g // 16, b * 8 + b // 4)
    else:
        rgb = tuple(data[at:at + 3]) if name == "rgb888" else tuple(reversed(data[at:at + 3]))
    return rgb, floor(Fraction(19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768, 65536))


def expected(case, data):
    fmt, width, height, stride, crop, dtype, out_w, out_h, channels, filt, zero, scale, mean, std = case
    stride = stride or width * PIXEL_BYTES[fmt]
    x0, y0, w, h = crop if crop[2] else (0, 0, width, height)

    def pixel(x, y):
        rgb, grey = colour(data, stride, fmt, x0 + x, y0 + y)
        return rgb if channels == 3 else (grey,)

    def place(i, n, m):
        return min(max(Fraction(floor(Fraction(256 * (2 * i + 1) * m, 2 * n)) - 128, 256), Fraction(0)), Fraction(m - 1))

    result = b""
    for oy in range(out_h):
        for ox in range(out_w):
            if filt == NEAREST:
                values = pixel(floor(Fraction((2 * ox + 1) * w, 2 * out_w)), floor(Fraction((2 * oy + 1) * h, 2 * out_h)))
            else:
                px, py = place(ox, out_w, w), place(oy, out_h, h)
                sums = [Fraction(0)] * channels
                for y in {floor(py), min(floor(py) + 1, h - 1)}:
                    for x in {floor(px), min(floor(px) + 1, w - 1)}:
                        weight = max(0, 1 - abs(px - x)) * max(0, 1 - abs(py - y))
                        sums = [s + weight * v for s, v in zip(sums, pixel(x, y))]
                values = [floor(s + Fraction(1, 2)) for s in sums]
            for c, value in enumerate(values):
                real = f32(f32(value - f32(mean[c])) / f32(std[c] or 1.0))
                if dtype == FLOAT32:
                    result += struct.pack("f", real)
                    continue
                at = Fraction(f32(real / f32(scale)))
                rounded = floor(abs(at) + Fraction(1, 2)) * (1 if at >= 0 else -1) + zero
                result += bytes([clamp(rounded, -128, 127) & 255 if dtype == INT8 else clamp(rounded)])
    return result


class Camera(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.makedirs(BUILD, exist_ok=True)
        path = os.path.join(BUILD, "main.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(MAIN)
        cls.programs = {}
        for compiler in filter(shutil.which, ("gcc", "clang")):
            cls.programs[compiler] = os.path.join(BUILD, compiler)
            run(compiler, *STRICT, "-Wextra", "-Wconversion", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
                "-I" + os.path.join(ROOT, "include"), path, "-o", cls.programs[compiler])

    def convert(self, case, data, compiler="gcc", size=None):
        fmt, width, height, stride, crop, dtype, out_w, out_h, channels, filt, zero, scale, mean, std = case
        if size is None:
            size = out_w * out_h * channels * (4 if dtype == FLOAT32 else 1)
        numbers = [len(data), fmt, width, height, stride, *crop, dtype, out_w, out_h, channels, filt, zero, size, scale, *mean, *std]
        done = subprocess.run([self.programs[compiler], *map(str, numbers)], input=data, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        status, tensor = struct.unpack("i", done.stdout[:4])[0], done.stdout[4:]
        self.assertEqual(tensor[:64] + tensor[-64:], b"\xee" * 128, "bytes beside the tensor were written")
        return status, tensor[64:-64]

    def test_frames_of_every_format_become_what_the_formulas_say(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        for compiler in self.programs:
            for fmt in range(len(FORMATS)):
                for channels in (1, 3):
                    for filt in (NEAREST, BILINEAR):
                        for dtype in (INT8, UINT8, FLOAT32):
                            width, height = rng.choice((1, 2, 5, 16, 31)), rng.choice((1, 3, 8, 17))
                            width += width % 2 if FORMATS[fmt] in ("yuyv", "uyvy") else 0
                            stride = rng.choice((0, width * PIXEL_BYTES[fmt] + rng.choice((0, 1, 7))))
                            crop = (0, 0, 0, 0)
                            if rng.random() < 0.5:
                                w, h = rng.randint(1, width), rng.randint(1, height)
                                crop = (rng.randint(0, width - w), rng.randint(0, height - h), w, h)
                            data = rng.randbytes((stride or width * PIXEL_BYTES[fmt]) * height)
                            scale, zero = rng.choice(((1 / 255, -128), (1.0, 0), (0.0078125, 3), (2.5, 127)))
                            zero = max(zero, 0) if dtype == UINT8 else zero
                            mean = [rng.choice((0.0, 127.5, 103.94)) for _ in range(3)]
                            std = [rng.choice((0.0, 255.0, 58.395)) for _ in range(3)]
                            case = (fmt, width, height, stride, crop, dtype, rng.choice((1, 3, 12, 33)), rng.choice((1, 4, 9)),
                                    channels, filt, zero, f32(scale), [f32(m) for m in mean], [f32(s) for s in std])
                            with self.subTest(seed=seed, compiler=compiler, case=case):
                                status, tensor = self.convert(case, data, compiler)
                                self.assertEqual(status, 0)
                                self.assertEqual(tensor.hex(), expected(case, data).hex())

    def test_known_colours(self):
        plain = ((0, 0, 0, 0), UINT8, 1, 1, 3, NEAREST, 0, 1.0, [0.0] * 3, [0.0] * 3)
        for fmt, data, rgb in (("rgb888", bytes([1, 2, 3]), (1, 2, 3)), ("bgr888", bytes([1, 2, 3]), (3, 2, 1)),
                               ("rgb565", bytes([0x00, 0xf8]), (255, 0, 0)), ("rgb565be", bytes([0x07, 0xe0]), (0, 255, 0)),
                               ("rgb565", bytes([0x1f, 0x00]), (0, 0, 255)), ("grey8", b"\x42", (0x42,) * 3)):
            with self.subTest(fmt):
                self.assertEqual(self.convert((FORMATS.index(fmt), 1, 1, 0, *plain), data), (0, bytes(rgb)))
        # BT.601's black, white and pure red (Y 81, U 90, V 240).
        for luma, u, v, rgb in ((16, 128, 128, (0, 0, 0)), (235, 128, 128, (255, 255, 255)), (81, 90, 240, (255, 0, 0))):
            with self.subTest(luma=luma):
                self.assertEqual(self.convert((FORMATS.index("yuyv"), 2, 1, 0, *plain), bytes([luma, u, luma, v])), (0, bytes(rgb)))
                self.assertEqual(self.convert((FORMATS.index("uyvy"), 2, 1, 0, *plain), bytes([u, luma, v, luma])), (0, bytes(rgb)))

    def test_what_cannot_be_is_refused_before_anything_is_written(self):
        good = [FORMATS.index("rgb888"), 4, 4, 0, (0, 0, 0, 0), INT8, 2, 2, 3, BILINEAR, 0, 1.0, [0.0] * 3, [1.0] * 3]
        self.assertEqual(self.convert(good, bytes(48))[0], 0)
        for position, value in ((0, 7), (1, 0), (1, 8193), (2, 0), (3, 11), (4, (1, 0, 4, 4)), (4, (0, 1, 4, 4)), (4, (0, 0, 5, 1)),
                                (4, (0, 0, 1, 0)), (4, (1, 0, 0, 0)), (4, (4294967295, 0, 2, 2)), (5, 3), (6, 0), (6, 8193), (7, 0),
                                (8, 2), (8, 4), (9, 2), (11, 0.0), (11, -1.0), (11, float("nan")), (13, [1.0, -1.0, 1.0]), *UNSAFE):
            with self.subTest(position=position, value=value):
                bad = list(good)
                bad[position] = value
                status, tensor = self.convert(bad, bytes(48), size=48)
                self.assertEqual(status, -1)
                self.assertEqual(tensor, b"\xee" * 48)
        for zero_point, status in ((-1, -1), (256, -1), (255, 0)):
            self.assertEqual(self.convert([*good[:5], UINT8, *good[6:10], zero_point, *good[11:]], bytes(48))[0], status)
        odd = [FORMATS.index("yuyv"), 3, *good[2:]]
        self.assertEqual(self.convert(odd, bytes(48))[0], -1)


class Sample(unittest.TestCase):
    def test_digits_in_the_middle_of_a_frame_are_recognised(self):
        """The pixels of the model's own test inputs, each three by three, with stripes beside them that the crop leaves out."""
        plan, code = os.path.join(BUILD, "digits.qplan"), os.path.join(BUILD, "digits_c")
        program, frame = os.path.join(BUILD, "camera"), os.path.join(BUILD, "frame.raw")
        run(QPLAN, "pack", DIGITS, "-o", plan)
        run(QPLAN, "emit-c", plan, "-o", code, "--name", "digits")
        run("gcc", *STRICT, "-Wextra", "-I" + os.path.join(ROOT, "include"), "-I" + code,
            os.path.join(ROOT, "samples", "camera", "main.c"), *sources(code), LIBRARY, "-Wl,--gc-sections", "-o", program)
        data = os.path.join(ROOT, "tests", "data", "digits")
        for digit in range(10):
            pixels = [byte ^ 0x80 for byte in read(os.path.join(data, f"digit{digit}_input.bin"))]
            scores = struct.unpack("10b", read(os.path.join(data, f"digit{digit}_output.bin")))
            for name, pack in (("grey8", lambda v: bytes([v])), ("rgb888", lambda v: bytes([v] * 3)),
                               ("rgb565", lambda v: struct.pack("<H", (v >> 3) << 11 | (v >> 2) << 5 | v >> 3))):
                with self.subTest(digit=digit, format=name):
                    side = b"".join(pack(255 * (x % 2)) for x in range(8))
                    rows = [side + b"".join(pack(v) * 3 for v in pixels[16 * y:16 * y + 16]) + side for y in range(16)]
                    with open(frame, "wb") as file:
                        file.write(b"".join(row * 3 for row in rows))
                    self.assertEqual(run(program, name, "64", "48", frame), f"class {scores.index(max(scores))}\n")
        done = subprocess.run([program, "grey8", "64", "480", frame], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, b""))


if __name__ == "__main__":
    QPLAN, LIBRARY, BUILD = (os.path.abspath(argument) for argument in sys.argv[1:4])
    unittest.main(argv=sys.argv[:1], verbosity=2)
