"""Pictures: the resizing of `qplan run`, and a PNG writer for 8-bit grey."""
import struct
import zlib

import numpy as np


def resize_bilinear(image, height, width):
    """Half-pixel centres, clamped edges, float64, no antialiasing: what `qplan run` does. Returns float64 [h, w]."""

    def taps(size_in, size_out):
        centre = (np.arange(size_out, dtype=np.float64) + 0.5) * (size_in / size_out) - 0.5
        below = np.floor(centre)
        weight = centre - below
        low = np.clip(below, 0, size_in - 1).astype(int)
        high = np.clip(below + 1, 0, size_in - 1).astype(int)
        return low, high, weight

    image = np.asarray(image, dtype=np.float64)
    y0, y1, wy = taps(image.shape[0], height)
    x0, x1, wx = taps(image.shape[1], width)
    rows0 = image[y0][:, x0] * (1 - wx) + image[y0][:, x1] * wx
    rows1 = image[y1][:, x0] * (1 - wx) + image[y1][:, x1] * wx
    return rows0 * (1 - wy)[:, None] + rows1 * wy[:, None]


def to_bytes(image):
    """Rounds half up to 0..255."""
    return np.clip(np.floor(image + 0.5), 0, 255).astype(np.uint8)


def write_png(path, pixels):
    """pixels: uint8 [height, width]."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    height, width = pixels.shape
    rows = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))  # filter 0 before each row
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bits, grey
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9))
                   + chunk(b"IEND", b""))
