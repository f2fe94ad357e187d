/* npu_op.h -- what an operator of the driver ABI must be, whoever made it: kinds, and qplan_npu_op_check.
 * C99, C11, C++17; needs memcmp and nothing else of a C library. npu_oplist.h includes it. */
#ifndef QPLAN_NPU_OP_H_
#define QPLAN_NPU_OP_H_

#include <qplan/npu_driver.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QPLAN_OPLIST_MAX_RANK 6
#define QPLAN_OPLIST_MAX_STEP 65535u /* of windows, strides, dilations and pads */

/* Kinds of operators (QPLAN_NPU_OP_*): layers of weights; those of two inputs; those whose results depend on
 * the contract. */
static inline int qplan_npu_op_is_layer(uint32_t op) {
  return op == QPLAN_NPU_OP_CONV2D || op == QPLAN_NPU_OP_DENSE;
}
static inline int qplan_npu_op_has_two_inputs(uint32_t op) {
  return op == QPLAN_NPU_OP_ADD || op == QPLAN_NPU_OP_MUL || op == QPLAN_NPU_OP_MAXIMUM ||
         op == QPLAN_NPU_OP_MINIMUM || op == QPLAN_NPU_OP_CONCAT;
}
static inline int qplan_npu_op_has_contract(uint32_t op) {
  return qplan_npu_op_is_layer(op) || op == QPLAN_NPU_OP_ADD || op == QPLAN_NPU_OP_AVG_POOL2D ||
         op == QPLAN_NPU_OP_MUL || op == QPLAN_NPU_OP_MEAN;
}

static inline int qplan_npu_op_is_8_bit(const DLTensor* t) {
  return t->dtype.bits == 8 && t->dtype.lanes == 1 && (t->dtype.code == kDLInt || t->dtype.code == kDLUInt);
}
static inline int qplan_npu_op_fits(const DLTensor* t, int64_t value) { /* of an 8-bit tensor's dtype */
  return t->dtype.code == kDLInt ? value >= -128 && value <= 127 : value >= 0 && value <= 255;
}
static inline int64_t qplan_npu_op_elements(const DLTensor* t) {
  int64_t n = 1;
  int32_t axis;
  for (axis = 0; axis < t->ndim; ++axis) n *= t->shape[axis];
  return n;
}
/* Extents that loops can count with: up to 6 axes, none empty, 2^30 elements at most. */
static inline int qplan_npu_op_has_extents(const DLTensor* t) {
  int64_t n = 1;
  int32_t axis;
  if (t->ndim < 0 || t->ndim > QPLAN_OPLIST_MAX_RANK || (t->ndim > 0 && t->shape == NULL)) return 0;
  for (axis = 0; axis < t->ndim; ++axis) {
    if (t->shape[axis] < 1 || t->shape[axis] > (INT64_C(1) << 30) / n) return 0;
    n *= t->shape[axis];
  }
  return 1;
}
static inline int qplan_npu_op_same_shape(const DLTensor* a, const DLTensor* b) {
  return a->ndim == b->ndim && memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(*a->shape)) == 0;
}

static inline const char* qplan_npu_op_check_scales(const qplan_npu_op* op, int64_t channels) {
  uint32_t expected = op->op == QPLAN_NPU_OP_ADD ? 3 : 2;
  uint32_t i;
  if (!qplan_npu_op_has_contract(op->op)) return NULL;
  if (op->op == QPLAN_NPU_OP_AVG_POOL2D && op->contract != QPLAN_NPU_F32E) return NULL;
  if (op->contract == QPLAN_NPU_ACC32) return NULL;
  if (qplan_npu_op_is_layer(op->op)) expected = op->num_scales == 1 ? 1 : (uint32_t)channels;
  if (op->op == QPLAN_NPU_OP_MEAN) expected = 1;
  if (op->op == QPLAN_NPU_OP_MUL) expected = op->contract == QPLAN_NPU_F32E ? 3 : 1;
  if (op->num_scales != expected) return "scales: one, or one per output channel; three of an add";
  if (op->contract == QPLAN_NPU_F32E) {
    for (i = 0; op->scales != NULL && i < op->num_scales; ++i) {
      if (!(qplan_npu_op_is_layer(op->op) ? op->scales[i] >= 0.0f : op->scales[i] > 0.0f) ||
          op->scales[i] > 1.2676506e30f)
        return "a scale is not in (0, 2^100]";
    }
    return NULL;
  }
  for (i = 0; op->multipliers != NULL && op->shifts != NULL && i < op->num_scales; ++i) {
    const int32_t most = op->op == QPLAN_NPU_OP_ADD ? 0 : 30;
    if (op->multipliers[i] < 0 || op->shifts[i] < -31 || op->shifts[i] > most)
      return "a multiplier is negative, or a shift outside [-31, 30]; of an add [-31, 0]";
  }
  return NULL;
}

