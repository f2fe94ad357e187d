// What a plan as C that calls kernels has of its own, whatever the plan: the macro by which steps call
// kernels, and the loop of a cascade.
#ifndef QPLAN_SRC_PACKER_EMIT_DIRECT_TEXT_H_
#define QPLAN_SRC_PACKER_EMIT_DIRECT_TEXT_H_

namespace qplan::emit {

// The macro by which steps call kernels, in C.
inline constexpr char kPiecesText[] =
    R"(/* Runs a kernel's work items [0, count). Where QPLAN_YIELD is defined it runs `piece` of them at a time, and calls
 * QPLAN_YIELD() after each. */
#if defined(QPLAN_YIELD)
#define QPLAN_RUN(kernel, args, count, piece, scratch) \
  do { \
    uint32_t item; \
    for (item = 0u; item < (count); item += (piece)) { \
      kernel(args, item, (count) - item < (piece) ? (count) : item + (piece), scratch); \
      QPLAN_YIELD(); \
    } \
  } while (0)
#else
#define QPLAN_RUN(kernel, args, count, piece, scratch) kernel(args, 0u, count, scratch)
#define QPLAN_YIELD() ((void)0)
#endif

)";

// Layers of a cascade, in C: as src/runtime/cascade_run.cc goes about it, for layers that are all
// convolutions. Pools look like one, whose kernel is a function that calls the pool's (kPoolText).
inline constexpr char kCascadeText[] =
    R"(/* Layers that run a few rows at a time: what lies between two of them is a tile, which holds the rows that the
 * next rows of output are made of. */
struct cascade_layer {
  const struct qplan_conv2d_args *args; /* of whole tensors */
  void (*run)(const struct qplan_conv2d_args *args, uint32_t begin, uint32_t end, void *scratch);
  uint32_t (*work_items)(const struct qplan_conv2d_args *args);
  uint32_t input_row_bytes;
  uint32_t output_row_bytes;
  uint8_t *tile; /* of the output; NULL: the last layer */
};
#define CASCADE_LAYERS_MAX 4u

struct rows {
  uint32_t begin;
  uint32_t end;
};

static struct rows rows_read(const struct qplan_conv2d_args *a, struct rows output) {
  const int32_t begin = (int32_t)(output.begin * a->stride_h) - (int32_t)a->pad_top;
  const int32_t end = (int32_t)((output.end - 1u) * a->stride_h + (a->kernel_h - 1u) * a->dilation_h + 1u) -
                      (int32_t)a->pad_top;
  struct rows input;
  input.begin = begin > 0 ? (uint32_t)begin : 0u;
  input.end = end < (int32_t)a->input_h ? (uint32_t)end : a->input_h;
  return input;
}

static void run_layer(const struct cascade_layer *layer, const uint8_t *input, uint8_t *output, uint32_t first_row,
                      struct rows make, void *scratch) {
  struct qplan_conv2d_args args = *layer->args;
  const struct rows need = rows_read(layer->args, make);
  args.pad_top = need.begin + args.pad_top - make.begin * args.stride_h;
  if (args.residual != NULL) {
    args.residual = (const uint8_t *)args.residual + (size_t)(first_row + make.begin) * layer->output_row_bytes;
  }
  args.batch = 1u;
  args.input = input;
  args.input_h = need.end - need.begin;
  args.output = output;
  args.output_h = make.end - make.begin;
  layer->run(&args, 0u, layer->work_items(&args), scratch);
}

static void run_cascade(const struct cascade_layer *layers, uint32_t count, uint32_t block_rows, void *scratch) {
  const struct qplan_conv2d_args *const last = layers[count - 1u].args;
  uint32_t image;
  for (image = 0u; image < last->batch; ++image) {
    struct rows held[CASCADE_LAYERS_MAX] = {{0u, 0u}};
    uint32_t row;
    for (row = 0u; row < last->output_h; row += block_rows) {
      struct rows make[CASCADE_LAYERS_MAX];
      uint32_t first = count - 1u;
      uint32_t i;
      make[first].begin = row;
      make[first].end = last->output_h - row < block_rows ? last->output_h : row + block_rows;
      /* From the output back: which rows each layer has to make. Those that a tile has already move to its front. */
      while (first > 0u) {
        const struct cascade_layer *const writer = &layers[first - 1u];
        const struct rows need = rows_read(layers[first].args, make[first]);
        struct rows *const have = &held[first - 1u];
        make[first - 1u] = need;
        if (need.begin < have->end) {
          if (need.begin > have->begin) {
            memmove(writer->tile, writer->tile + (size_t)(need.begin - have->begin) * writer->output_row_bytes,
                    (size_t)(have->end - need.begin) * writer->output_row_bytes);
          }
          make[first - 1u].begin = have->end;
        }
        *have = need;
        if (make[first - 1u].begin == make[first - 1u].end) {
          break;
        }
        --first;
      }
      for (i = first; i < count; ++i) {
        const struct cascade_layer *const layer = &layers[i];
        const struct rows need = rows_read(layer->args, make[i]);
        const uint8_t *input;
        uint8_t *output;
        if (i == 0u) {
          input = (const uint8_t *)layer->args->input +
                  (size_t)(image * layer->args->input_h + need.begin) * layer->input_row_bytes;
        } else {
          input = layers[i - 1u].tile + (size_t)(need.begin - held[i - 1u].begin) * layer->input_row_bytes;
        }
        if (layer->tile == NULL) {
          output = (uint8_t *)layer->args->output +
                   (size_t)(image * layer->args->output_h + make[i].begin) * layer->output_row_bytes;
        } else {
          output = layer->tile + (size_t)(make[i].begin - held[i].begin) * layer->output_row_bytes;
        }
        run_layer(layer, input, output, image * layer->args->output_h, make[i], scratch);
      }
      QPLAN_YIELD();
    }
  }
}

)";

// A pool among the layers of a cascade: its own arguments for the rows of a convolution that has its window.
inline constexpr char kPoolText[] =
    R"(static struct qplan_pool2d_args pool_rows(const struct qplan_pool2d_args *whole, const struct qplan_conv2d_args *rows) {
  struct qplan_pool2d_args args = *whole;
  args.batch = rows->batch;
  args.input = rows->input;
  args.input_h = rows->input_h;
  args.output = rows->output;
  args.output_h = rows->output_h;
  args.pad_top = rows->pad_top;
  return args;
}

)";

}  // namespace qplan::emit

#endif
