/* The convolutions and fully connected layers of a model, one after the other, by XNNPACK: a peer of
 * benchmarks/boards.sh and of benchmarks/xnnpack_float.sh, which write what it reads from standard input, a
 * line for each layer:
 *
 *   <qs8|qu8|f32> <height> <width> <channels> of the input, <height> <width> <channels> of the output,
 *   <height> <width> of the kernel, <stride down> <across>, <dilation down> <across>, <pad above> <left>,
 * <groups>
 *
 * int8 weights have a scale for each channel, uint8 weights have one, as in the models. Their values are
 * arbitrary: no instruction depends on them. Instructions are counted from begin_of_layers to end_of_layers.
 *
 * With an argument, so many milliseconds of runs, it prints the smallest time of each layer in ns instead.
 */
#define _POSIX_C_SOURCE 199309L
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

/* No subnormal numbers, which take longer. */
static float* reals(size_t count) {
  float* values = malloc((count + XNN_EXTRA_BYTES) * sizeof(float));
  if (values == NULL) abort();
  for (size_t i = 0; i < count; ++i) values[i] = (float)(i * 37 % 251) / 128.0f - 0.9f;
  return values;
}

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void print_times(xnn_operator_t* layers, size_t count, uint64_t milliseconds) {
  uint64_t least[kMaxLayers];
  for (size_t i = 0; i < count; ++i) least[i] = UINT64_MAX;
  const uint64_t end = now_ns() + milliseconds * 1000000u;
  do {
    for (size_t i = 0; i < count; ++i) {
      const uint64_t begin = now_ns();
      (void)xnn_run_operator(layers[i], NULL);
      const uint64_t time = now_ns() - begin;
      if (time < least[i]) least[i] = time;
    }
  } while (now_ns() < end);
  for (size_t i = 0; i < count; ++i) printf("%" PRIu64 "\n", least[i]);
}

static uint32_t padding_after(uint32_t output, uint32_t stride, uint32_t kernel, uint32_t dilation,
                              uint32_t input, uint32_t before) {
  const uint32_t reach = (output - 1) * stride + (kernel - 1) * dilation + 1;
  return reach > input + before ? reach - input - before : 0;
}

int main(int argc, char** argv) {
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
    const size_t num_inputs = (size_t)in_h * in_w * in_c, num_outputs = (size_t)out_h * out_w * out_c;
    const size_t num_weights = (size_t)out_c * n[6] * n[7] * (in_c / groups);
    const bool is_float = strcmp(type, "f32") == 0;
    void* weights = is_float ? (void*)reals(num_weights) : filled(num_weights);
    float* scales = malloc(out_c * sizeof(float));
    int32_t* bias = calloc(out_c, sizeof(int32_t));
    for (uint32_t c = 0; c < out_c; ++c) scales[c] = 0.002f;
    /* XNNPACK reads a few bytes beyond its inputs. */
    void* input = is_float ? (void*)reals(num_inputs) : filled(num_inputs + XNN_EXTRA_BYTES);
    void* output = is_float ? (void*)reals(num_outputs) : filled(num_outputs + XNN_EXTRA_BYTES);
    xnn_operator_t layer = NULL;
    enum xnn_status created, set_up = xnn_status_success;
    if (is_float) {
      created = xnn_create_convolution2d_nhwc_f32(n[12], right, bottom, n[13], n[6], n[7], n[8], n[9], n[10],
                                                  n[11], groups, in_c / groups, out_c / groups, in_c, out_c,
                                                  weights, reals(out_c), 0.0f, 6.0f, flags, &layer);
      check(created == xnn_status_success, "xnn_create_convolution2d_nhwc_f32", count);
      set_up = xnn_setup_convolution2d_nhwc_f32(layer, 1, in_h, in_w, input, output, NULL);
    } else if (strcmp(type, "qs8") == 0) {
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
  if (argc > 1) {
    print_times(layers, count, strtoul(argv[1], NULL, 10));
    return 0;
  }
  begin_of_layers();
  for (size_t i = 0; i < count; ++i) (void)xnn_run_operator(layers[i], NULL);
  end_of_layers();
  printf("%zu layers\n", count);
  return 0;
}
