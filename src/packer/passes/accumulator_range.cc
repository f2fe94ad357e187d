#include "src/packer/passes/accumulator_range.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();

// Sums of the differences of each sign.
struct SignedSums {
  int64_t positive = 0, negative = 0;
};

template <typename T>
std::vector<SignedSums> weight_sums(const ir::Constant& weights, const ir::Constant& zero_points,
                                    const AxisExtents& e) {
  const auto values = weights.as<T>();
  std::vector<SignedSums> sums(e.axis);
  for (size_t row = 0; row < values.size() / e.inner; ++row) {
    const size_t o = row % e.axis;
    const int64_t zero_point = entry<int32_t>(zero_points, o);
    for (const T value : values.subspan(row * e.inner, e.inner)) {
      const int64_t difference = int64_t{value} - zero_point;
      sums[o].positive += std::max<int64_t>(difference, 0);
      sums[o].negative += std::min<int64_t>(difference, 0);
    }
  }
  return sums;
}

}  // namespace

bool ProductSums::fits_with(double bias) const {
  // In double first: what is far outside has no int64.
  if (!(std::abs(bias) <= -static_cast<double>(kLeast))) return false;
  const auto whole = static_cast<int64_t>(bias);
  return whole + least >= kLeast && whole + most <= kMost;
}

std::vector<ProductSums> product_sums(const ir::Constant& weights, const ir::Constant& zero_points,
                                      size_t output_axis, LayerInput input, double largest_bias) {
  constexpr int64_t kLargestProduct = int64_t{255} * 255;
  const AxisExtents extents = extents_around(weights.type().shape, output_axis);
  const int64_t count = weights.type().num_elements() / static_cast<int64_t>(extents.axis);
  if (count <= kMost / kLargestProduct) {
    const ProductSums any{-count * kLargestProduct, count * kLargestProduct};
    if (any.fits_with(largest_bias) && any.fits_with(-largest_bias))
      return std::vector<ProductSums>(extents.axis, any);
  }
  const int64_t low = std::min<int64_t>(input.dtype.min() - int64_t{input.zero_point}, 0);
  const int64_t high = std::max<int64_t>(input.dtype.max() - int64_t{input.zero_point}, 0);
  const std::vector<SignedSums> all = weights.type().dtype == ir::kInt8
                                          ? weight_sums<int8_t>(weights, zero_points, extents)
                                          : weight_sums<uint8_t>(weights, zero_points, extents);
  std::vector<ProductSums> sums;
  for (const SignedSums& s : all) {
    sums.push_back({s.positive * low + s.negative * high, s.positive * high + s.negative * low});
  }
  return sums;
}

}  // namespace qplan::passes
