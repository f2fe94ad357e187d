// Tensors in and out: strides, offsets, binding, and the words for what does not fit.
#include <gtest/gtest.h>

#include <functional>

#include "tests/runtime/session_fixture.h"

namespace qplan::testing::bindings_test {
namespace {

class Bindings : public ::testing::Test {
 protected:
  Bindings() : plan_(sequence_spec()), session_(plan_, config_of()) {}

  std::vector<uint8_t> input() const {
    DLTensor view;
    EXPECT_EQ(qplan_session_view(session_.get(), QPLAN_INPUT, 0, &view), QPLAN_OK);
    const auto* bytes = static_cast<const uint8_t*>(view.data);
    return {bytes, bytes + 24};
  }
  // The output holds counting(24, 6).
  void run() {
    HostTensor in({2, 3, 4}, counting(24));
    ASSERT_EQ(qplan_session_write(session_.get(), 0, &in.tensor), QPLAN_OK);
    ASSERT_EQ(qplan_session_invoke(session_.get()), QPLAN_OK);
  }
  qplan_status write(const DLTensor& tensor) { return qplan_session_write(session_.get(), 0, &tensor); }
  qplan_status read(const DLTensor& tensor) { return qplan_session_read(session_.get(), 0, &tensor); }
  qplan_status bind(int direction, const DLTensor& tensor) {
    return qplan_session_bind(session_.get(), direction, 0, &tensor);
  }

  TestPlan plan_;
  TestSession session_;
};

// ---- view ----

TEST_F(Bindings, ViewDescribesTheBuffer) {
  DLTensor view;
  ASSERT_EQ(qplan_session_view(session_.get(), QPLAN_OUTPUT, 0, &view), QPLAN_OK);
  EXPECT_EQ(view.device.device_type, kDLCPU);
  EXPECT_EQ(view.ndim, 3);
  EXPECT_EQ(view.shape[1], 3);
  EXPECT_EQ(view.strides, nullptr);
  EXPECT_EQ(view.byte_offset, 0u);
  EXPECT_EQ(view.dtype.code, kDLInt);
  EXPECT_EQ(view.dtype.bits, 8);
  EXPECT_EQ(view.dtype.lanes, 1);
  run();
  EXPECT_EQ(memcmp(view.data, counting(24, 6).data(), 24), 0);
}

// ---- write and read ----

TEST_F(Bindings, WriteHonoursStrides) {
  // x[i][j][k] at i * 1 + j * 2 + k * 6: the axes in reverse order.
  HostTensor in({2, 3, 4}, counting(24));
  int64_t strides[] = {1, 2, 6};
  in.tensor.strides = strides;
  ASSERT_EQ(write(in.tensor), QPLAN_OK);
  std::vector<uint8_t> expected;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) expected.push_back(static_cast<uint8_t>(i + j * 2 + k * 6));
    }
  }
  EXPECT_EQ(input(), expected);
}

TEST_F(Bindings, WriteHonoursNegativeStridesAndByteOffset) {
  HostTensor in({2, 3, 4}, counting(30));
  int64_t strides[] = {-12, -4, -1};
  in.tensor.strides = strides;
  in.tensor.byte_offset = 25;  // the last element; data points before all of them
  ASSERT_EQ(write(in.tensor), QPLAN_OK);
  std::vector<uint8_t> expected;
  for (int i = 0; i < 24; ++i) expected.push_back(static_cast<uint8_t>(25 - i));
  EXPECT_EQ(input(), expected);
}

TEST_F(Bindings, WriteBroadcastsWithStrideZero) {
  HostTensor in({2, 3, 4}, {7, 8, 9});
  int64_t strides[] = {0, 1, 0};
  in.tensor.strides = strides;
  ASSERT_EQ(write(in.tensor), QPLAN_OK);
  EXPECT_EQ(input(),
            (std::vector<uint8_t>{7, 7, 7, 7, 8, 8, 8, 8, 9, 9, 9, 9, 7, 7, 7, 7, 8, 8, 8, 8, 9, 9, 9, 9}));
}

