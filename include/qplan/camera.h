/* camera.h -- a camera's frame as the input of a model. C99 and C++17, functions of this header alone,
 * without heap and without the library. */
#ifndef QPLAN_CAMERA_H_
#define QPLAN_CAMERA_H_

#include <stddef.h>
#include <stdint.h>

#include "qplan/firmware.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a frame has its pixels, row by row. Values of RGB565 become r << 3 | r >> 2 and g << 2 | g >> 4. YUYV
 * and UYVY have two pixels in four bytes, in the limited range of ITU-R BT.601: with c = y - 16, d = u - 128,
 * e = v - 128 r = (298 c + 409 e + 128) >> 8, g = (298 c - 100 d - 208 e + 128) >> 8, b = (298 c + 516 d +
 * 128) >> 8, rounded down and clamped to [0, 255]; as grey, (298 c + 128) >> 8. */
enum {
  QPLAN_CAMERA_GREY8 = 0,
  QPLAN_CAMERA_RGB888 = 1,
  QPLAN_CAMERA_BGR888 = 2,
  QPLAN_CAMERA_RGB565 = 3,            /* little-endian halfwords, red in the top bits */
  QPLAN_CAMERA_RGB565_BIG_ENDIAN = 4, /* the high byte first, as many sensors send it */
  QPLAN_CAMERA_YUYV = 5,              /* also called YUV422, YUY2 */
  QPLAN_CAMERA_UYVY = 6
};
enum { QPLAN_CAMERA_INT8 = 0, QPLAN_CAMERA_UINT8 = 1, QPLAN_CAMERA_FLOAT32 = 2 };
/* Where output pixel i of n is in m pixels of the frame: nearest takes pixel floor((2 i + 1) m / (2 n)).
 * Bilinear is at p = floor(256 (2 i + 1) m / (2 n)) - 128 in 256ths of a pixel, clamped to [0, 256 (m - 1)],
 * in both directions; with fractions x and y in 256ths it is (sum of the four pixels * their weights + 32768)
 * >> 16, weights (256 - x) (256 - y) and so on. Nothing is averaged where the frame is much larger. */
enum { QPLAN_CAMERA_NEAREST = 0, QPLAN_CAMERA_BILINEAR = 1 };

/* The most pixels that a frame or an input has in one direction. */
#define QPLAN_CAMERA_MAX_EXTENT 8192u

/* A frame in memory, and which part of it is meant. */
typedef struct qplan_camera_frame {
  const void* pixels;
  uint32_t format;        /* QPLAN_CAMERA_GREY8, ... */
  uint32_t width, height; /* pixels, at most QPLAN_CAMERA_MAX_EXTENT; of YUYV and UYVY an even width */
  uint32_t stride;        /* bytes from one row to the next; 0: rows follow each other */
  uint32_t crop_x, crop_y, crop_width,
      crop_height; /* the part that becomes the input; 0 by 0: the whole frame */
} qplan_camera_frame;

/* A tensor of one image [height, width, channels]. Its elements are real = (pixel - mean) / std of each
 * channel as float32, and of 8-bit types real / scale as qplan_quantize_value rounds it. An std of 0 counts
 * as 1. Mean, std and scale are finite, and the zero point is a value of the type. One channel is grey,
 * (19595 r + 38470 g + 7471 b + 32768) >> 16 of colours; three are red, green and blue. */
typedef struct qplan_camera_tensor {
  void* data;
  uint32_t type;                    /* QPLAN_CAMERA_INT8, ... */
  uint32_t width, height, channels; /* channels: 1 or 3 */
  uint32_t filter;                  /* QPLAN_CAMERA_NEAREST or _BILINEAR */
  float scale; /* these two: of 8-bit types; the model's header or qplan_tensor_info states them */
  int32_t zero_point;
  float mean[3], std[3]; /* what the model was trained with: 0 and 255 for pixels from 0 to 1 */
} qplan_camera_tensor;

/* ---- parts ---- */

/* The nearest value from 0 to 255. */
static inline uint8_t qplan_camera_clamp(int32_t value) {
  return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}
/* value / 256 rounded down, of values above -2^20 */
static inline int32_t qplan_camera_div256(int32_t value) {
  return (int32_t)((uint32_t)(value + (1 << 20)) >> 8) - 4096;
}

/* Bytes from one pixel to the next, on average. */
static inline uint32_t qplan_camera_pixel_bytes(uint32_t format) {
  return format == QPLAN_CAMERA_GREY8 ? 1u : format <= QPLAN_CAMERA_BGR888 ? 3u : 2u;
}

