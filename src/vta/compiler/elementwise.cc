#include "src/vta/compiler/elementwise.h"

#include <algorithm>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/vta/compiler/alu_stream.h"
#include "src/vta/compiler/step_list.h"

namespace qplan::target::vta {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The largest part of `extent` that is at most `limit`, such that parts are equal but for the last.
int64_t even_part(int64_t extent, int64_t limit) {
  return ceil_div(extent, ceil_div(extent, std::min(extent, limit)));
}

// Whole rows where they fit, else part of one, else some of its channels.
Extent choose_part(const ActivationLayout& layout, int64_t limit) {
  const int64_t blocks = layout.channel_blocks(), row = layout.w * blocks;
  if (row <= limit) return {even_part(layout.h, limit / row), layout.w, blocks};
  if (blocks <= limit) return {1, even_part(layout.w, limit / blocks), blocks};
  return {1, 1, even_part(blocks, limit)};
}

}  // namespace

Elementwise make_clip(std::string name, int32_t min, int32_t max) {
  StepList s;
  s.clamp(min, max);
  // A copy is an operation too.
  if (s.steps().empty()) s.immediate(::qplan::vta::AluOp::kMax, AccBlock::kAccumulator, -128);
  return {std::move(name), {AccBlock::kAccumulator}, s.steps(), {}};
}

CompiledUnit compile_elementwise(const Config& config, const Elementwise& elementwise,
                                 std::span<const ActivationLayout> inputs, const ActivationLayout& output) {
  for (const ActivationLayout& layout : inputs) {
    const int64_t row = std::max(layout.row_elements(), output.row_elements());
    if (row > kMaxDmaStride) {
      throw PackError(QPLAN_MODEL_UNSUPPORTED,
                      cat("vta: '", elementwise.name, "': a row of ", row,
                          " elements, the strides of load and store reach ", kMaxDmaStride));
    }
  }
  int64_t temporaries = num_temporaries(elementwise.steps);
  for (const AccBlock block : elementwise.operands)
    temporaries = std::max(temporaries, static_cast<int64_t>(block));
  const auto num_constants = static_cast<int64_t>(elementwise.constants.size());
  const int64_t left = int64_t{config.acc_elements} - num_constants;
  const int64_t all = output.h * output.w * output.channel_blocks();
  // One piece if all fits, else two slots if they fit, the next piece for the time that one is stored.
  const bool is_one_piece = all <= left / (1 + temporaries);
  const int64_t slots = is_one_piece || left < 2 + temporaries ? 1 : 2;
  if (left < slots + temporaries) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    cat("vta: '", elementwise.name, "': ", num_constants, " constants and ",
                        slots + temporaries, " elements for its smallest piece, the accumulators have ",
                        config.acc_elements, "; use a configuration with larger memories"));
  }
  const Extent part = choose_part(output, left / (slots + temporaries));

  AluStream stream(config, elementwise.constants, inputs.size(), slots);
  int64_t slot = 0;
  for (int64_t y = 0; y < output.h; y += part.rows) {
    for (int64_t x = 0; x < output.w; x += part.cols) {
      for (int64_t b = 0; b < output.channel_blocks(); b += part.blocks) {
        const Extent piece = {std::min(part.rows, output.h - y), std::min(part.cols, output.w - x),
                              std::min(part.blocks, output.channel_blocks() - b)};
        std::vector<Plane> planes = {dense_plane(num_constants + slot * part.elements(), piece)};
        for (int64_t t = 0; t < temporaries; ++t)
          planes.push_back(dense_plane(num_constants + (slots + t) * part.elements(), piece));
        const Box box = {y, x, piece.rows, piece.cols, b, piece.blocks};
        for (size_t i = 0; i < inputs.size(); ++i)
          stream.load(i, inputs[i], box, planes[static_cast<size_t>(elementwise.operands[i])].base);
        add_steps(elementwise.steps, piece, planes, &stream);
        stream.store(output, box, planes[0].base);
        slot = (slot + 1) % slots;
      }
    }
  }
  return stream.finish(elementwise.name);
}

}  // namespace qplan::target::vta
