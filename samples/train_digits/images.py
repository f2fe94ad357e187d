"""Pictures: the resizing of `qplan run`, and PNG files of 8-bit grey."""
import numpy as np
from PIL import Image


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
    Image.fromarray(pixels, "L").save(path, optimize=True)