/* Pixel x of a row: one value of grey or three of colour. */
static inline void qplan_camera_pixel(const uint8_t* row, uint32_t format, uint32_t x, uint32_t channels,
                                      uint8_t* to) {
  const uint8_t* at = row + (size_t)x * qplan_camera_pixel_bytes(format);
  uint8_t r, g, b;
  switch (format) {
    case QPLAN_CAMERA_RGB888:
      r = at[0];
      g = at[1];
      b = at[2];
      break;
    case QPLAN_CAMERA_BGR888:
      r = at[2];
      g = at[1];
      b = at[0];
      break;
    case QPLAN_CAMERA_RGB565:
    case QPLAN_CAMERA_RGB565_BIG_ENDIAN: {
      const uint32_t high = format == QPLAN_CAMERA_RGB565 ? at[1] : at[0];
      const uint32_t low = format == QPLAN_CAMERA_RGB565 ? at[0] : at[1];
      const uint32_t r5 = high >> 3, g6 = (high & 7u) << 3 | low >> 5, b5 = low & 31u;
      r = (uint8_t)(r5 << 3 | r5 >> 2);
      g = (uint8_t)(g6 << 2 | g6 >> 4);
      b = (uint8_t)(b5 << 3 | b5 >> 2);
      break;
    }
    case QPLAN_CAMERA_YUYV:
    case QPLAN_CAMERA_UYVY: {
      const uint32_t y_at = format == QPLAN_CAMERA_YUYV ? 0u : 1u;
      const uint8_t* pair = row + (size_t)(x & ~1u) * 2u;
      const int32_t c = 298 * ((int32_t)pair[(x & 1u) * 2u + y_at] - 16) + 128;
      const int32_t d = (int32_t)pair[1u - y_at] - 128, e = (int32_t)pair[3u - y_at] - 128;
      if (channels == 1u) {
        to[0] = qplan_camera_clamp(qplan_camera_div256(c));
        return;
      }
      to[0] = qplan_camera_clamp(qplan_camera_div256(c + 409 * e));
      to[1] = qplan_camera_clamp(qplan_camera_div256(c - 100 * d - 208 * e));
      to[2] = qplan_camera_clamp(qplan_camera_div256(c + 516 * d));
      return;
    }
    default:
      to[0] = at[0];
      if (channels == 3u) to[1] = to[2] = at[0];
      return;
  }
  if (channels == 1u) {
    to[0] = (uint8_t)((19595u * r + 38470u * g + 7471u * b + 32768u) >> 16);
    return;
  }
  to[0] = r;
  to[1] = g;
  to[2] = b;
}

/* A walk along one axis of n output pixels over m of the frame, without a division for each. */
typedef struct qplan_camera_walk {
  uint32_t at, rest;        /* (2 i + 1) m = at * 2 n + rest */
  uint32_t step, step_rest; /* the same of 2 m */
  uint32_t twice_n, m;
} qplan_camera_walk;

/* At output pixel 0. */
static inline qplan_camera_walk qplan_camera_begin(uint32_t n, uint32_t m) {
  qplan_camera_walk walk;
  walk.twice_n = 2u * n;
  walk.m = m;
  walk.at = m / walk.twice_n;
  walk.rest = m % walk.twice_n;
  walk.step = 2u * m / walk.twice_n;
  walk.step_rest = 2u * m % walk.twice_n;
  return walk;
}
/* To the next output pixel. */
static inline void qplan_camera_next(qplan_camera_walk* walk) {
  walk->at += walk->step;
  walk->rest += walk->step_rest;
  if (walk->rest >= walk->twice_n) {
    walk->rest -= walk->twice_n;
    ++walk->at;
  }
}
/* Where a bilinear pixel is, in 256ths. */
static inline uint32_t qplan_camera_position(const qplan_camera_walk* walk) {
  const uint32_t p = walk->at * 256u + walk->rest * 256u / walk->twice_n;
  const uint32_t last = (walk->m - 1u) * 256u;
  return p < 128u ? 0u : p - 128u > last ? last : p - 128u;
}

/* What a frame or tensor must be; 0 or -1. */
static inline int32_t qplan_camera_check(const qplan_camera_frame* frame, const qplan_camera_tensor* tensor) {
  const uint32_t max = QPLAN_CAMERA_MAX_EXTENT;
  const float max_float = 3.402823466e+38f;
  uint32_t c;
  if (frame == NULL || tensor == NULL || frame->pixels == NULL || tensor->data == NULL) return -1;
  if (frame->format > QPLAN_CAMERA_UYVY || tensor->type > QPLAN_CAMERA_FLOAT32) return -1;
  if (tensor->filter > QPLAN_CAMERA_BILINEAR || (tensor->channels != 1u && tensor->channels != 3u)) return -1;
  if (frame->width < 1u || frame->width > max || frame->height < 1u || frame->height > max) return -1;
  if (tensor->width < 1u || tensor->width > max || tensor->height < 1u || tensor->height > max) return -1;
  if (frame->format >= QPLAN_CAMERA_YUYV && frame->width % 2u != 0u) return -1;
  if (frame->stride != 0u && frame->stride < frame->width * qplan_camera_pixel_bytes(frame->format))
    return -1;
  if ((frame->crop_width == 0u) != (frame->crop_height == 0u)) return -1;
  if (frame->crop_width > frame->width || frame->crop_x > frame->width - frame->crop_width) return -1;
  if (frame->crop_height > frame->height || frame->crop_y > frame->height - frame->crop_height) return -1;
  if (frame->crop_width == 0u && (frame->crop_x != 0u || frame->crop_y != 0u)) return -1;
  for (c = 0; c < tensor->channels; ++c) {
    if (!(tensor->std[c] >= 0.0f && tensor->std[c] <= max_float)) return -1;
    if (!(tensor->mean[c] >= -max_float && tensor->mean[c] <= max_float)) return -1;
  }
  if (tensor->type != QPLAN_CAMERA_FLOAT32) {
    const int32_t low = tensor->type == QPLAN_CAMERA_INT8 ? -128 : 0;
    if (!(tensor->scale > 0.0f && tensor->scale <= max_float)) return -1;
    if (tensor->zero_point < low || tensor->zero_point > low + 255) return -1;
  }
  return 0;
}

