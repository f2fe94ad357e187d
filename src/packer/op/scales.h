// Which scale of an accumulator is meant: a convolution's or fully connected layer's requantisation carries
// one, and the product of the layer's scales is another. Sources print or round the first one
// (docs/numerics.md, "Scales").
#ifndef QPLAN_SRC_PACKER_OP_SCALES_H_
#define QPLAN_SRC_PACKER_OP_SCALES_H_

namespace qplan::op {

// Relative distance from `given` up to which it is the product, rounded.
inline constexpr double kScaleTolerance = 1e-5;

// Both positive. True: the product is meant.
inline bool means_product(double given, double product) {
  const double distance = given - product, tolerance = kScaleTolerance * given;
  return distance <= tolerance && -distance <= tolerance;
}

}  // namespace qplan::op

#endif  // QPLAN_SRC_PACKER_OP_SCALES_H_