TEST_F(Bindings, WriteTakesPaddedRows) {
  HostTensor in({2, 3, 4}, counting(60));
  int64_t strides[] = {30, 10, 1};
  in.tensor.strides = strides;
  ASSERT_EQ(write(in.tensor), QPLAN_OK);
  EXPECT_EQ(input()[4], 10);
  EXPECT_EQ(input()[23], 53);
}

TEST_F(Bindings, PackedStridesAreLikeNone) {
  HostTensor in({2, 3, 4}, counting(24, 3));
  int64_t strides[] = {12, 4, 1};
  in.tensor.strides = strides;
  ASSERT_EQ(write(in.tensor), QPLAN_OK);
  EXPECT_EQ(input(), counting(24, 3));
}

TEST_F(Bindings, ReadHonoursStridesAndLeavesGaps) {
  run();
  HostTensor out({2, 3, 4}, std::vector<uint8_t>(80, 0xee));
  int64_t strides[] = {-36, 12, 3};
  out.tensor.strides = strides;
  out.tensor.byte_offset = 37;
  ASSERT_EQ(read(out.tensor), QPLAN_OK);
  std::vector<uint8_t> expected(80, 0xee);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) {
        expected[static_cast<size_t>(37 - 36 * i + 12 * j + 3 * k)] =
            static_cast<uint8_t>(6 + i * 12 + j * 4 + k);
      }
    }
  }
  EXPECT_EQ(out.bytes, expected);
}