static inline const char* qplan_npu_op_check_window(const qplan_npu_op* op) {
  const DLTensor *x = op->inputs[0], *y = op->output;
  const int is_conv = op->op == QPLAN_NPU_OP_CONV2D;
  int i;
  if (x->ndim != 4 || y->ndim != 4 || (is_conv && op->weights->ndim != 4) || x->shape[0] != y->shape[0])
    return "input, output and weights have four axes, and one batch";
  for (i = 0; i < 4; ++i) {
    if (op->pads[i] > QPLAN_OPLIST_MAX_STEP) return "a padding is above 65535";
  }
  for (i = 0; i < 2; ++i) {
    const int64_t window = is_conv ? op->weights->shape[1 + i] : (int64_t)op->window[i];
    if (window < 1 || window > (int64_t)QPLAN_OPLIST_MAX_STEP || op->strides[i] < 1 ||
        op->strides[i] > QPLAN_OPLIST_MAX_STEP || op->dilations[i] < 1 ||
        op->dilations[i] > QPLAN_OPLIST_MAX_STEP) {
      return "window, strides and dilations are from 1 to 65535";
    }
    if (is_conv) continue;
    if (op->dilations[i] != 1) return "pools have no dilations";
    /* The first window must end inside the input, the last one begin there. */
    if (window <= (int64_t)op->pads[i] ||
        (y->shape[1 + i] - 1) * (int64_t)op->strides[i] - (int64_t)op->pads[i] >= x->shape[1 + i]) {
      return "a window of the pool holds no element";
    }
  }
  if (!is_conv) return x->shape[3] == y->shape[3] ? NULL : "a pool keeps the channels";
  if (op->groups < 1 || x->shape[3] % (int64_t)op->groups != 0 || y->shape[3] % (int64_t)op->groups != 0 ||
      op->weights->shape[3] != x->shape[3] / (int64_t)op->groups || op->weights->shape[0] != y->shape[3]) {
    return "channels of input, weights and output do not fit the groups";
  }
  return NULL;
}

/* PAD, CONCAT, RESHAPE, MEAN and LOOKUP: what their extents have to do with each other. */
static inline const char* qplan_npu_op_check_movement(const qplan_npu_op* op) {
  const DLTensor *x = op->inputs[0], *y = op->output, *z = op->inputs[1];
  int32_t axis;
  int i;
  switch (op->op) {
    case QPLAN_NPU_OP_PAD:
      if ((op->flags & QPLAN_NPU_OP_PAD_VALUE) == 0) return "a pad without its value";
      if (x->ndim != 4 || y->ndim != 4 || x->shape[0] != y->shape[0] || x->shape[3] != y->shape[3])
        return "a pad has four axes, and keeps batch and channels";
      for (i = 0; i < 2; ++i) {
        if (op->pads[i] > QPLAN_OPLIST_MAX_STEP || op->pads[i + 2] > QPLAN_OPLIST_MAX_STEP)
          return "a padding is above 65535";
        if (y->shape[1 + i] != x->shape[1 + i] + (int64_t)op->pads[i] + (int64_t)op->pads[i + 2])
          return "the output of a pad has other extents";
      }
      return NULL;
    case QPLAN_NPU_OP_CONCAT:
      if (x->ndim < 1 || z->ndim != x->ndim || y->ndim != x->ndim ||
          x->shape[x->ndim - 1] + z->shape[x->ndim - 1] != y->shape[x->ndim - 1])
        return "inputs and output of a concatenation do not fit";
      for (axis = 0; axis < x->ndim - 1; ++axis) {
        if (x->shape[axis] != y->shape[axis] || z->shape[axis] != y->shape[axis])
          return "inputs and output of a concatenation do not fit";
      }
      return NULL;
    case QPLAN_NPU_OP_RESHAPE:
      return qplan_npu_op_elements(x) == qplan_npu_op_elements(y) ? NULL : "a reshape keeps the elements";
    case QPLAN_NPU_OP_MEAN:
      if (x->ndim != 4 || y->ndim < 1 || y->shape[y->ndim - 1] != x->shape[3] ||
          qplan_npu_op_elements(y) != x->shape[0] * x->shape[3])
        return "a mean has one output for each image and channel";
      return x->shape[1] * x->shape[2] <= (INT64_C(1) << 23) ? NULL : "a mean of more than 2^23 elements";
    case QPLAN_NPU_OP_LOOKUP:
      return op->weights->ndim == 1 && op->weights->shape[0] == 256 ? NULL : "a table has 256 entries";
    default:
      return NULL;
  }
}

/* Loops over the operator's extents stay inside its tensors, and its numbers in the ranges for which
 * docs/numerics.md is written. Multipliers, shifts and scales are looked at where they are given. Tensors are
 * packed. NULL: well formed; else what is not. Contracts and limits of a device are its own business:
 * `supported`. */
