// Where the bytes of a region's tensors are: in place, copied, arranged, in the application's buffers;
// caches.
#include <gtest/gtest.h>

#include <tuple>

#include "src/runtime/npu/client.h"
#include "tests/runtime/npu_fixture.h"
#include "tests/support/random.h"

namespace qplan::testing::npu_transfer_test {
namespace {

// The formula of NpuBind, element by element and byte by byte.
std::vector<uint64_t> places_of(const Arrangement& a) {
  std::vector<uint64_t> places;
  int64_t elements = 1;
  for (uint32_t i = 0; i < a.rank; ++i) elements *= a.extents[i];
  for (int64_t e = 0; e < elements; ++e) {
    uint64_t place = a.origin;
    int64_t rest = e;
    for (uint32_t axis = a.rank; axis-- > 0; rest /= a.extents[axis]) {
      const bool is_divided = a.block != 0 && axis + 1 == a.rank;
      const int64_t index = rest % a.extents[axis], block = is_divided ? a.block : a.extents[axis];
      place += static_cast<uint64_t>(index % block) * a.strides[axis];
      place += static_cast<uint64_t>(index / block) * a.block_stride;
    }
    for (uint32_t b = 0; b < a.element_bytes; ++b) places.push_back(place + b * a.byte_stride);
  }
  return places;
}

void check_arrangement(const Arrangement& a) {
  const std::vector<uint64_t> places = places_of(a);
  const std::vector<uint8_t> packed = counting(places.size(), 3);
  std::vector<uint8_t> expected(a.size, a.fill), buffer(a.size, 0xbb);
  for (size_t i = 0; i < places.size(); ++i)
    expected[places[i]] = static_cast<uint8_t>(packed[i] ^ a.sign_bias);
  scatter(buffer.data(), packed.data(), a);
  EXPECT_EQ(buffer, expected);
  std::vector<uint8_t> back(places.size(), 0xbb);
  gather(back.data(), buffer.data(), a);
  EXPECT_EQ(back, packed);
}

TEST(NpuArrange, PaddedChannelsBordersAndFlips) {
  for (const uint8_t flip : {0, 0x80}) {
    // [2, 3, 5] in rows of 4 pixels of 16 channels, a border of one pixel.
    check_arrangement({3, 1, {2, 3, 5}, {5 * 16, 16, 1}, (5 + 1) * 16, 1, 4 * 5 * 16, 0x80, flip});
    // Channels fill their pixels: rows are runs.
    check_arrangement({3, 1, {2, 3, 16}, {5 * 16, 16, 1}, (5 + 1) * 16, 1, 4 * 5 * 16, 7, flip});
    check_arrangement({2, 1, {3, 7}, {7, 1}, 0, 1, 21, 0, flip});
    check_arrangement({0, 1, {}, {}, 3, 1, 5, 9, flip});
  }
}

TEST(NpuArrange, PlanesOfBytes) {
  check_arrangement({2, 4, {3, 5}, {16, 1}, 0, 48, 192, 0, 0});
  check_arrangement({2, 4, {3, 5}, {20, 4}, 0, 1, 60, 0, 0x80});
  check_arrangement({1, 4, {1}, {0}, 2, 3, 12, 1, 0});
  check_arrangement({0, 4, {}, {}, 2, 3, 12, 1, 0});
  check_arrangement({2, 2, {4, 3}, {12, 4}, 1, 1, 48, 5, 0x7f});
}

TEST(NpuArrange, BlocksOfChannels) {
  for (const uint8_t flip : {0, 0x80}) {
    // [2, 3, 40] in three blocks of 16 channels, of which the last has 8, outside of height and width.
    check_arrangement({3, 1, {2, 3, 40}, {48, 16, 1}, 0, 1, 288, 0x5a, flip, 16, 96});
    // [2, 3, 32] in two blocks of 16: the buffer has no other bytes.
    check_arrangement({3, 1, {2, 3, 32}, {48, 16, 1}, 0, 1, 192, 0x5a, flip, 16, 96});
    // Between height and width, after a border.
    check_arrangement({3, 1, {2, 3, 20}, {96, 16, 1}, 5, 1, 200, 0x5a, flip, 16, 48});
  }
  // int32 in blocks of 4, as it is and in planes of bytes.
  check_arrangement({2, 4, {3, 10}, {16, 4}, 0, 1, 144, 1, 0, 4, 48});
  check_arrangement({2, 4, {3, 10}, {4, 1}, 0, 36, 144, 1, 0, 4, 12});
}

TEST(NpuArrange, BlocksThatFollowEachOtherCoverTheBuffer) {
  EXPECT_TRUE((Arrangement{3, 1, {2, 3, 32}, {48, 16, 1}, 0, 1, 192, 0, 0, 16, 96}).covers_all());
  EXPECT_FALSE((Arrangement{3, 1, {2, 3, 32}, {48, 16, 1}, 0, 1, 192, 0, 0, 16, 96}).is_packed());
  EXPECT_TRUE((Arrangement{3, 1, {2, 3, 32}, {96, 16, 1}, 0, 1, 192, 0, 0, 16, 48}).covers_all());
  EXPECT_FALSE((Arrangement{3, 1, {2, 3, 32}, {48, 16, 1}, 0, 1, 192, 0, 0, 16, 64}).covers_all());
  EXPECT_FALSE((Arrangement{3, 1, {2, 3, 40}, {48, 16, 1}, 0, 1, 288, 0, 0, 16, 96}).covers_all());
}

TEST(NpuArrange, ExtentsOfOneHaveAnyStride) {
  check_arrangement({3, 1, {1, 4, 1}, {999, 1, 999}, 0, 1, 4, 0, 0});
  check_arrangement({3, 4, {2, 1, 3}, {12, 7, 4}, 0, 1, 24, 0, 0x80});
}

// As many bytes as the buffer has, but not all places: strides that overlap are what a wrong plan has.
TEST(NpuArrange, BytesThatNoElementHasAreFilledWhateverTheStrides) {
  const Arrangement a = {2, 1, {2, 4}, {1, 1}, 0, 1, 8, 0x3c, 0};
  std::vector<uint8_t> buffer(8, 0xbb);
  const std::vector<uint8_t> packed = counting(8, 3);
  scatter(buffer.data(), packed.data(), a);
  EXPECT_EQ(buffer, (std::vector<uint8_t>{3, 7, 8, 9, 10, 0x3c, 0x3c, 0x3c}));
}

TEST(NpuArrange, RandomOnesFollowTheFormula) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Arrangement a;
    a.rank = static_cast<uint32_t>(random.integer(0, 4));
    a.element_bytes = random.integer(0, 1) == 0 ? 1 : 4;
    a.sign_bias = static_cast<uint8_t>(random.integer(0, 1) * 0x80);
    a.fill = static_cast<uint8_t>(random.integer(0, 255));
    const bool planes = a.element_bytes == 4 && random.integer(0, 1) == 1;
    uint64_t stride = planes ? 1 : a.element_bytes;
    for (uint32_t axis = a.rank; axis-- > 0;) {
      a.extents[axis] = random.integer(1, 5);
      a.strides[axis] = stride;
      stride =
          stride * static_cast<uint64_t>(a.extents[axis]) + static_cast<uint64_t>(random.integer(0, 1) * 3);
    }
    a.byte_stride = planes ? stride + 2 : 1;
    if (a.rank > 0 && a.extents[a.rank - 1] > 2 && random.integer(0, 1) == 1) {
      a.block = static_cast<uint32_t>(random.integer(1, a.extents[a.rank - 1] - 1));
      a.block_stride = stride;
      stride *= static_cast<uint64_t>((a.extents[a.rank - 1] - 1) / a.block + 1);
      if (planes) a.byte_stride = stride + 2;
    }
    a.origin = static_cast<uint64_t>(random.integer(0, 5));
    a.size = a.origin + stride + (a.element_bytes - 1) * a.byte_stride + 8;
    check_arrangement(a);
  }
}

