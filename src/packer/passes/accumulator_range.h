// What the sums of products of a layer can become, whatever its input is: int32 must hold them, the bias
// included.
#ifndef QPLAN_SRC_PACKER_PASSES_ACCUMULATOR_RANGE_H_
#define QPLAN_SRC_PACKER_PASSES_ACCUMULATOR_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::passes {

// The least and the largest sum of products of one output channel. The sum 0 is always possible: an input
// that equals its zero point everywhere gives it.
struct ProductSums {
  int64_t least = 0, most = 0;

  // The weights are their zero point, all of them.
  bool is_dead() const { return least == 0 && most == 0; }
  // Whether int32 holds the bias (a whole number, infinite or NaN) with each of the sums.
  bool fits_with(double bias) const;
};

// Values of 8 bits less their zero point.
struct LayerInput {
  ir::DType dtype;
  int32_t zero_point = 0;
};

// One entry per index of the weights' axis of output channels. zero_points: one or one per channel. Reads no
// weight where their number alone says that the sums with biases up to `largest_bias` fit; the sums are then
// what any weights could reach.
std::vector<ProductSums> product_sums(const ir::Constant& weights, const ir::Constant& zero_points,
                                      size_t output_axis, LayerInput input, double largest_bias);

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_ACCUMULATOR_RANGE_H_
