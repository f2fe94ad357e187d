// Functions of one real in double, without libm: the same bits on every host. NaN gives NaN, infinities the
// limits.
#ifndef QPLAN_SRC_PACKER_OP_FUNCTIONS_H_
#define QPLAN_SRC_PACKER_OP_FUNCTIONS_H_

namespace qplan::op {

double exp_function(double x);
double sigmoid_function(double x);  // 1 / (1 + exp(-x))
double tanh_function(double x);
double round_half_even(double x);

// The nearest float32, infinity beyond its range.
float to_float32(double x);

}  // namespace qplan::op

#endif  // QPLAN_SRC_PACKER_OP_FUNCTIONS_H_
