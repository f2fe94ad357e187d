#include "kernels/elementwise/broadcast.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "src/runtime/bind/broadcast.h"

namespace qplan::broadcast_test {
namespace {

// The extents, and where they are.
struct Held {
  std::vector<int64_t> values;
  operator Extents() const { return {values.data(), static_cast<uint32_t>(values.size())}; }  // NOLINT
};
Held shape(std::initializer_list<int64_t> extents) { return {extents}; }

TEST(Broadcast, EqualShapesBecomeOneAxis) {
  Broadcast broadcast;
  ASSERT_TRUE(make_broadcast(shape({2, 3, 4}), shape({2, 3, 4}), shape({2, 3, 4}), &broadcast));
  EXPECT_EQ(broadcast.rank, 1u);
  EXPECT_EQ(broadcast.elements, 24u);
  EXPECT_EQ(broadcast.extents[0], 24u);
  EXPECT_EQ(broadcast.a_strides[0], 1u);
  EXPECT_EQ(broadcast.b_strides[0], 1u);
}

TEST(Broadcast, AScalarBesideATensorIsOneAxis) {
  Broadcast broadcast;
  ASSERT_TRUE(make_broadcast(shape({2, 3, 4}), shape({}), shape({2, 3, 4}), &broadcast));
  EXPECT_EQ(broadcast.rank, 1u);
  EXPECT_EQ(broadcast.a_strides[0], 1u);
  EXPECT_EQ(broadcast.b_strides[0], 0u);
}

TEST(Broadcast, AVectorOfChannelsIsTwoAxes) {
  Broadcast broadcast;
  ASSERT_TRUE(make_broadcast(shape({4}), shape({2, 3, 4}), shape({2, 3, 4}), &broadcast));
  EXPECT_EQ(broadcast.rank, 2u);
  EXPECT_EQ(broadcast.extents[0], 6u);
  EXPECT_EQ(broadcast.extents[1], 4u);
  EXPECT_EQ(broadcast.a_strides[0], 0u);
  EXPECT_EQ(broadcast.a_strides[1], 1u);
  EXPECT_EQ(broadcast.b_strides[0], 4u);
}

TEST(Broadcast, TwoScalarsAreOneElement) {
  Broadcast broadcast;
  ASSERT_TRUE(make_broadcast(shape({}), shape({}), shape({}), &broadcast));
  EXPECT_EQ(broadcast.rank, 1u);
  EXPECT_EQ(broadcast.elements, 1u);
  EXPECT_EQ(broadcast.extents[0], 1u);
}

TEST(Broadcast, RefusesShapesThatDoNotFit) {
  Broadcast broadcast;
  EXPECT_FALSE(make_broadcast(shape({2}), shape({3}), shape({3}), &broadcast));
  EXPECT_FALSE(make_broadcast(shape({2, 1}), shape({3}), shape({2, 1}), &broadcast));
  EXPECT_FALSE(make_broadcast(shape({3}), shape({3}), shape({1, 3}), &broadcast));
  EXPECT_FALSE(make_broadcast(shape({1}), shape({1}), shape({3}), &broadcast));
}

TEST(Broadcast, RunsCoverARangeInOrder) {
  Broadcast broadcast;
  ASSERT_TRUE(make_broadcast(shape({2, 1, 3}), shape({5, 1}), shape({2, 5, 3}), &broadcast));
  std::vector<uint64_t> a_indices;
  std::vector<uint64_t> b_indices;
  const uint32_t last = broadcast.rank - 1;
  uint64_t next = 4;
  for_each_broadcast_run(broadcast, 4, 17, [&](uint64_t out, uint64_t a, uint64_t b, uint64_t count) {
    EXPECT_EQ(out, next);
    next += count;
    for (uint64_t i = 0; i < count; ++i) {
      a_indices.push_back(a + i * broadcast.a_strides[last]);
      b_indices.push_back(b + i * broadcast.b_strides[last]);
    }
  });
  EXPECT_EQ(next, 17u);
  EXPECT_EQ(a_indices, (std::vector<uint64_t>{1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 4}));
  EXPECT_EQ(b_indices, (std::vector<uint64_t>{1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 0, 0}));
}

TEST(Chunks, CoverAllElementsOnce) {
  for (const uint64_t elements :
       {uint64_t{1}, uint64_t{4095}, uint64_t{4096}, uint64_t{4097}, uint64_t{100000},
        (uint64_t{1} << 40) - 1, uint64_t{1} << 40, (uint64_t{1} << 48) - 1}) {
    const uint32_t work_items = num_chunks(elements);
    EXPECT_EQ(chunk_range(elements, 0, work_items).begin, 0u);
    EXPECT_EQ(chunk_range(elements, 0, work_items).end, elements);
    EXPECT_LT(chunk_range(elements, work_items - 1, work_items).begin, elements);
    EXPECT_EQ(chunk_range(elements, 0, work_items - 1).end,
              chunk_range(elements, work_items - 1, work_items).begin);
  }
}

}  // namespace
}  // namespace qplan::broadcast_test