// x [4, 6] (uint8 seen as int8 by the device) in rows of 16 with a border of `fill`; the device adds 5 to
// every byte; y is read back from the same places.
PlanSpec arranged_spec() {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({4, 6}, "x"), y = spec.add_tensor({4, 6}, "y");
  const uint32_t target = spec.add_device("fake");
  spec.add_region(target, kFakeBlobFormat, fake_blob(5, {96}, {96}, {32}), {x}, {y}, 1, "npu_main_0");
  NpuSpec& npu = *spec.steps.back().npu;
  const uint32_t bank = spec.bank_of(target);
  const std::vector<uint64_t> strides = {16, 1};
  npu.binds.push_back({0, format::NpuUse_INPUT, 0, spec.add_range(bank, 96), 96, strides, 17, 1, 0x22, 0x80});
  npu.binds.push_back({1, format::NpuUse_OUTPUT, 0, spec.add_range(bank, 96), 96, strides, 17, 1, 0, 0x80});
  npu.binds.push_back({2, format::NpuUse_SCRATCH, 0, spec.add_range(bank, 32), 32, {}, 0, 1, 0, 0});
  spec.add_step(kAddByte, {x}, {y}, copy_params(5), "alternative");
  spec.add_main({x}, {y}, 64);
  return spec;
}

