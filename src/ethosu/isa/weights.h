// Weights and scales as the device reads them: the order of weights, their bit stream (MLW), and the entries
// of bias and scale.
#ifndef QPLAN_SRC_ETHOSU_ISA_WEIGHTS_H_
#define QPLAN_SRC_ETHOSU_ISA_WEIGHTS_H_

#include <stddef.h>
#include <stdint.h>

#include "src/ethosu/isa/architecture.h"

namespace qplan::ethosu {

// The order in which a core reads the weights of a kernel.
struct WeightOrder {
  uint32_t outputs = 1;  // of this core
  uint32_t inputs = 1;   // depthwise: 1
  uint32_t taps_h = 1, taps_w = 1;
  uint32_t dilation_y = 1, dilation_x = 1;
  uint32_t block_d = 8;  // of the output, of this core
  uint32_t unit_d = 8;   // of the output
  bool is_depthwise = false;
  bool is_part_kernel_first = false;
  bool is_ifm16 = false;
};

// Calls visit(o, ky, kx, i) for each weight in order; o is outputs or more, or ky is taps_h, or i is inputs
// or more where the device reads a zero.
template <typename Visit>
void visit_weights(const WeightOrder& w, const Visit& visit) {
  const uint32_t step = w.is_part_kernel_first || w.is_ifm16 ? 16 : 32;
  const uint32_t sub_h = 8 / w.dilation_y, sub_w = 8 / w.dilation_x;
  const uint32_t inputs = w.is_depthwise ? 1 : w.inputs;
  for (uint32_t ob = 0; ob < w.outputs; ob += w.block_d) {
    const uint32_t block = least(w.block_d, w.outputs - ob);
    for (uint32_t ib = 0; ib < inputs; ib += step) {
      for (uint32_t sy = 0; sy < w.taps_h; sy += sub_h) {
        for (uint32_t sx = 0; sx < w.taps_w; sx += sub_w) {
          const uint32_t width = least(sub_w, w.taps_w - sx);
          const uint32_t taps = least(sub_h, w.taps_h - sy) * width;
          const uint32_t outer_end = w.is_part_kernel_first ? least(step, inputs - ib) : 1;
          const uint32_t inner_end = w.is_part_kernel_first || w.is_depthwise ? 1 : step;
          uint32_t rounded = taps;
          if (w.is_part_kernel_first) rounded = round_up(taps, w.is_ifm16 ? 2 : 4);
          if (w.is_depthwise) rounded = round_up(taps, 4);
          for (uint32_t io = 0; io < outer_end; io += kIfmUnitDepth) {
            for (uint32_t ou = 0; ou < block; ou += w.unit_d) {
              for (uint32_t t = 0; t < rounded; ++t) {
                const bool is_tap = t < taps;
                const uint32_t ky = is_tap ? sy + t / width : w.taps_h, kx = is_tap ? sx + t % width : 0;
                for (uint32_t ii = 0; ii < inner_end; ii += kIfmUnitDepth) {
                  for (uint32_t o = 0; o < w.unit_d; ++o) {
                    // Outputs beyond the block are those of the next one: they are zeros here.
                    const uint32_t out = ou + o < block ? ob + ou + o : w.outputs;
                    for (uint32_t i = 0; i < (w.is_depthwise ? 1 : kIfmUnitDepth); ++i)
                      visit(out, ky, kx, ib + io + ii + i);
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}

uint64_t num_ordered_weights(const WeightOrder& order);  // visit_weights's calls

constexpr int32_t kMaxWeight = 255;  // by its magnitude

// Decodes a stream of weights into to[0 .. capacity). *count: how many there are.
[[nodiscard]] Problem decode_weights(const uint8_t* bytes, uint64_t size, int16_t* to, uint64_t capacity,
                                     uint64_t* count);

// 10 bytes: bias of 40 bits, multiplier, shift.
constexpr uint32_t kScaleEntryBytes = 10;
struct ScaleEntry {
  int64_t bias = 0;
  uint32_t multiplier = 0;
  uint32_t shift = 0;
};
void write_scale_entry(const ScaleEntry& entry, uint8_t* to);
ScaleEntry read_scale_entry(const uint8_t* from);

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_WEIGHTS_H_