static inline const char* qplan_npu_op_check(const qplan_npu_op* op) {
  const int is_layer = qplan_npu_op_is_layer(op->op);
  const int has_weights = is_layer || op->op == QPLAN_NPU_OP_LOOKUP;
  const int has_two = qplan_npu_op_has_two_inputs(op->op);
  const DLTensor *x = op->inputs[0], *y = op->output, *w = op->weights;
  const char* error = NULL;
  int64_t channels = 0;
  if (op->op < QPLAN_NPU_OP_CONV2D || op->op > QPLAN_NPU_OP_LAST) return "the operator is not known";
  if (x == NULL || y == NULL || (has_weights && w == NULL) || (has_two && op->inputs[1] == NULL))
    return "a tensor is missing";
  if (!qplan_npu_op_has_extents(x) || !qplan_npu_op_has_extents(y) ||
      (has_weights && !qplan_npu_op_has_extents(w)) ||
      (has_two && !qplan_npu_op_has_extents(op->inputs[1])) ||
      (is_layer && op->bias != NULL && !qplan_npu_op_has_extents(op->bias))) {
    return "a tensor has more than 6 axes, an empty one, or more than 2^30 elements";
  }
  if (!qplan_npu_op_is_8_bit(x) || (op->contract != QPLAN_NPU_ACC32 && !qplan_npu_op_is_8_bit(y)) ||
      (has_weights && !qplan_npu_op_is_8_bit(w)) || (has_two && !qplan_npu_op_is_8_bit(op->inputs[1]))) {
    return "input, weights and output are int8 or uint8";
  }
  if (op->contract == QPLAN_NPU_ACC32 && (!is_layer || y->dtype.bits != 32 || y->dtype.code != kDLInt))
    return "contract acc32 needs a layer with weights and an int32 output";
  if (!qplan_npu_op_fits(x, op->input_zero_points[0]) ||
      (has_two && !qplan_npu_op_fits(op->inputs[1], op->input_zero_points[1])) ||
      (has_weights && !qplan_npu_op_fits(w, op->weights_zero_point))) {
    return "a zero point is not a value of its tensor";
  }
  if (op->contract != QPLAN_NPU_ACC32 &&
      (op->clamp_min > op->clamp_max || !qplan_npu_op_fits(y, op->clamp_min) ||
       !qplan_npu_op_fits(y, op->clamp_max) || !qplan_npu_op_fits(y, op->output_zero_point))) {
    return "clamp or zero point are not values of the output";
  }
  if ((op->flags & QPLAN_NPU_OP_PAD_VALUE) != 0 && !qplan_npu_op_fits(x, op->pad_value))
    return "the padding is not a value of the input";
  if (op->op == QPLAN_NPU_OP_CONV2D || op->op == QPLAN_NPU_OP_MAX_POOL2D ||
      op->op == QPLAN_NPU_OP_AVG_POOL2D) {
    error = qplan_npu_op_check_window(op);
    if (error != NULL) return error;
  }
  if (is_layer) channels = w->shape[0];
  if (op->op == QPLAN_NPU_OP_DENSE &&
      (w->ndim != 2 || y->ndim < 1 || x->ndim < 1 || y->shape[y->ndim - 1] != channels ||
       qplan_npu_op_elements(x) % w->shape[1] != 0 ||
       qplan_npu_op_elements(x) / w->shape[1] != qplan_npu_op_elements(y) / channels)) {
    return "rows of input, weights and output do not fit";
  }
  if (is_layer && op->bias != NULL &&
      (op->bias->dtype.code != kDLInt || op->bias->dtype.bits != 32 || op->bias->dtype.lanes != 1 ||
       op->bias->ndim != 1 || op->bias->shape[0] != channels)) {
    return "the bias is int32, one per output channel";
  }
  if (op->op == QPLAN_NPU_OP_ADD && (op->left_shift < 0 || op->left_shift > 22))
    return "left_shift is outside [0, 22]";
  if (!is_layer && (has_weights ? w : x)->dtype.code != y->dtype.code)
    return "input and output, or table and output, have one dtype";
  if (has_two && op->inputs[1]->dtype.code != y->dtype.code) return "input and output have one dtype";
  if (((op->op == QPLAN_NPU_OP_CLIP || op->op == QPLAN_NPU_OP_LOOKUP) && !qplan_npu_op_same_shape(x, y)) ||
      (has_two && op->op != QPLAN_NPU_OP_CONCAT &&
       (!qplan_npu_op_same_shape(x, y) || !qplan_npu_op_same_shape(op->inputs[1], y)))) {
    return "inputs and output have one shape";
  }
  error = qplan_npu_op_check_movement(op);
  if (error != NULL) return error;
  return qplan_npu_op_check_scales(op, channels);
}

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_NPU_OP_H_ */