TEST(NpuTransfer, ArrangedTensorsAreCopiedAndCounted) {
  for (const bool can_import : {true, false}) {
    for (const bool is_coherent : {true, false}) {
      FakeNpu npu;
      npu.can_import = can_import;
      npu.is_coherent = is_coherent;
      const TestPlan plan(arranged_spec());
      DeviceConfigs devices;
      devices.add("fake", npu);
      const TestSession session(plan, npu_config(devices));
      ASSERT_EQ(run_and_check(session, 250, 5), QPLAN_OK) << session.text();
      ASSERT_EQ(run_and_check(session, 7, 5), QPLAN_OK);
      EXPECT_EQ(region_info(session).device_runs, 2u);
      EXPECT_EQ(region_info(session).copies, 4u);
      EXPECT_EQ(region_info(session).copy_bytes, 4u * 24);
      EXPECT_EQ(npu.last_binds.size(), 3u);
    }
  }
}

TEST(NpuTransfer, AShadowIsCopiedWhereMemoryCannotBeImported) {
  for (const bool is_coherent : {true, false}) {
    FakeNpu npu;
    npu.is_coherent = is_coherent;
    npu.import_status = QPLAN_NPU_E_UNSUPPORTED;
    const TestPlan plan(region_spec());
    DeviceConfigs devices;
    devices.add("fake", npu);
    const TestSession session(plan, npu_config(devices));
    ASSERT_EQ(run_and_check(session, 20), QPLAN_OK);
    EXPECT_EQ(npu.counts.allocs, 1u);
    EXPECT_EQ(region_info(session).device_runs, 1u);
    EXPECT_EQ(region_info(session).copies, 2u);
    EXPECT_EQ(region_info(session).copy_bytes, 48u);
  }
}

// Tensors closer than a cache line: maintenance of one must not lose the other's bytes.
TEST(NpuTransfer, CachesAreMaintainedAroundNeighboursInOneLine) {
  FakeNpu npu;
  npu.is_coherent = false;
  npu.alignment = 8;
  PlanSpec spec = region_spec();
  // b in the line of a; x's neighbour "kept" too, read after the region.
  const uint32_t kept = spec.add_tensor({24}, "kept"), z = spec.add_tensor({24}, "z");
  spec.tensors[kept].bank = spec.tensors[1].bank;
  spec.tensors[kept].offset = 48;
  spec.tensors[2].offset = 24;
  spec.steps[1].npu->binds[1].offset = 24;
  spec.functions.clear();
  StepSpec first;
  first.kernel = kAddByte;
  first.inputs = {0};
  first.outputs = {kept};
  first.params = copy_params(9);
  spec.steps.insert(spec.steps.begin(), first);
  spec.add_step(kAddByte, {kept}, {z}, copy_params(0));
  spec.add_main({0}, {3, z}, 64);
  const TestPlan plan(spec);
  DeviceConfigs devices;
  devices.add("fake", npu);
  const TestSession session(plan, npu_config(devices));
  for (const uint8_t start : {11, 12}) {
    ASSERT_EQ(run_and_check(session, start), QPLAN_OK) << session.text();
    EXPECT_EQ(read_bytes(session, 24, 1), counting(24, static_cast<uint8_t>(start + 9)));
  }
  EXPECT_EQ(region_info(session).device_runs, 2u);
  // Also after a failure that left garbage on the device's side.
  npu.job_statuses = {QPLAN_NPU_E_BUS};
  ASSERT_EQ(run_and_check(session, 13), QPLAN_OK);
  EXPECT_EQ(read_bytes(session, 24, 1), counting(24, 22));
  EXPECT_EQ(region_info(session).cpu_runs, 1u);
}

