// Tensors that are parts of others: where init accepts them, and that they save copies and change nothing
// else.
#include <gtest/gtest.h>

#include "kernels/layout.h"
#include "src/runtime/bind/family.h"
#include "tests/runtime/session_fixture.h"

namespace qplan::testing::parts_test {
namespace {

// x [1,24] and y [1,40], copied to a and b; (a, b) -> whole [1,64]; whole -> (c, d) of 40 and 24; copied to
// p and q, the outputs. Tensors in this order. a and b are parts of the whole, and so are c and d.
PlanSpec parts_spec() {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({1, 24}, "x"), y = spec.add_tensor({1, 40}, "y");
  const uint32_t a = spec.add_tensor({1, 24}, "a"), b = spec.add_tensor({1, 40}, "b");
  const uint32_t whole = spec.add_tensor({1, 64}, "whole");
  const uint32_t c = spec.add_tensor({1, 40}, "c"), d = spec.add_tensor({1, 24}, "d");
  const uint32_t p = spec.add_tensor({1, 40}, "p"), q = spec.add_tensor({1, 24}, "q");
  spec.add_step(kKernel_copy, {x}, {a}, copy_params(0));
  spec.add_step(kKernel_copy, {y}, {b}, copy_params(0));
  spec.add_step(kKernel_concat, {a, b}, {whole}, concat_params(1), "join");
  spec.add_step(kKernel_split, {whole}, {c, d}, split_params(1), "cut");
  spec.add_step(kKernel_copy, {c}, {p}, copy_params(0));
  spec.add_step(kKernel_copy, {d}, {q}, copy_params(0));
  spec.add_main({x, y}, {p, q});
  const uint64_t at = spec.tensors[whole].offset;
  spec.tensors[a].offset = at;
  spec.tensors[b].offset = at + 24;
  spec.tensors[c].offset = at;
  spec.tensors[d].offset = at + 40;
  return spec;
}
enum : uint32_t { kX, kY, kA, kB, kWhole, kC, kD, kP, kQ };

qplan_session_config config_of_all_kernels() {
  qplan_session_config config = config_of();
  config.kernels = qplan_kernels_all();
  return config;
}

void expect_right(qplan_session* session) {
  HostTensor x({1, 24}, counting(24, 1)), y({1, 40}, counting(40, 100));
  HostTensor p({1, 40}, counting(40)), q({1, 24}, counting(24));
  EXPECT_EQ(qplan_session_write(session, 0, &x.tensor), QPLAN_OK);
  EXPECT_EQ(qplan_session_write(session, 1, &y.tensor), QPLAN_OK);
  EXPECT_EQ(qplan_session_invoke(session), QPLAN_OK);
  EXPECT_EQ(qplan_session_read(session, 0, &p.tensor), QPLAN_OK);
  EXPECT_EQ(qplan_session_read(session, 1, &q.tensor), QPLAN_OK);
  std::vector<uint8_t> all = x.bytes;
  all.insert(all.end(), y.bytes.begin(), y.bytes.end());
  EXPECT_EQ(p.bytes, std::vector<uint8_t>(all.begin(), all.begin() + 40));
  EXPECT_EQ(q.bytes, std::vector<uint8_t>(all.begin() + 40, all.end()));
}

TEST(PartsOfTensors, LieInTheirWholes) {
  const TestPlan plan(parts_spec());
  const TestSession session(plan, config_of_all_kernels());
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  expect_right(session.get());
  expect_right(session.get());
}

TEST(PartsOfTensors, SomeLieInTheirWholesAndOthersApart) {
  for (uint32_t apart = 0; apart < 16; ++apart) {
    PlanSpec spec = parts_spec();
    const uint32_t parts[] = {kA, kB, kC, kD};
    for (uint32_t i = 0; i < 4; ++i) {
      if ((apart >> i & 1) != 0) spec.tensors[parts[i]].offset = spec.add_range(0, 40);
    }
    const TestPlan plan(spec);
    const TestSession session(plan, config_of_all_kernels());
    ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
    expect_right(session.get());
  }
}

std::string refusal(void (*change)(PlanSpec&)) {
  PlanSpec spec = parts_spec();
  change(spec);
  const TestPlan plan(spec);
  const TestSession session(plan, config_of_all_kernels());
  EXPECT_EQ(session.status(), QPLAN_PLAN_CORRUPT);
  return session.text();
}

TEST(PartsOfTensors, NowhereButInTheirPlaces) {
  const std::string join = "concat 'join' (step 2): output 0 overlaps input ";
  EXPECT_EQ(refusal([](PlanSpec& s) { s.tensors[kA].offset += 1; }), join + "0 in memory");
  EXPECT_EQ(refusal([](PlanSpec& s) { s.tensors[kA].offset -= 1; }), join + "0 in memory");
  EXPECT_EQ(refusal([](PlanSpec& s) { s.tensors[kB].offset -= 1; }), join + "1 in memory");
  EXPECT_EQ(refusal([](PlanSpec& s) { s.tensors[kB].offset += 1; }), join + "1 in memory");
  EXPECT_EQ(refusal([](PlanSpec& s) { s.steps[2].inputs = {kB, kA}; }), join + "0 in memory");
  const std::string cut = "split 'cut' (step 3): output ";
  EXPECT_EQ(refusal([](PlanSpec& s) { s.tensors[kC].offset += 1; }), cut + "0 overlaps input 0 in memory");
  EXPECT_EQ(refusal([](PlanSpec& s) { s.tensors[kD].offset -= 1; }), cut + "1 overlaps input 0 in memory");
  EXPECT_EQ(refusal([](PlanSpec& s) { s.tensors[kD].offset += 1; }), cut + "1 overlaps input 0 in memory");
}

// One tensor as both inputs: it is in one of its places and not in the other.
TEST(PartsOfTensors, NotTwice) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({1, 32}, "x"), a = spec.add_tensor({1, 32}, "a");
  const uint32_t whole = spec.add_tensor({1, 64}, "whole"), out = spec.add_tensor({1, 64}, "out");
  spec.add_step(kKernel_copy, {x}, {a}, copy_params(0));
  spec.add_step(kKernel_concat, {a, a}, {whole}, concat_params(1), "join");
  spec.add_step(kKernel_copy, {whole}, {out}, copy_params(0));
  spec.add_main({x}, {out});
  for (const uint64_t at : {0u, 32u}) {
    spec.tensors[a].offset = spec.tensors[whole].offset + at;
    const TestPlan plan(spec);
    EXPECT_EQ(TestSession(plan, config_of_all_kernels()).text(),
              "concat 'join' (step 1): output 0 overlaps input " + std::to_string(at == 0) + " in memory");
  }
}

// Rows of an input that are not one range of the output.
TEST(PartsOfTensors, NotWhereTheyAreSpread) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({2, 16}, "x"), a = spec.add_tensor({2, 16}, "a");
  const uint32_t whole = spec.add_tensor({2, 32}, "whole"), out = spec.add_tensor({2, 32}, "out");
  spec.add_step(kKernel_copy, {x}, {a}, copy_params(0));
  spec.add_step(kKernel_concat, {a, x}, {whole}, concat_params(1), "join");
  spec.add_step(kKernel_copy, {whole}, {out}, copy_params(0));
  spec.add_main({x}, {out});
  spec.tensors[a].offset = spec.tensors[whole].offset;
  const TestPlan plan(spec);
  EXPECT_EQ(TestSession(plan, config_of_all_kernels()).text(),
            "concat 'join' (step 1): output 0 overlaps input 0 in memory");
}

