"""Pictures that claim to be larger than they are, or nothing at all: refused within bounded memory."""

import struct
import unittest
import zlib

from support import SHARED, CommandTest, run

# The memory that the largest accepted picture may take: the file, 512 MiB of the decoder, 96 MiB of pixels,
# the program.
ADDRESS_SPACE = 1_000_000_000
GREY, COLOUR, PALETTE, COLOUR_AND_ALPHA = 0, 2, 3, 6
SAMPLES = {GREY: 1, COLOUR: 3, PALETTE: 1, COLOUR_AND_ALPHA: 4}


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth=8, colour=GREY, data_bytes=None, palette=b""):
    """A PNG of zeros; data_bytes of them, where that is not what the header promises."""
    if data_bytes is None:
        data_bytes = (1 + (width * SAMPLES[colour] * depth + 7) // 8) * height
    compressor, data = zlib.compressobj(9), b""
    piece = bytes(1 << 20)
    for _ in range(data_bytes >> 20):
        data += compressor.compress(piece)
    data += compressor.compress(bytes(data_bytes & (1 << 20) - 1)) + compressor.flush()
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + palette + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def bmp(width, height):
    """A BMP of 24 bits with one pixel of data."""
    return (b"BM" + struct.pack("<IIIIiiHHIIIIII", 58, 0, 54, 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0) + bytes(4))


class HostilePictures(CommandTest):
    def run_picture(self, name, data):
        return run("run", self.plan, "--input", self.file(name, data), address_space=ADDRESS_SPACE)

    def setUp(self):
        super().setUp()
        if run("--version", address_space=ADDRESS_SPACE).returncode != 0:
            self.skipTest("this build (with a sanitizer?) does not start within a limited address space")

    def refuse_picture(self, texts, name, data):
        result = self.run_picture(name, data)
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        for text in [name, *texts]:
            self.assertIn(text, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_no_pixels(self):
        self.refuse_picture(["0 x 1 pixels", "at least 1 x 1"], "zero_width.bmp", bmp(0, 1))
        self.refuse_picture(["1 x 0 pixels", "at least 1 x 1"], "zero_height.bmp", bmp(1, 0))
        for width, height in ((0, 1), (1, 0)):
            self.refuse_picture([], "zero.png", png(width, height, data_bytes=4))

    def test_more_pixels_than_the_limit(self):
        self.refuse_picture(["16384 x 16384 pixels", "33554432"], "huge.png", png(16384, 16384, depth=1, data_bytes=100))
        self.refuse_picture(["8193 x 4096 pixels", "33554432"], "huge.png", png(8193, 4096, data_bytes=100))
        self.refuse_picture(["16384"], "wide.png", png(16385, 1, data_bytes=100))
        self.refuse_picture(["16384"], "wide.bmp", bmp(1 << 20, 1))
        self.refuse_picture([], "negative.bmp", bmp(-5, 1))
        self.refuse_picture([], "lowest.bmp", bmp(1, -(1 << 31)))

    def test_data_that_grow_beyond_the_picture(self):
        # 1 GB of zeros in 1 MB of file, in a picture of one pixel.
        self.refuse_picture(["512 MiB"], "bomb.png", png(1, 1, data_bytes=1 << 30))

    def test_the_largest_picture_is_read(self):
        for name, data in {
            "grey.png": png(8192, 4096),
            "bits.png": png(8192, 4096, depth=1),
            "palette.png": png(8192, 4096, colour=PALETTE, palette=chunk(b"PLTE", bytes(6))),
        }.items():
            result = self.run_picture(name, data)
            self.assertEqual((result.returncode, result.stderr), (0, ""), name)

    def test_more_bits_than_memory_allows(self):
        self.refuse_picture(["512 MiB", "8 bits"], "deep.png", png(8192, 4096, depth=16, colour=COLOUR_AND_ALPHA))

    def test_damaged_pngs(self):
        good = png(16, 16)
        self.assertEqual(self.run_picture("good.png", good).returncode, 0)
        data = good.index(b"IDAT") - 4
        for at, chunk_name in ((30, "IHDR at byte 8"), (data + 12, f"IDAT at byte {data}"), (len(good) - 1, "IEND")):
            damaged = bytearray(good)
            damaged[at] ^= 0x55
            self.refuse_picture(["is damaged", chunk_name, "checksum"], "damaged.png", damaged)
        self.refuse_picture(["is damaged: it ends without its chunk IEND"], "no_end.png", good[:-12])
        self.refuse_picture([f"it ends within its chunk IDAT at byte {data}"], "half.png", good[:-20])

    def test_half_of_a_bmp(self):
        whole = bmp(16, 16)[:-4] + bytes(16 * 16 * 3)
        self.assertEqual(self.run_picture("whole.bmp", whole).returncode, 0)
        self.refuse_picture(["is damaged", f"has {54 + 384} bytes", f"need {54 + 768}"], "half.bmp", whole[:54 + 384])

    def test_many_scans(self):
        self.refuse_picture(["501 scans"], "scans.jpg", jpeg_with_scans(501))

    def test_files_without_an_end(self):
        (self.folder / "zero.png").symlink_to("/dev/zero")
        (self.folder / "zero.npy").symlink_to("/dev/zero")
        for name in ("/dev/zero", self.folder / "zero.png", self.folder / "zero.npy"):
            result = run("run", self.plan, "--input", name, address_space=ADDRESS_SPACE)
            self.assertEqual(result.returncode, 1)
            self.assertIn("has more than", result.stderr)

    def test_sparse_files_are_not_read(self):
        for name in ("x.bin", "x.png", "x.npy"):
            path = self.file(name, b"")
            with open(path, "r+b") as file:
                file.truncate(1 << 36)
            result = run("run", self.plan, "--input", path, address_space=ADDRESS_SPACE)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"has {1 << 36} bytes", result.stderr)


@unittest.skipUnless((SHARED / "repro").is_dir(), f"no reproducers in '{SHARED}' (QPLAN_SHARED)")
class Reproducers(CommandTest):
    def test_are_refused(self):
        for name, text in (("zero_width.bmp", "at least 1 x 1"), ("g16.png", "33554432"), ("big1.png", "33554432")):
            with self.subTest(name):
                self.refused(1, [name, text], "run", self.plan, "--input", SHARED / "repro" / name)


def jpeg_with_scans(count):
    """The header of a grey JPEG of 8 x 8 pixels, and scans without data."""
    header = b"\xff\xd8\xff\xc2\x00\x0b\x08\x00\x08\x00\x08\x01\x01\x11\x00"
    return header + b"\xff\xda\x00\x08\x01\x01\x00\x00\x00\x00" * count + b"\xff\xd9"


if __name__ == "__main__":
    unittest.main()