// Output 0 is copied to its tensor, which shares a line with output 1: all lines are invalidated before any
// byte is copied.
TEST(NpuTransfer, WhatIsCopiedStaysWhenANeighbourIsInvalidated) {
  FakeNpu npu;
  npu.is_coherent = false;
  npu.alignment = 8;
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({24}, "x"), y = spec.add_tensor({24}, "y"),
                 z = spec.add_tensor({24}, "z");
  const uint32_t target = spec.add_device("fake"), bank = spec.bank_of(target);
  const uint64_t line = spec.add_range(bank, 64), in = spec.add_range(bank, 24),
                 out = spec.add_range(bank, 24);
  spec.tensors[y].bank = spec.tensors[z].bank = bank;
  spec.tensors[y].offset = line;
  spec.tensors[z].offset = line + 24;
  spec.add_region(target, kFakeBlobFormat, fake_blob(5, {24}, {24, 24}), {x}, {y, z}, 2, "npu_main_0");
  const std::vector<uint64_t> strides = {1};
  spec.steps.back().npu->binds = {{0, format::NpuUse_INPUT, 0, in, 24, strides, 0, 1, 0, 0},
                                  {1, format::NpuUse_OUTPUT, 0, out, 24, strides, 0, 1, 0, 0},
                                  {2, format::NpuUse_OUTPUT, 1, line + 24, 24, {}, 0, 1, 0, 0}};
  spec.add_step(kAddByte, {x}, {y}, copy_params(5), "alternative_0");
  spec.add_step(kAddByte, {x}, {z}, copy_params(5), "alternative_1");
  spec.add_main({x}, {y, z}, 64);
  const TestPlan plan(spec);
  DeviceConfigs devices;
  devices.add("fake", npu);
  const TestSession session(plan, npu_config(devices));
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  ASSERT_EQ(run_and_check(session, 30, 5), QPLAN_OK);
  EXPECT_EQ(read_bytes(session, 24, 1), counting(24, 35));
  EXPECT_EQ(region_info(session).device_runs, 1u);
}

// x and y of the function are the region's own.
PlanSpec bare_spec() {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({24}, "x"), y = spec.add_tensor({24}, "y");
  const uint32_t target = spec.add_device("fake");
  spec.move_to_device(x, target);
  spec.move_to_device(y, target);
  spec.add_region(target, kFakeBlobFormat, fake_blob(5, {24}, {24}), {x}, {y}, 1, "npu_main_0");
  spec.steps.back().npu->binds = {{0, format::NpuUse_INPUT, 0, spec.tensors[x].offset, 24, {}, 0, 1, 0, 0},
                                  {1, format::NpuUse_OUTPUT, 0, spec.tensors[y].offset, 24, {}, 0, 1, 0, 0}};
  spec.add_step(kAddByte, {x}, {y}, copy_params(5), "alternative");
  spec.add_main({x}, {y}, 64);
  return spec;
}

TEST(NpuTransfer, BoundMemoryOfTheApplicationIsCopied) {
  FakeNpu npu;
  npu.is_coherent = false;
  const TestPlan plan(bare_spec());
  DeviceConfigs devices;
  devices.add("fake", npu);
  const TestSession session(plan, npu_config(devices));
  ASSERT_EQ(run_and_check(session, 1, 5), QPLAN_OK) << session.text();
  EXPECT_EQ(region_info(session).copies, 0u);
  HostTensor x({24}, counting(24, 100)), y({24}, std::vector<uint8_t>(24));
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_INPUT, 0, &x.tensor), QPLAN_OK);
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_OUTPUT, 0, &y.tensor), QPLAN_OK);
  ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_EQ(y.bytes, counting(24, 105));
  EXPECT_EQ(region_info(session).copies, 2u);
  EXPECT_EQ(region_info(session).copy_bytes, 48u);
}