TEST_F(Bindings, ReadIntoOnePlaceIsRefused) {
  HostTensor out({2, 3, 4}, counting(24));
  int64_t strides[] = {12, 0, 1};
  out.tensor.strides = strides;
  EXPECT_EQ(read(out.tensor), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(session_.last_error(),
            "read: output 0 'y': stride 0 of axis 1 would put several elements in one place");
  EXPECT_EQ(out.bytes, counting(24));
}

TEST_F(Bindings, StridesBeyondTheAddressSpaceAreRefused) {
  HostTensor in({2, 3, 4}, counting(24));
  for (const int64_t stride : {INT64_MAX, INT64_MIN, int64_t{1} << 60}) {
    int64_t strides[] = {12, stride, 1};
    in.tensor.strides = strides;
    EXPECT_EQ(write(in.tensor), QPLAN_INVALID_ARGUMENT) << stride;
  }
  EXPECT_EQ(session_.last_error(),
            "write: input 0 'x': stride 1152921504606846976 of axis 1 is beyond the address space");
}

// data + byte_offset, and the addresses below or above it by the strides, may not wrap around: they are
// checked before any pointer is made of them.
TEST_F(Bindings, ByteOffsetsBeyondTheAddressSpaceAreRefused) {
  HostTensor in({2, 3, 4}, counting(24));
  const auto told = [this](const char* call, const std::string& why) {
    EXPECT_EQ(session_.last_error(), std::string(call) + why);
  };
  const uint64_t data = reinterpret_cast<uintptr_t>(in.bytes.data());
  // UINT64_MAX - 23 would be the buffer's begin less 24, if it were added.
  for (const uint64_t offset : {UINT64_MAX, UINT64_MAX - 23, uint64_t{UINTPTR_MAX} - data + 1}) {
    const std::string why = ": byte_offset " + std::to_string(offset) + " is beyond the address space";
    in.tensor.byte_offset = offset;
    EXPECT_EQ(write(in.tensor), QPLAN_INVALID_ARGUMENT);
    told("write", ": input 0 'x'" + why);
    EXPECT_EQ(read(in.tensor), QPLAN_INVALID_ARGUMENT);
    told("read", ": output 0 'y'" + why);
    EXPECT_EQ(bind(QPLAN_OUTPUT, in.tensor), QPLAN_INVALID_ARGUMENT);
    told("bind", ": output 0 'y'" + why);
  }
  const std::string why = ": its elements reach beyond the address space";
  in.tensor.byte_offset = UINTPTR_MAX - data - 23;  // the last address, and one too few
  EXPECT_EQ(bind(QPLAN_INPUT, in.tensor), QPLAN_INVALID_ARGUMENT);
  told("bind", ": input 0 'x'" + why);
  in.tensor.byte_offset = 0;
  int64_t down[] = {-(int64_t{1} << 54), 4, 1};
  in.tensor.strides = down;
  EXPECT_EQ(write(in.tensor), QPLAN_INVALID_ARGUMENT);
  told("write", ": input 0 'x'" + why);
  EXPECT_EQ(in.bytes, counting(24));
}

// Elements wider than a byte, at addresses that are no multiple of them.
TEST(BindingsWide, AnyElementSizeAtAnyAddress) {
  struct Kind {
    uint8_t code, bits;
  };
  for (const Kind kind : {Kind{kDLInt, 16}, Kind{kDLFloat, 32}, Kind{kDLInt, 32}, Kind{kDLInt, 64}}) {
    PlanSpec spec;
    const uint32_t x = spec.add_tensor({2, 3}, "", kind.code, kind.bits);
    spec.add_main({x}, {x});
    const TestPlan plan(spec);
    const TestSession session(plan, config_of());
    ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
    const size_t element = kind.bits / 8u;
    HostTensor in({2, 3}, counting(6 * element + 1), kind.code, kind.bits),
        out({2, 3}, std::vector<uint8_t>(6 * element + 1), kind.code, kind.bits);
    int64_t transposed[] = {1, 2};
    in.tensor.byte_offset = out.tensor.byte_offset = 1;
    in.tensor.strides = out.tensor.strides = transposed;
    ASSERT_EQ(qplan_session_write(session.get(), 0, &in.tensor), QPLAN_OK);
    DLTensor view;
    ASSERT_EQ(qplan_session_view(session.get(), QPLAN_INPUT, 0, &view), QPLAN_OK);
    for (size_t i = 0; i < 2; ++i) {
      for (size_t j = 0; j < 3; ++j) {
        EXPECT_EQ(static_cast<const uint8_t*>(view.data)[(i * 3 + j) * element], 1 + (i + 2 * j) * element);
      }
    }
    ASSERT_EQ(qplan_session_read(session.get(), 0, &out.tensor), QPLAN_OK);
    EXPECT_EQ(memcmp(out.bytes.data() + 1, in.bytes.data() + 1, 6 * element), 0);
  }
}

// ---- what does not fit ----

TEST_F(Bindings, MismatchesAreToldExactly) {
  const auto text_of = [&](qplan_status expected, const std::function<void(DLTensor&)>& change) {
    HostTensor in({2, 3, 4}, counting(24));
    change(in.tensor);
    EXPECT_EQ(write(in.tensor), expected);
    return session_.last_error();
  };
  EXPECT_EQ(text_of(QPLAN_DTYPE_MISMATCH,
                    [](DLTensor& t) {
                      t.dtype = {kDLFloat, 32, 1};
                    }),
            "write: input 0 'x': float32, expected int8");
  EXPECT_EQ(text_of(QPLAN_DTYPE_MISMATCH, [](DLTensor& t) { t.dtype.lanes = 4; }),
            "write: input 0 'x': dtype of code 0, 8 bits, 4 lanes, expected int8");
  int64_t other[] = {2, 4, 3};
  EXPECT_EQ(text_of(QPLAN_SHAPE_MISMATCH, [&](DLTensor& t) { t.shape = other; }),
            "write: input 0 'x': shape [2, 4, 3], expected [2, 3, 4]");
  EXPECT_EQ(text_of(QPLAN_SHAPE_MISMATCH, [](DLTensor& t) { t.ndim = 2; }),
            "write: input 0 'x': shape [2, 3], expected [2, 3, 4]");
  EXPECT_EQ(text_of(QPLAN_SHAPE_MISMATCH, [](DLTensor& t) { t.ndim = -1; }),
            "write: input 0 'x': rank -1, expected [2, 3, 4]");
  EXPECT_EQ(text_of(QPLAN_SHAPE_MISMATCH, [](DLTensor& t) { t.shape = nullptr; }),
            "write: input 0 'x': rank 3 without a shape, expected [2, 3, 4]");
  EXPECT_EQ(text_of(QPLAN_INVALID_ARGUMENT, [](DLTensor& t) { t.data = nullptr; }),
            "write: input 0 'x': data is NULL");
  EXPECT_EQ(text_of(QPLAN_INVALID_ARGUMENT, [](DLTensor& t) { t.device.device_type = kDLCUDA; }),
            "write: input 0 'x': device type 2, expected memory of the CPU (1)");
  EXPECT_EQ(qplan_session_write(session_.get(), 0, nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(session_.last_error(), "write: input 0 'x': tensor is NULL");
  EXPECT_EQ(qplan_session_read(session_.get(), 1, nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(session_.last_error(), "read: output 1 of 1");
  DLTensor view;
  EXPECT_EQ(qplan_session_view(session_.get(), 2, 0, &view), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(session_.last_error(), "view: direction 2, expected QPLAN_INPUT or QPLAN_OUTPUT");
  EXPECT_EQ(qplan_session_view(session_.get(), QPLAN_INPUT, 0, nullptr), QPLAN_INVALID_ARGUMENT);
  qplan_error error = empty_error();
  qplan_session_last_error(session_.get(), &error);
  EXPECT_EQ(error.tensor, 0);
  EXPECT_EQ(error.step, -1);
}

// ---- bind ----

TEST_F(Bindings, BoundBuffersAreUsedInPlace) {
  HostTensor in({2, 3, 4}, counting(26)), out({2, 3, 4}, std::vector<uint8_t>(24, 0));
  in.tensor.byte_offset = 2;
  ASSERT_EQ(bind(QPLAN_INPUT, in.tensor), QPLAN_OK);
  ASSERT_EQ(bind(QPLAN_OUTPUT, out.tensor), QPLAN_OK);
  ASSERT_EQ(qplan_session_invoke(session_.get()), QPLAN_OK);
  EXPECT_EQ(out.bytes, counting(24, 8));
  EXPECT_EQ(in.bytes, counting(26));
  in.bytes.assign(26, 1);
  ASSERT_EQ(qplan_session_invoke(session_.get()), QPLAN_OK);
  EXPECT_EQ(out.bytes, std::vector<uint8_t>(24, 7));
  DLTensor view;
  ASSERT_EQ(qplan_session_view(session_.get(), QPLAN_OUTPUT, 0, &view), QPLAN_OK);
  EXPECT_EQ(view.data, out.bytes.data());
  HostTensor copy({2, 3, 4}, counting(24));
  ASSERT_EQ(read(copy.tensor), QPLAN_OK);
  EXPECT_EQ(copy.bytes, out.bytes);
}

TEST_F(Bindings, UnbindReturnsToTheSessionsBuffer) {
  run();
  HostTensor in({2, 3, 4}, counting(24, 100)), out({2, 3, 4}, std::vector<uint8_t>(24, 0));
  ASSERT_EQ(bind(QPLAN_INPUT, in.tensor), QPLAN_OK);
  ASSERT_EQ(bind(QPLAN_OUTPUT, out.tensor), QPLAN_OK);
  ASSERT_EQ(qplan_session_bind(session_.get(), QPLAN_INPUT, 0, nullptr), QPLAN_OK);
  ASSERT_EQ(qplan_session_bind(session_.get(), QPLAN_OUTPUT, 0, nullptr), QPLAN_OK);
  ASSERT_EQ(qplan_session_invoke(session_.get()), QPLAN_OK);
  EXPECT_EQ(out.bytes, std::vector<uint8_t>(24, 0));
  HostTensor copy({2, 3, 4}, counting(24));
  ASSERT_EQ(read(copy.tensor), QPLAN_OK);
  EXPECT_EQ(copy.bytes, counting(24, 6));
}

// Where a later step reuses the memory of the input's plan tensor's neighbours in place, a bound input is
// only read.
TEST(BindingsInPlace, BoundInputIsOnlyRead) {
  PlanSpec spec = sequence_spec();
  spec.tensors[2].offset = spec.tensors[1].offset;  // b in place of a
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  HostTensor in({2, 3, 4}, counting(24)), out({2, 3, 4}, counting(24));
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_INPUT, 0, &in.tensor), QPLAN_OK);
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_OUTPUT, 0, &out.tensor), QPLAN_OK);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_EQ(in.bytes, counting(24));
  EXPECT_EQ(out.bytes, counting(24, 6));
}

TEST_F(Bindings, WriteToABoundInputIsRefused) {
  HostTensor bound({2, 3, 4}, counting(24)), in({2, 3, 4}, counting(24, 9));
  ASSERT_EQ(bind(QPLAN_INPUT, bound.tensor), QPLAN_OK);
  EXPECT_EQ(write(in.tensor), QPLAN_INVALID_STATE);
  EXPECT_EQ(session_.last_error(),
            "write: input 0 'x': is bound to a buffer of the caller's, which is only read; fill that buffer "
            "or unbind "
            "it");
  EXPECT_EQ(bound.bytes, counting(24));
}

TEST_F(Bindings, BindTakesPackedBuffersOnly) {
  HostTensor in({2, 3, 4}, counting(24));
  int64_t strides[] = {1, 2, 6};
  in.tensor.strides = strides;
  EXPECT_EQ(bind(QPLAN_INPUT, in.tensor), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(session_.last_error(),
            "bind: input 0 'x': its strides are not those of a packed row-major tensor; copy it with write");
  int64_t packed[] = {12, 4, 1};
  in.tensor.strides = packed;
  EXPECT_EQ(bind(QPLAN_INPUT, in.tensor), QPLAN_OK);
}

TEST(BindingsAxes, StridesOfSingleElementsAreIgnored) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({1, 4, 1});
  spec.add_main({x}, {x});
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  HostTensor in({1, 4, 1}, {1, 2, 3, 4}), out({1, 4, 1}, {0, 0, 0, 0});
  int64_t strides[] = {INT64_MAX, 1, 0};
  in.tensor.strides = out.tensor.strides = strides;
  EXPECT_EQ(qplan_session_write(session.get(), 0, &in.tensor), QPLAN_OK);
  EXPECT_EQ(qplan_session_read(session.get(), 0, &out.tensor), QPLAN_OK);
  EXPECT_EQ(out.bytes, in.bytes);
  EXPECT_EQ(qplan_session_bind(session.get(), QPLAN_INPUT, 0, &in.tensor), QPLAN_OK);
}

TEST(BindingsAlignment, MisalignedBuffersAreRefused) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({4}, "x", kDLFloat, 32);
  spec.add_main({x}, {x});
  const TestPlan plan(spec);
  qplan_tensor_info info = {};
  info.struct_size = sizeof(info);
  ASSERT_EQ(qplan_plan_io_info(plan.get(), nullptr, QPLAN_INPUT, 0, &info), QPLAN_OK);
  EXPECT_EQ(info.alignment, 4u);
  const TestSession session(plan, config_of());
  const AlignedBytes buffer(64);
  HostTensor in({4}, {}, kDLFloat, 32);
  in.tensor.data = buffer.data();
  for (uint64_t offset = 0; offset < 16; ++offset) {
    in.tensor.byte_offset = offset;
    EXPECT_EQ(qplan_session_bind(session.get(), QPLAN_INPUT, 0, &in.tensor),
              offset % 4 == 0 ? QPLAN_OK : QPLAN_MISALIGNED);
  }
  EXPECT_EQ(session.last_error(), "bind: input 0 'x': data + byte_offset is not a multiple of 4");
}

TEST_F(Bindings, OverlappingBuffersAreRefused) {
  std::vector<uint8_t> buffer(100);
  HostTensor in({2, 3, 4}, {}), out({2, 3, 4}, {});
  in.tensor.data = out.tensor.data = buffer.data();
  ASSERT_EQ(bind(QPLAN_INPUT, in.tensor), QPLAN_OK);
  out.tensor.byte_offset = 23;
  EXPECT_EQ(bind(QPLAN_OUTPUT, out.tensor), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(session_.last_error(), "bind: output 0 'y': the buffer overlaps that of input 0");
  out.tensor.byte_offset = 24;
  EXPECT_EQ(bind(QPLAN_OUTPUT, out.tensor), QPLAN_OK);
  in.tensor.byte_offset = 1;
  EXPECT_EQ(bind(QPLAN_INPUT, in.tensor), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(session_.last_error(), "bind: input 0 'x': the buffer overlaps that of output 0");
}

TEST_F(Bindings, TheSessionsOwnMemoryIsRefused) {
  DLTensor view;
  ASSERT_EQ(qplan_session_view(session_.get(), QPLAN_OUTPUT, 0, &view), QPLAN_OK);
  EXPECT_EQ(bind(QPLAN_OUTPUT, view), QPLAN_OK);  // its own place
  EXPECT_EQ(bind(QPLAN_INPUT, view), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(session_.last_error(), "bind: input 0 'x': the buffer overlaps the session's own memory");
}

TEST(BindingsTwice, ATensorIsBoundThroughItsFirstMention) {
  PlanSpec spec = sequence_spec();
  spec.functions[0].outputs = {3, 0, 3};
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  HostTensor out({2, 3, 4}, counting(24)), in({2, 3, 4}, counting(24));
  EXPECT_EQ(qplan_session_bind(session.get(), QPLAN_OUTPUT, 1, &out.tensor), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(session.last_error(), "bind: output 1 'x': is the same tensor as input 0; bind that one");
  EXPECT_EQ(qplan_session_bind(session.get(), QPLAN_OUTPUT, 2, &out.tensor), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(session.last_error(), "bind: output 2 'y': is the same tensor as output 0; bind that one");
  EXPECT_EQ(qplan_session_bind(session.get(), QPLAN_OUTPUT, 0, &out.tensor), QPLAN_OK);
  EXPECT_EQ(qplan_session_bind(session.get(), QPLAN_INPUT, 0, &in.tensor), QPLAN_OK);
  ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  HostTensor copy({2, 3, 4}, std::vector<uint8_t>(24));
  EXPECT_EQ(qplan_session_read(session.get(), 1, &copy.tensor), QPLAN_OK);
  EXPECT_EQ(copy.bytes, counting(24));
  EXPECT_EQ(qplan_session_read(session.get(), 2, &copy.tensor), QPLAN_OK);
  EXPECT_EQ(copy.bytes, counting(24, 6));
}

TEST(BindingsShared, TwoInputsMayShareABuffer) {
  PlanSpec spec;
  const uint32_t a = spec.add_tensor({4}), b = spec.add_tensor({4}), y = spec.add_tensor({4});
  spec.add_step(kSum, {a, b}, {y}, concat_params(0));
  spec.add_main({a, b}, {y});
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  HostTensor in({4}, {1, 2, 3, 4}), out({4}, {0, 0, 0, 0});
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_INPUT, 0, &in.tensor), QPLAN_OK);
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_INPUT, 1, &in.tensor), QPLAN_OK);
  ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  ASSERT_EQ(qplan_session_read(session.get(), 0, &out.tensor), QPLAN_OK);
  EXPECT_EQ(out.bytes, (std::vector<uint8_t>{2, 4, 6, 8}));
}

}  // namespace
}  // namespace qplan::testing::bindings_test