/* The real value of a channel's pixel. */
static inline float qplan_camera_real(const qplan_camera_tensor* tensor, uint32_t channel, uint32_t pixel) {
  const float std = tensor->std[channel] == 0.0f ? 1.0f : tensor->std[channel];
  return ((float)pixel - tensor->mean[channel]) / std;
}

/* Writes the frame, or the part of it, to the tensor. 0, or -1 (QPLAN_INVALID_ARGUMENT) for what cannot be:
 * then nothing is written. Takes about 1,000 bytes of stack: a table of what the 256 values of a channel
 * become. */
static inline int32_t qplan_camera_to_tensor(const qplan_camera_frame* frame,
                                             const qplan_camera_tensor* tensor) {
  uint8_t table[3][256];
  uint32_t stride, width, height, c, i, out_y;
  qplan_camera_walk walk_y;
  size_t element = 0;
  if (qplan_camera_check(frame, tensor) != 0) return -1;
  stride = frame->stride != 0u ? frame->stride : frame->width * qplan_camera_pixel_bytes(frame->format);
  width = frame->crop_width != 0u ? frame->crop_width : frame->width;
  height = frame->crop_height != 0u ? frame->crop_height : frame->height;
  for (c = 0; tensor->type != QPLAN_CAMERA_FLOAT32 && c < tensor->channels; ++c) {
    const int32_t low = tensor->type == QPLAN_CAMERA_INT8 ? -128 : 0;
    for (i = 0; i < 256u; ++i) {
      table[c][i] = (uint8_t)qplan_quantize_value(qplan_camera_real(tensor, c, i), tensor->scale,
                                                  tensor->zero_point, low, low + 255);
    }
  }
  walk_y = qplan_camera_begin(tensor->height, height);
  for (out_y = 0; out_y < tensor->height; ++out_y, qplan_camera_next(&walk_y)) {
    const uint32_t y256 =
        tensor->filter == QPLAN_CAMERA_BILINEAR ? qplan_camera_position(&walk_y) : walk_y.at * 256u;
    const uint32_t y = y256 / 256u, fy = y256 % 256u;
    const uint8_t* const rows = (const uint8_t*)frame->pixels;
    const uint8_t* const row = rows + (size_t)(frame->crop_y + y) * stride;
    const uint8_t* const below = fy != 0u ? row + stride : row;
    qplan_camera_walk walk_x = qplan_camera_begin(tensor->width, width);
    uint32_t out_x;
    for (out_x = 0; out_x < tensor->width; ++out_x, qplan_camera_next(&walk_x)) {
      uint8_t pixel[3];
      if (tensor->filter == QPLAN_CAMERA_NEAREST) {
        qplan_camera_pixel(row, frame->format, frame->crop_x + walk_x.at, tensor->channels, pixel);
      } else {
        const uint32_t x256 = qplan_camera_position(&walk_x);
        const uint32_t x = frame->crop_x + x256 / 256u, fx = x256 % 256u, right = fx != 0u ? x + 1u : x;
        uint8_t a[3], b[3], d[3], e[3];
        qplan_camera_pixel(row, frame->format, x, tensor->channels, a);
        qplan_camera_pixel(row, frame->format, right, tensor->channels, b);
        qplan_camera_pixel(below, frame->format, x, tensor->channels, d);
        qplan_camera_pixel(below, frame->format, right, tensor->channels, e);
        for (c = 0; c < tensor->channels; ++c) {
          const uint32_t top = a[c] * (256u - fx) + b[c] * fx, bottom = d[c] * (256u - fx) + e[c] * fx;
          pixel[c] = (uint8_t)((top * (256u - fy) + bottom * fy + 32768u) >> 16);
        }
      }
      for (c = 0; c < tensor->channels; ++c, ++element) {
        if (tensor->type == QPLAN_CAMERA_FLOAT32) {
          ((float*)tensor->data)[element] = qplan_camera_real(tensor, c, pixel[c]);
        } else {
          ((uint8_t*)tensor->data)[element] = table[c][pixel[c]];
        }
      }
    }
  }
  return 0;
}

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_CAMERA_H_ */