TEST(NpuBuffer, BoundBuffersOfTheDeviceAreUsedWithoutACopy) {
  for (const bool is_coherent : {true, false}) {
    for (const qplan_npu_status job : {QPLAN_NPU_OK, QPLAN_NPU_E_BUS}) {
      FakeNpu npu;
      npu.is_coherent = is_coherent;
      const TestPlan plan(bare_spec());
      DeviceConfigs devices;
      devices.add("fake", npu);
      const TestSession session(plan, npu_config(devices));
      HostTensor like({24}, std::vector<uint8_t>(24));
      qplan_buffer x, y;
      ASSERT_EQ(qplan_buffer_create(session.get(), 0, &like.tensor, 0, &x), QPLAN_OK);
      ASSERT_EQ(qplan_buffer_create(session.get(), 0, &like.tensor, 0, &y), QPLAN_OK);
      DLTensor view = {};
      ASSERT_EQ(qplan_buffer_begin_access(&x, QPLAN_BUFFER_WRITE, &view), QPLAN_OK);
      ASSERT_EQ(view.ndim, 1);
      ASSERT_EQ(view.shape[0], 24);
      std::memcpy(view.data, counting(24, 60).data(), 24);
      ASSERT_EQ(qplan_buffer_end_access(&x), QPLAN_OK);
      ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_INPUT, 0, &view), QPLAN_OK);
      ASSERT_EQ(qplan_buffer_begin_access(&y, QPLAN_BUFFER_READ, &view), QPLAN_OK);
      ASSERT_EQ(qplan_buffer_end_access(&y), QPLAN_OK);
      ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_OUTPUT, 0, &view), QPLAN_OK);
      EXPECT_EQ(qplan_buffer_destroy(&y), QPLAN_INVALID_STATE) << "it is bound";
      npu.job_statuses = {job};
      ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
      EXPECT_EQ(region_info(session).copies, 0u);
      EXPECT_EQ(region_info(session).cpu_runs, job < 0 ? 1u : 0u);
      EXPECT_NE(npu.last_binds[0].buffer, npu.last_binds[1].buffer);
      ASSERT_EQ(qplan_buffer_begin_access(&y, QPLAN_BUFFER_READ, &view), QPLAN_OK);
      const auto* bytes = static_cast<const uint8_t*>(view.data);
      EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + 24), counting(24, 65));
      ASSERT_EQ(qplan_buffer_end_access(&y), QPLAN_OK);
      ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_INPUT, 0, nullptr), QPLAN_OK);
      ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_OUTPUT, 0, nullptr), QPLAN_OK);
      EXPECT_EQ(qplan_buffer_destroy(&x), QPLAN_OK);
      EXPECT_EQ(qplan_buffer_destroy(&y), QPLAN_OK);
      EXPECT_EQ(qplan_buffer_destroy(&y), QPLAN_INVALID_ARGUMENT);
      EXPECT_EQ(npu.live_buffers(), 1u) << "the bank's";
    }
  }
}

TEST(NpuBuffer, AnAddressThatTheProgramCannotUseIsCopied) {
  for (const bool is_aligned : {true, false}) {
    FakeNpu npu;
    const TestPlan plan(bare_spec());
    DeviceConfigs devices;
    devices.add("fake", npu);
    const TestSession session(plan, npu_config(devices));
    if (!is_aligned) npu.device_address += 8;
    HostTensor like({24}, counting(24, 60));
    qplan_buffer x;
    ASSERT_EQ(qplan_buffer_create(session.get(), 0, &like.tensor, 0, &x), QPLAN_OK);
    EXPECT_EQ(npu.last_request.alignment, 64u) << "the bank's";
    DLTensor view = {};
    ASSERT_EQ(qplan_buffer_begin_access(&x, QPLAN_BUFFER_WRITE, &view), QPLAN_OK);
    std::memcpy(view.data, like.bytes.data(), 24);
    ASSERT_EQ(qplan_buffer_end_access(&x), QPLAN_OK);
    ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_INPUT, 0, &view), QPLAN_OK);
    ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
    EXPECT_EQ(read_bytes(session, 24), counting(24, 65));
    EXPECT_EQ(region_info(session).copies, is_aligned ? 0u : 1u);
    ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_INPUT, 0, nullptr), QPLAN_OK);
    EXPECT_EQ(qplan_buffer_destroy(&x), QPLAN_OK);
  }
}

