// A network of a convolution, an addition, a pool and a dense layer with a softmax, for targets whose input
// is not the model.
#ifndef QPLAN_TESTS_FUZZ_SMALL_NETWORK_H_
#define QPLAN_TESTS_FUZZ_SMALL_NETWORK_H_

namespace qplan::fuzz {

inline constexpr char kSmallNetwork[] = R"(
def @main(%x: Tensor[(1, 4, 4, 2), int8]) {
  %0 = qnn.conv2d(%x, const(Tensor[(2, 1, 1, 2), int8], [1, -2, 3, 4]), 3, 0, 0.5f, 0.25f, data_layout="NHWC", kernel_layout="OHWI", channels=2, kernel_size=[1, 1]);
  %1 = nn.bias_add(%0, const(Tensor[(2), int32], [5, -6]), axis=3);
  %2 = qnn.requantize(%1, 0.125f, 0, 0.5f, 3, axis=3, out_dtype="int8", name="conv");
  %3 = qnn.add(%2, %x, 0.5f, 3, 0.5f, 3, 1f, -1, name="sum");
  %4 = nn.max_pool2d(%3, pool_size=[2, 2], strides=[2, 2], layout="NHWC", name="pool");
  %5 = reshape(%4, newshape=[1, 8]);
  %6 = qnn.dense(%5, const(Tensor[(2, 8), int8], [1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, -5, -6, -7, -8]), -1, 0, 1f, 0.25f, units=2);
  %7 = qnn.requantize(%6, 0.25f, 0, 0.5f, 0, out_dtype="int8", name="dense");
  qnn.softmax(%7, 0.5f, 0, 0.00390625f, -128, name="probabilities")
}
)";

}  // namespace qplan::fuzz

#endif  // QPLAN_TESTS_FUZZ_SMALL_NETWORK_H_
