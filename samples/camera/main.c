/* A frame of a camera into a model that `qplan emit-c` wrote (README.md). The largest square in the middle of
 * the frame is resized to the model's input; the class with the highest score is printed. C99. camera FORMAT
 * WIDTH HEIGHT FILE     FORMAT: grey8, rgb888, rgb565, yuyv; the file has the rows without gaps */
#include <qplan/camera.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"

static uint8_t pixels[1 << 22]; /* on a board: the buffer that the camera's DMA writes */

static int format_of(const char* name, uint32_t* format) {
  static const char* const kNames[] = {"grey8", "rgb888", "rgb565", "yuyv"};
  static const uint32_t kFormats[] = {QPLAN_CAMERA_GREY8, QPLAN_CAMERA_RGB888, QPLAN_CAMERA_RGB565,
                                      QPLAN_CAMERA_YUYV};
  for (int i = 0; i < 4; ++i) {
    if (strcmp(name, kNames[i]) != 0) continue;
    *format = kFormats[i];
    return 1;
  }
  return 0;
}

/* Width or height: 1 to 65535, in digits. */
static int extent_of(const char* text, uint32_t* extent) {
  char* end;
  const unsigned long value = strtoul(text, &end, 10);
  *extent = (uint32_t)value;
  return text[0] >= '0' && text[0] <= '9' && *end == '\0' && value >= 1 && value <= 65535;
}

int main(int argc, char** argv) {
  static const uint32_t kShape[] = DIGITS_INPUT0_SHAPE; /* batch, height, width, channels */
  qplan_camera_frame frame = {0};
  if (argc != 5 || !format_of(argv[1], &frame.format) || !extent_of(argv[2], &frame.width) ||
      !extent_of(argv[3], &frame.height)) {
    fprintf(stderr, "usage: camera grey8|rgb888|rgb565|yuyv WIDTH HEIGHT FILE    (1 to 65535 pixels)\n");
    return 2;
  }
  FILE* const file = fopen(argv[4], "rb");
  if (file == NULL) {
    fprintf(stderr, "camera: '%s' cannot be opened\n", argv[4]);
    return 1;
  }
  const size_t size = fread(pixels, 1, sizeof(pixels), file);
  fclose(file);
  frame.pixels = pixels;
  const uint64_t needed = (uint64_t)frame.width * frame.height * qplan_camera_pixel_bytes(frame.format);
  if (needed > size) {
    fprintf(stderr, "camera: '%s' has %lu bytes, expected %llu\n", argv[4], (unsigned long)size,
            (unsigned long long)needed);
    return 1;
  }
  const uint32_t side = frame.width < frame.height ? frame.width : frame.height;
  frame.crop_x = (frame.width - side) / 2;
  frame.crop_y = (frame.height - side) / 2;
  frame.crop_width = side;
  frame.crop_height = side;

  if (digits_init() != 0) return 1;
  qplan_camera_tensor input = {0};
  input.data = digits_input(0);
  input.type = QPLAN_CAMERA_INT8;
  input.height = kShape[1];
  input.width = kShape[2];
  input.channels = kShape[3];
  input.filter = QPLAN_CAMERA_BILINEAR;
  input.scale = DIGITS_INPUT0_SCALE;
  input.zero_point = DIGITS_INPUT0_ZERO_POINT;
  input.std[0] = 255.0f; /* the model was trained with pixels from 0 to 1 */
  if (qplan_camera_to_tensor(&frame, &input) != 0) {
    fprintf(stderr, "camera: a frame of %s x %s pixels cannot be converted\n", argv[2], argv[3]);
    return 1;
  }
  if (digits_run() != 0) return 1;
  const int8_t* const scores = digits_output(0);
  size_t best = 0;
  for (size_t i = 1; i < DIGITS_OUTPUT0_ELEMENTS; ++i) {
    if (scores[i] > scores[best]) best = i;
  }
  printf("class %lu\n", (unsigned long)best);
  return 0;
}