// The CPU wrote the output: without the flush the device, and who reads the buffer next, sees other bytes.
TEST(NpuBuffer, AnOutputThatIsNotFlushedFailsTheRun) {
  FakeNpu npu;
  npu.is_coherent = false;
  const TestPlan plan(region_spec());
  DeviceConfigs devices;
  devices.add("fake", npu);
  const TestSession session(plan, npu_config(devices));
  HostTensor like({24}, std::vector<uint8_t>(24));
  qplan_buffer y;
  ASSERT_EQ(qplan_buffer_create(session.get(), 0, &like.tensor, 0, &y), QPLAN_OK);
  DLTensor view = {};
  ASSERT_EQ(qplan_buffer_begin_access(&y, QPLAN_BUFFER_READ, &view), QPLAN_OK);
  ASSERT_EQ(qplan_buffer_end_access(&y), QPLAN_OK);
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_OUTPUT, 0, &view), QPLAN_OK);
  write_bytes(session, counting(24, 5));
  npu.flush_statuses = {QPLAN_NPU_OK, QPLAN_NPU_OK, QPLAN_NPU_E_BUS};  // of the job's binds, of the output
  EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_DEVICE_ERROR);
  EXPECT_EQ(session.last_error(), "buffer: driver 'fake-npu' does not flush its memory: bus error");
  // A device that is gone reads nothing any more.
  npu.flush_statuses = {QPLAN_NPU_OK, QPLAN_NPU_OK, QPLAN_NPU_E_LOST};
  EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  ASSERT_EQ(qplan_buffer_begin_access(&y, QPLAN_BUFFER_READ, &view), QPLAN_OK);
  const auto* bytes = static_cast<const uint8_t*>(view.data);
  EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + 24), counting(24, 12));
  ASSERT_EQ(qplan_buffer_end_access(&y), QPLAN_OK);
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_OUTPUT, 0, nullptr), QPLAN_OK);
  EXPECT_EQ(qplan_buffer_destroy(&y), QPLAN_OK);
}

// A driver whose job still uses it refuses; the buffer stays, so that it can be destroyed later.
TEST(NpuBuffer, ABufferThatTheDriverKeepsCanBeDestroyedLater) {
  FakeNpu npu;
  const TestPlan plan(bare_spec());
  DeviceConfigs devices;
  devices.add("fake", npu);
  const TestSession session(plan, npu_config(devices));
  HostTensor like({24}, std::vector<uint8_t>(24));
  qplan_buffer buffer;
  ASSERT_EQ(qplan_buffer_create(session.get(), 0, &like.tensor, 0, &buffer), QPLAN_OK);
  npu.release_statuses = {QPLAN_NPU_E_BUSY};
  EXPECT_EQ(qplan_buffer_destroy(&buffer), QPLAN_DEVICE_ERROR);
  EXPECT_EQ(session.last_error(), "buffer: driver 'fake-npu' does not take its memory back: busy");
  EXPECT_EQ(npu.live_buffers(), 2u) << "the bank's too";
  EXPECT_EQ(qplan_buffer_create(session.get(), 0, &like.tensor, 0, &buffer), QPLAN_INVALID_STATE);
  EXPECT_EQ(qplan_buffer_destroy(&buffer), QPLAN_OK);
  EXPECT_EQ(npu.live_buffers(), 1u);
  // A device that is gone takes nothing back.
  ASSERT_EQ(qplan_buffer_create(session.get(), 0, &like.tensor, 0, &buffer), QPLAN_OK);
  npu.release_statuses = {QPLAN_NPU_E_LOST};
  EXPECT_EQ(qplan_buffer_destroy(&buffer), QPLAN_OK);
  EXPECT_EQ(qplan_buffer_destroy(&buffer), QPLAN_INVALID_ARGUMENT);
}

