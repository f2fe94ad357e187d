"""scikit-learn's bundled handwritten digits as the network sees them: 16 x 16 bytes, light strokes on black."""
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from images import resize_bilinear, to_bytes

SIZE = 16           # of the network's input
SAMPLE_SIZE = 160   # of the pictures a person looks at; a multiple of SIZE, so that resizing back samples the
                    # same points of the same linear pieces


def load():
    """Returns (train, held_out), each (uint8 [n, 8, 8] with 0..255, labels). The split never changes."""
    digits = load_digits()
    pixels = to_bytes(digits.images * (255.0 / 16.0))
    train_x, held_x, train_y, held_y = train_test_split(pixels, digits.target, test_size=0.2, random_state=20240817,
                                                        stratify=digits.target)
    return (train_x, train_y), (held_x, held_y)


def network_input(picture):
    """uint8 [h, w] of any size -> int8 [SIZE, SIZE], as `qplan run` does: resize, then byte - 128."""
    resized = to_bytes(resize_bilinear(picture, SIZE, SIZE))
    return (resized.astype(np.int16) - 128).astype(np.int8)


def network_inputs(pictures):
    return np.stack([network_input(picture) for picture in pictures])


def sample_picture(pixels):
    """uint8 [8, 8] -> uint8 [SAMPLE_SIZE, SAMPLE_SIZE], large enough to be recognised."""
    return to_bytes(resize_bilinear(pixels, SAMPLE_SIZE, SAMPLE_SIZE))
