/* The convolutions and fully connected layers of a model, one after the other, by XNNPACK: a peer of
 * benchmarks/boards.sh. Reads from standard input a line for each layer (benchmarks/xnnpack.sh writes them):
 *
 *   <qs8|qu8> <height> <width> <channels> of the input, <height> <width> <channels> of the output,
 *   <height> <width> of the kernel, <stride down> <across>, <dilation down> <across>, <pad above> <left>,
 * <groups>
 *
 * int8 weights have a scale for each channel, uint8 weights have one, as in the models. Their values are
 * arbitrary: no instruction depends on them. Instructions are counted from begin_of_layers to end_of_layers.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xnnpack.h>

enum { kMaxLayers = 256 };

/* The counting plugin looks for their addresses. */
__attribute__((noinline)) void begin_of_layers(void) { __asm__ volatile(""); }
__attribute__((noinline)) void end_of_layers(void) { __asm__ volatile(""); }

static void check(bool is_right, const char* what, size_t layer) {
  if (is_right) return;
  fprintf(stderr, "xnnpack_layers: layer %zu: %s failed\n", layer, what);
  exit(1);
}

static void* filled(size_t size) {
  uint8_t* bytes = malloc(size);
  if (bytes == NULL) abort();
  for (size_t i = 0; i < size; ++i) bytes[i] = (uint8_t)(i * 37 % 251);
  return bytes;
}

static uint32_t padding_after(uint32_t output, uint32_t stride, uint32_t kernel, uint32_t dilation,
                              uint32_t input, uint32_t before) {
  const uint32_t reach = (output - 1) * stride + (kernel - 1) * dilation + 1;
  return reach > input + before ? reach - input - before : 0;
}

int main(void) {
  check(xnn_initialize(NULL) == xnn_status_success, "xnn_initialize", 0);
  xnn_operator_t layers[kMaxLayers];
  size_t count = 0;
  char type[4];
  uint32_t n[15];
  while (count < kMaxLayers && scanf("%3s", type) == 1) {
    for (size_t i = 0; i < 15; ++i) check(scanf("%" SCNu32, &n[i]) == 1, "reading a number", count);
    const uint32_t in_h = n[0], in_w = n[1], in_c = n[2], out_h = n[3], out_w = n[4], out_c = n[5],
                   groups = n[14];
    const uint32_t bottom = padding_after(out_h, n[8], n[6], n[10], in_h, n[12]);
    const uint32_t right = padding_after(out_w, n[9], n[7], n[11], in_w, n[13]);
    const uint32_t flags = groups == in_c && groups > 1 ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0;
    void* weights = filled((size_t)out_c * n[6] * n[7] * (in_c / groups));
    float* scales = malloc(out_c * sizeof(float));
    int32_t* bias = calloc(out_c, sizeof(int32_t));
    for (uint32_t c = 0; c < out_c; ++c) scales[c] = 0.002f;
    /* XNNPACK reads a few bytes beyond its inputs. */
    void* input = filled((size_t)in_h * in_w * in_c + XNN_EXTRA_BYTES);
    void* output = filled((size_t)out_h * out_w * out_c + XNN_EXTRA_BYTES);
    xnn_operator_t layer = NULL;
    enum xnn_status created, set_up = xnn_status_success;
    if (strcmp(type, "qs8") == 0) {
      created =
          xnn_create_convolution2d_nhwc_qc8(n[12], right, bottom, n[13], n[6], n[7], n[8], n[9], n[10], n[11],
                                            groups, in_c / groups, out_c / groups, in_c, out_c, -128, 0.02f,
                                            scales, weights, bias, -128, 0.02f, -128, 127, flags, &layer);
      check(created == xnn_status_success, "xnn_create_convolution2d_nhwc_qc8", count);
      set_up = xnn_setup_convolution2d_nhwc_qc8(layer, 1, in_h, in_w, input, output, NULL);
    } else {
      created = xnn_create_convolution2d_nhwc_qu8(
          n[12], right, bottom, n[13], n[6], n[7], n[8], n[9], n[10], n[11], groups, in_c / groups,
          out_c / groups, in_c, out_c, 0, 0.02f, 121, 0.002f, weights, bias, 0, 0.02f, 0, 255, flags, &layer);
      check(created == xnn_status_success, "xnn_create_convolution2d_nhwc_qu8", count);
      set_up = xnn_setup_convolution2d_nhwc_qu8(layer, 1, in_h, in_w, input, output, NULL);
    }
    check(set_up == xnn_status_success, "xnn_setup_convolution2d", count);
    layers[count++] = layer;
  }
  for (size_t i = 0; i < count; ++i) {
    check(xnn_run_operator(layers[i], NULL) == xnn_status_success, "xnn_run_operator", i);
  }
  begin_of_layers();
  for (size_t i = 0; i < count; ++i) (void)xnn_run_operator(layers[i], NULL);
  end_of_layers();
  printf("%zu layers\n", count);
  return 0;
}