// A tensor that a caller can bind is not a part and has none, because binding moves that tensor alone.
TEST(PartsOfTensors, NotWithInputsAndOutputsOfTheFunction) {
  EXPECT_EQ(refusal([](PlanSpec& s) {
              s.functions[0].outputs = {kA, kQ};
            }),
            "concat 'join' (step 2): output 0 overlaps input 0 in memory");
  EXPECT_EQ(refusal([](PlanSpec& s) {
              s.functions[0].outputs = {kP, kD};
            }),
            "split 'cut' (step 3): output 1 overlaps input 0 in memory");
  EXPECT_EQ(refusal([](PlanSpec& s) {
              s.functions[0].outputs = {kWhole, kQ};
            }),
            "concat 'join' (step 2): output 0 overlaps input 0 in memory");
}

// x [1,8,8,4], copied to a; a -> b [1,4,4,8] by a conv2d of 3x3 pixels, every other one; b copied to y.
enum : uint32_t { kConvX, kConvA, kConvB, kConvY };
PlanSpec convolution_spec(uint32_t pad = 0) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({1, 8, 8, 4}, "x"), a = spec.add_tensor({1, 8, 8, 4}, "a");
  const uint32_t b = spec.add_tensor({1, 4, 4, 8}, "b"), y = spec.add_tensor({1, 4, 4, 8}, "y");
  const std::vector<int32_t> multiplier(16, 1 << 30), zeros(16, 0), shift(16, -5);
  const auto bytes_of = [](const std::vector<int32_t>& values) {
    std::vector<uint8_t> bytes(4 * values.size());
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  };
  const uint32_t w = spec.add_constant({288}, counting(288, 3));
  const uint32_t bias = spec.add_constant({16}, bytes_of(zeros), "", 0, 32);
  const uint32_t m = spec.add_constant({16}, bytes_of(multiplier), "", 0, 32);
  const uint32_t s = spec.add_constant({16}, bytes_of(shift), "", 0, 32);
  spec.add_step(kKernel_copy, {x}, {a}, copy_params(0));
  spec.add_step(
      kKernel_conv2d, {a, w, bias, m, s}, {b},
      [pad](flatbuffers::FlatBufferBuilder& builder) {
        return std::pair(format::KernelParams_Conv2dParams,
                         format::CreateConv2dParams(builder, format::Contract_TFL2, kLayout_o2r4, 3, 3, 2, 2,
                                                    1, 1, pad, pad, 1, 0, 0, 0, 0, -128, 127)
                             .Union());
      },
      "conv");
  spec.add_step(kKernel_copy, {b}, {y}, copy_params(0));
  spec.add_main({x}, {y}, 64);
  return spec;
}