// In a buffer that a job may still write the CPU's steps would compute in vain, wherever the bank is.
TEST(NpuBuffer, TheCpuRunsNoStepsInOneThatALostJobMayWrite) {
  for (const bool is_bound : {true, false}) {
    FailingRegion f(QPLAN_NPU_FALLBACK, bare_spec());
    f.npu.can_import = false;
    f.npu.hangs = 1;
    f.npu.cancel_works = f.npu.reset_works = false;
    HostTensor like({24}, std::vector<uint8_t>(24));
    qplan_buffer buffer;
    ASSERT_EQ(qplan_buffer_create(f.session().get(), 0, &like.tensor, 0, &buffer), QPLAN_OK);
    DLTensor view = {};
    ASSERT_EQ(qplan_buffer_begin_access(&buffer, QPLAN_BUFFER_READ, &view), QPLAN_OK);
    ASSERT_EQ(qplan_buffer_end_access(&buffer), QPLAN_OK);
    if (is_bound) {
      ASSERT_EQ(qplan_session_bind(f.session().get(), QPLAN_OUTPUT, 0, &view), QPLAN_OK);
    }
    const qplan_status expected = is_bound ? QPLAN_DEVICE_ERROR : QPLAN_OK;
    EXPECT_EQ(qplan_session_invoke(f.session().get()), expected);
    EXPECT_EQ(qplan_session_invoke(f.session().get()), expected);
    EXPECT_EQ(region_info(f.session()).cpu_runs, is_bound ? 0u : 2u);
    ASSERT_EQ(qplan_session_bind(f.session().get(), QPLAN_OUTPUT, 0, nullptr), QPLAN_OK);
    EXPECT_EQ(qplan_buffer_destroy(&buffer), expected) << "the job uses it, or the bank";
  }
}

TEST(NpuBuffer, MisuseIsRefused) {
  FakeNpu npu;
  const TestPlan plan(bare_spec());
  DeviceConfigs devices, none;
  devices.add("fake", npu);
  const TestSession session(plan, npu_config(devices)), absent(plan, npu_config(none));
  HostTensor like({24}, std::vector<uint8_t>(24));
  qplan_buffer buffer;
  EXPECT_EQ(qplan_buffer_create(absent.get(), 0, &like.tensor, 0, &buffer), QPLAN_DRIVER_MISSING);
  EXPECT_EQ(qplan_buffer_create(session.get(), 1, &like.tensor, 0, &buffer), QPLAN_NOT_FOUND);
  EXPECT_EQ(qplan_buffer_create(session.get(), 0, nullptr, 0, &buffer), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_buffer_create(session.get(), 0, &like.tensor, 1, &buffer), QPLAN_INVALID_ARGUMENT);
  like.shape[0] = -1;
  EXPECT_EQ(qplan_buffer_create(session.get(), 0, &like.tensor, 0, &buffer), QPLAN_INVALID_ARGUMENT);
  like.shape[0] = 24;
  npu.alloc_status = QPLAN_NPU_E_MEMORY;
  EXPECT_EQ(qplan_buffer_create(session.get(), 0, &like.tensor, 0, &buffer), QPLAN_DEVICE_ERROR);
  npu.alloc_status = QPLAN_NPU_OK;
  ASSERT_EQ(qplan_buffer_create(session.get(), 0, &like.tensor, 0, &buffer), QPLAN_OK);
  EXPECT_EQ(qplan_buffer_create(session.get(), 0, &like.tensor, 0, &buffer), QPLAN_INVALID_STATE);
  DLTensor view;
  EXPECT_EQ(qplan_buffer_end_access(&buffer), QPLAN_INVALID_STATE);
  EXPECT_EQ(qplan_buffer_begin_access(&buffer, 0, &view), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_buffer_begin_access(&buffer, QPLAN_BUFFER_READ, &view), QPLAN_OK);
  EXPECT_EQ(qplan_buffer_begin_access(&buffer, QPLAN_BUFFER_READ, &view), QPLAN_INVALID_STATE);
  EXPECT_EQ(qplan_buffer_end_access(&buffer), QPLAN_OK);
  EXPECT_EQ(qplan_buffer_destroy(&buffer), QPLAN_OK);
  EXPECT_EQ(npu.live_buffers(), 1u);
}

