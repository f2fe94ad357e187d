// Convolutions as a compiler would tile them: row tiles, two halves of INP and of ACC, loads ahead of
// products ahead of stores. Expected values by direct convolution.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/vta/sim/sim_device.h"

namespace qplan::sim::convolution_test {
namespace {

using vta::AluOp;
using vta::Config;
using vta::Instruction;
using vta::Memory;
using vta::testing::alu_imm;
using vta::testing::gemm;
using vta::testing::load;
using vta::testing::store;

struct Convolution {
  uint32_t height, width;  // of the input with its border
  uint32_t in_blocks, out_blocks;
  uint32_t window, stride;
  uint32_t tile_rows;  // of the output
  uint32_t shift;
  uint32_t out_height() const { return (height - window) / stride + 1; }
  uint32_t out_width() const { return (width - window) / stride + 1; }
  uint32_t row_elements() const { return width * in_blocks; }
  uint32_t tile_inputs() const { return ((tile_rows - 1) * stride + window) * row_elements(); }
  uint32_t tile_outputs() const { return tile_rows * out_width() * out_blocks; }
  uint32_t taps() const { return window * window * in_blocks; }
  uint32_t num_weights() const { return out_blocks * taps(); }
};

// Slots: 0 micro-ops, 1 weights, 2 input, 3 output.
std::vector<uint8_t> compile(const Config& config, const Convolution& c,
                             const std::vector<uint8_t>& weights) {
  vta::testing::BlobBuilder builder(config);
  std::vector<vta::Uop> uops;  // products: [half][out block][tap], then one for each half of ACC
  for (uint32_t half = 0; half < 2; ++half) {
    for (uint32_t o = 0; o < c.out_blocks; ++o) {
      for (uint32_t tap = 0; tap < c.taps(); ++tap) {
        const uint32_t ky = tap / (c.window * c.in_blocks), kx = tap / c.in_blocks % c.window,
                       i = tap % c.in_blocks;
        uops.push_back(
            {static_cast<uint16_t>(half * c.tile_outputs() + o),
             static_cast<uint16_t>(half * c.tile_inputs() + ky * c.row_elements() + kx * c.in_blocks + i),
             static_cast<uint16_t>(o * c.taps() + tap)});
      }
    }
  }
  const auto first_plain = static_cast<uint32_t>(uops.size());
  for (uint32_t half = 0; half < 2; ++half) {
    const auto at = static_cast<uint16_t>(half * c.tile_outputs());
    uops.push_back({at, at, 0});
  }
  const uint32_t uop_region =
      builder.region(vta::RegionKind::kConstants, vta::testing::uops_raw(config, uops));
  const uint32_t weight_region = builder.region(vta::RegionKind::kWeights, weights);
  const uint32_t input = builder.region(vta::RegionKind::kInput, c.height * c.row_elements() * 16);
  const uint32_t output =
      builder.region(vta::RegionKind::kOutput, c.out_height() * c.out_width() * c.out_blocks * 16);
  builder.add(load(Memory::kUop, 0, 0, static_cast<uint32_t>(uops.size())), uop_region);
  builder.add(load(Memory::kWgt, 0, 0, c.num_weights()), weight_region);

  const uint32_t tiles = (c.out_height() + c.tile_rows - 1) / c.tile_rows;
  for (uint32_t t = 0; t < tiles; ++t) {
    const uint32_t half = t % 2, first = t * c.tile_rows,
                   rows = std::min(c.tile_rows, c.out_height() - first);
    const bool is_reused = t >= 2, is_needed = t + 2 < tiles;
    Instruction in = load(Memory::kInp, half * c.tile_inputs(), first * c.stride * c.row_elements(),
                          ((rows - 1) * c.stride + c.window) * c.row_elements());
    in.pop_next = is_reused;
    in.push_next = true;
    builder.add(in, input);

    Instruction clear = gemm(first_plain + half, first_plain + half + 1, true);
    clear.iter_out = static_cast<uint16_t>(rows);
    clear.iter_in = static_cast<uint16_t>(c.out_width() * c.out_blocks);
    clear.dst_factor_out = clear.iter_in;
    clear.dst_factor_in = 1;
    clear.pop_next = is_reused;
    builder.add(clear);
    for (uint32_t o = 0; o < c.out_blocks; ++o) {
      const uint32_t begin = (half * c.out_blocks + o) * c.taps();
      Instruction product = gemm(begin, begin + c.taps());
      product.iter_out = static_cast<uint16_t>(rows);
      product.iter_in = static_cast<uint16_t>(c.out_width());
      product.dst_factor_out = static_cast<uint16_t>(c.out_width() * c.out_blocks);
      product.dst_factor_in = static_cast<uint16_t>(c.out_blocks);
      product.src_factor_out = static_cast<uint16_t>(c.stride * c.row_elements());
      product.src_factor_in = static_cast<uint16_t>(c.stride * c.in_blocks);
      product.pop_prev = o == 0;
      product.push_prev = o + 1 == c.out_blocks && is_needed;
      builder.add(product);
    }
    const std::pair<AluOp, int32_t> steps[] = {
        {AluOp::kShr, static_cast<int32_t>(c.shift)}, {AluOp::kMax, -128}, {AluOp::kMin, 127}};
    for (const auto& [op, imm] : steps) {
      Instruction i = alu_imm(op, first_plain + half, first_plain + half + 1, imm);
      i.iter_out = clear.iter_out;
      i.iter_in = clear.iter_in;
      i.dst_factor_out = clear.dst_factor_out;
      i.dst_factor_in = 1;
      i.push_next = op == AluOp::kMin;
      builder.add(i);
    }
    Instruction out = store(half * c.tile_outputs(), first * c.out_width() * c.out_blocks,
                            rows * c.out_width() * c.out_blocks);
    out.pop_prev = true;
    out.push_prev = is_needed || t + 1 == tiles;
    builder.add(out, output);
  }
  builder.add(vta::testing::tokens("pop.next", vta::testing::finish()));
  return builder.build();
}

std::vector<uint8_t> directly(const Convolution& c, const std::vector<uint8_t>& x,
                              const std::vector<uint8_t>& w) {
  const uint32_t in = c.in_blocks * 16, out = c.out_blocks * 16;
  std::vector<uint8_t> y(c.out_height() * c.out_width() * out);
  for (uint32_t oy = 0; oy < c.out_height(); ++oy) {
    for (uint32_t ox = 0; ox < c.out_width(); ++ox) {
      for (uint32_t o = 0; o < out; ++o) {
        int64_t sum = 0;
        for (uint32_t ky = 0; ky < c.window; ++ky) {
          for (uint32_t kx = 0; kx < c.window; ++kx) {
            for (uint32_t i = 0; i < in; ++i) {
              // Weights: [O/16][KH][KW][I/16][16 o][16 i].
              const size_t tap = ((o / 16 * c.window + ky) * c.window + kx) * c.in_blocks + i / 16;
              sum += static_cast<int8_t>(x[((oy * c.stride + ky) * c.width + ox * c.stride + kx) * in + i]) *
                     static_cast<int8_t>(w[tap * 256 + o % 16 * 16 + i % 16]);
            }
          }
        }
        const int64_t scaled = sum >> c.shift;
        y[(oy * c.out_width() + ox) * out + o] = static_cast<uint8_t>(std::clamp<int64_t>(scaled, -128, 127));
      }
    }
  }
  return y;
}

// Gives the job's report.
qplan_npu_report check(const Config& config, const std::string& options, const Convolution& c,
                       uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> x(c.height * c.row_elements() * 16), w(c.num_weights() * 256);
  for (uint8_t& byte : x) byte = static_cast<uint8_t>(random());
  for (uint8_t& byte : w) byte = static_cast<uint8_t>(random());
  const std::vector<uint8_t> expected = directly(c, x, w);
  SimDevice d(options, 0, compile(config, c, w));
  const qplan_npu_buffer in = d.make_buffer(QPLAN_NPU_USE_INPUT, x.size());
  const qplan_npu_buffer out = d.make_buffer(QPLAN_NPU_USE_OUTPUT, expected.size());
  d.write(in, x);
  qplan_npu_job job = 0;
  EXPECT_EQ(d.submit(&job, {{2, 0, in, 0, x.size()}, {3, 0, out, 0, expected.size()}}), QPLAN_NPU_OK)
      << d.why.text;
  EXPECT_EQ(d.wait(job), QPLAN_NPU_OK) << "seed " << seed << ": " << d.report.text;
  EXPECT_EQ(d.read(out, expected.size()), expected) << "seed " << seed;
  EXPECT_EQ(d.report.vendor[QPLAN_NPU_SIM_HAZARDS], 0u);
  return d.report;
}

TEST(SimConvolution, ThreeByThreeInFourTiles) {
  const qplan_npu_report report = check(vta::kDefaultConfig, "explore=8", {18, 18, 2, 2, 3, 1, 4, 8}, 1);
  EXPECT_EQ(report.macs, uint64_t{16} * 16 * 32 * 32 * 9);
  EXPECT_EQ(report.vendor[QPLAN_NPU_SIM_INTERLEAVINGS], 8u);
  // Loads and stores overlap with the products, except for the first load and the last store.
  EXPECT_LE(report.cycles * 100, report.busy_cycles * 130);
}

TEST(SimConvolution, RandomShapesOnBothConfigurations) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const bool is_quarter = seed % 2 == 0;
    const Config& config = is_quarter ? vta::kQuarterConfig : vta::kDefaultConfig;
    Convolution c;
    do {
      c.window = 1 + random() % 3;
      c.stride = 1 + random() % 2;
      c.height = c.window + random() % 12;
      c.width = c.window + random() % 12;
      c.in_blocks = 1 + random() % 3;
      c.out_blocks = 1 + random() % 3;
      c.tile_rows = 1 + random() % 4;
      c.shift = random() % 12;
    } while (2 * c.tile_inputs() > config.inp_elements || 2 * c.tile_outputs() > config.acc_elements ||
             c.num_weights() > config.wgt_elements || 2 * c.num_weights() + 2 > config.uop_elements);
    check(config, is_quarter ? "sram=quarter,explore=6" : "explore=6", c, seed);
  }
}

}  // namespace
}  // namespace qplan::sim::convolution_test