// What a run does between two pieces of a step: it counts, and cancels itself.
struct Yields {
  uint32_t count = 0;
  uint32_t cancel_at = UINT32_MAX;
  qplan_session* session = nullptr;
};

struct Convolved {
  qplan_status status;
  std::vector<uint8_t> bytes;
};

Convolved convolved(const PlanSpec& spec, uint32_t num_threads, Yields* yields = nullptr) {
  const TestPlan plan(spec);
  // Tasks in the reverse order.
  qplan_thread_pool pool = {};
  pool.struct_size = sizeof pool;
  pool.num_threads = num_threads;
  pool.parallel_for = [](void*, uint32_t count, void (*task)(void*, uint32_t, uint32_t), void* ctx) {
    for (uint32_t i = count; i-- > 0;) task(ctx, i, 0);
  };
  qplan_session_config config = config_of_all_kernels();
  qplan_platform platform = {};
  platform.struct_size = sizeof platform;
  platform.thread_pool = &pool;
  if (yields != nullptr) {
    platform.user = yields;
    platform.yield_work = 1024;  // a row of the convolution has 1,152 operations
    platform.yield = [](void* user) {
      auto* self = static_cast<Yields*>(user);
      if (++self->count == self->cancel_at) qplan_session_cancel(self->session);
    };
  }
  config.platform = &platform;
  const TestSession session(plan, config);
  EXPECT_EQ(session.status(), QPLAN_OK) << session.text();
  if (yields != nullptr) yields->session = session.get();
  HostTensor x({1, 8, 8, 4}, counting(256, 1)), y({1, 4, 4, 8}, counting(128));
  EXPECT_EQ(qplan_session_write(session.get(), 0, &x.tensor), QPLAN_OK);
  const qplan_status status = qplan_session_invoke(session.get());
  if (status == QPLAN_OK) {
    EXPECT_EQ(qplan_session_read(session.get(), 0, &y.tensor), QPLAN_OK);
  }
  return {status, y.bytes};
}

PlanSpec overwriting_spec() {
  PlanSpec spec = convolution_spec();
  spec.tensors[kConvB].offset = spec.tensors[kConvA].offset;
  spec.steps[1].min_units_per_task = 1;
  return spec;
}

// The same bytes as apart, with any number of threads: the rows depend on one another.
TEST(PartsOfTensors, AConvolutionIsWrittenOverTheBeginningOfItsInput) {
  const std::vector<uint8_t> expected = convolved(convolution_spec(), 1).bytes;
  EXPECT_NE(expected, std::vector<uint8_t>(128, expected[0]));
  for (uint32_t threads = 1; threads <= 4; ++threads) {
    EXPECT_EQ(convolved(overwriting_spec(), threads).bytes, expected) << threads << " threads";
    Yields yields;
    EXPECT_EQ(convolved(overwriting_spec(), threads, &yields).bytes, expected) << threads << " threads";
    EXPECT_EQ(yields.count, 6u) << "the four rows, and the two copies";
  }
}

TEST(PartsOfTensors, SuchAConvolutionEndsAfterTheRowThatIsCancelled) {
  Yields yields;
  yields.cancel_at = 3;  // the copy, and two rows
  EXPECT_EQ(convolved(overwriting_spec(), 2, &yields).status, QPLAN_CANCELLED);
  EXPECT_EQ(yields.count, 3u);
}

TEST(PartsOfTensors, AConvolutionIsWrittenOverNothingThatItReadsLater) {
  const auto text = [](PlanSpec spec, uint64_t at) {
    spec.tensors[kConvB].offset = spec.tensors[kConvA].offset + at;
    const TestPlan plan(spec);
    return std::string(TestSession(plan, config_of_all_kernels()).text());
  };
  const std::string refused = "conv2d 'conv' (step 1): output 0 overlaps input 0 in memory";
  EXPECT_EQ(text(convolution_spec(), 1), refused);
  EXPECT_EQ(text(convolution_spec(), 128), refused);
  EXPECT_EQ(text(convolution_spec(1), 0), refused);
  PlanSpec bound = convolution_spec();
  bound.functions[0].outputs = {kConvY, kConvB};
  EXPECT_EQ(text(bound, 0), refused);
}

}  // namespace
}  // namespace qplan::testing::parts_test