// Two regions on two devices, one after the other.
TEST(NpuSession, SeveralDevicesAndSeveralSessions) {
  FakeNpu one, two;
  two.is_asynchronous = true;
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({24}, "x"), a = spec.add_tensor({24}, "a"),
                 y = spec.add_tensor({24}, "y");
  const uint32_t first = spec.add_device("one"), second = spec.add_device("two", 256);
  for (const auto& [target, in, out] : {std::tuple{first, x, a}, {second, a, y}}) {
    spec.add_region(target, kFakeBlobFormat, fake_blob(3, {24}, {24}), {in}, {out}, 1);
    const uint32_t bank = spec.bank_of(target);
    const std::vector<uint64_t> strides = {1};
    spec.steps.back().npu->binds = {
        {0, format::NpuUse_INPUT, 0, spec.add_range(bank, 24), 24, strides, 0, 1, 0, 0},
        {1, format::NpuUse_OUTPUT, 0, spec.add_range(bank, 24), 24, strides, 0, 1, 0, 0}};
    spec.add_step(kAddByte, {in}, {out}, copy_params(3));
  }
  spec.add_main({x}, {y}, 64);
  const TestPlan plan(spec);
  DeviceConfigs devices;
  devices.add("two", two);
  devices.add("one", one);
  const TestSession session(plan, npu_config(devices)), other(plan, npu_config(devices));
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  EXPECT_EQ(qplan_session_num_devices(session.get()), 2u);
  EXPECT_STREQ(device_info(session, 0).target, "one");
  EXPECT_STREQ(device_info(session, 1).target, "two");
  write_bytes(session, counting(24, 1));
  write_bytes(other, counting(24, 101));
  ASSERT_EQ(qplan_session_submit(session.get()), QPLAN_PENDING);
  ASSERT_EQ(qplan_session_submit(other.get()), QPLAN_PENDING);
  ASSERT_EQ(qplan_session_wait(other.get(), 1000), QPLAN_OK);
  ASSERT_EQ(qplan_session_wait(session.get(), UINT32_MAX), QPLAN_OK);
  EXPECT_EQ(read_bytes(session, 24), counting(24, 7));
  EXPECT_EQ(read_bytes(other, 24), counting(24, 107));
  EXPECT_EQ(one.counts.submits, 2u);
  EXPECT_EQ(two.counts.submits, 2u);
  // One device fails, the other goes on.
  one.job_statuses = {QPLAN_NPU_E_LOST};
  ASSERT_EQ(run_and_check(session, 30, 6), QPLAN_OK);
  EXPECT_EQ(region_info(session, 0).cpu_runs, 1u);
  EXPECT_EQ(region_info(session, 1).device_runs, 2u);
}

TEST(NpuSession, ConfigsThatContradictAreRefused) {
  FakeNpu npu;
  const TestPlan plan(region_spec());
  DeviceConfigs twice, nameless, sizeless;
  twice.add("fake", npu);
  twice.add("fake", npu);
  nameless.add(nullptr, npu);
  sizeless.add("fake", npu);
  sizeless.configs[0].struct_size = 0;
  EXPECT_EQ(TestSession(plan, npu_config(twice)).text(),
            "session: devices 0 and 1 are both for target 'fake'");
  EXPECT_EQ(TestSession(plan, npu_config(nameless)).text(), "session: device 0 names no target");
  EXPECT_EQ(TestSession(plan, npu_config(sizeless)).status(), QPLAN_INVALID_ARGUMENT);
  DeviceConfigs devices;
  devices.add("fake", npu);
  for (const qplan_session_config& config : {npu_config(devices, 3), npu_config(devices, 0, 4)}) {
    uint32_t count = 0;
    EXPECT_EQ(qplan_session_memory_needs(plan.get(), &config, nullptr, &count, nullptr),
              QPLAN_INVALID_ARGUMENT);
  }
  EXPECT_EQ(npu.live_buffers(), 0u);
}

}  // namespace
}  // namespace qplan::testing::npu_transfer_test
