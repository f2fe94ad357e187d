// Naive walks over tensors of any rank, for oracles.
#ifndef QPLAN_TESTS_SUPPORT_ND_H_
#define QPLAN_TESTS_SUPPORT_ND_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/random.h"

namespace qplan::testing {

using Extents = std::vector<int64_t>;

inline int64_t num_elements(const Extents& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

// Calls visit(coordinates) for all of them, the last axis fastest.
template <typename Visit>
void for_each_position(const Extents& shape, const Visit& visit) {
  Extents at(shape.size(), 0);
  for (int64_t i = 0; i < num_elements(shape); ++i) {
    visit(at);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++at[axis] < shape[axis]) break;
      at[axis] = 0;
    }
  }
}

// The index of the element at those coordinates; an extent of 1 is repeated, missing leading axes are
// ignored.
inline int64_t broadcast_index(const Extents& shape, const Extents& at) {
  int64_t index = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int64_t coordinate = at[at.size() - shape.size() + axis];
    index = index * shape[axis] + (shape[axis] == 1 ? 0 : coordinate);
  }
  return index;
}

inline Extents random_shape(Random& random, size_t rank, int64_t max_extent) {
  Extents shape(rank);
  for (int64_t& extent : shape) extent = random.integer(1, max_extent);
  return shape;
}

// Makes of `shape` one that broadcasts to it: some extents become 1, some leading axes are left out.
inline Extents random_broadcast_source(Random& random, Extents shape) {
  for (int64_t& extent : shape) {
    if (random.chance(0.3)) extent = 1;
  }
  if (random.chance(0.3)) shape.erase(shape.begin(), shape.begin() + random.integer(0, std::ssize(shape)));
  return shape;
}

// The shape that a and b broadcast to.
inline Extents broadcast_shape(Extents a, Extents b) {
  const size_t rank = std::max(a.size(), b.size());
  a.insert(a.begin(), rank - a.size(), 1);
  b.insert(b.begin(), rank - b.size(), 1);
  for (size_t axis = 0; axis < rank; ++axis) a[axis] = std::max(a[axis], b[axis]);
  return a;
}

// Two inputs, a and b, that broadcast to the output.
template <typename Spec>
void draw_broadcast(Random& random, Spec* spec) {
  const Extents shape = random_shape(random, static_cast<size_t>(random.integer(0, 6)), 5);
  spec->a = random_broadcast_source(random, shape);
  spec->b = random_broadcast_source(random, shape);
  spec->output = broadcast_shape(spec->a, spec->b);
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_ND_H_
