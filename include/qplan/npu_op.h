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
#define QPLAN_OPLIST_MAX_STEP 65535u      /* of windows, strides, dilations and pads */
#define QPLAN_OPLIST_MAX_RESIZE (1 << 20) /* height and width of what is resized, before and after */
#define QPLAN_OPLIST_SOFTMAX_SCALES 257u  /* of SOFTMAX under F32E */

/* "conv2d" of QPLAN_NPU_OP_CONV2D, for messages; "?" of a number that this ABI does not name. */
static inline const char* qplan_npu_op_kind_name(uint32_t op) {
  static const char* const names[] = {"?",
                                      "conv2d",
                                      "dense",
                                      "add",
                                      "max_pool2d",
                                      "avg_pool2d",
                                      "clip",
                                      "mul",
                                      "mean",
                                      "maximum",
                                      "minimum",
                                      "lookup",
                                      "pad",
                                      "concat",
                                      "reshape",
                                      "softmax",
                                      "resize_nearest",
                                      "resize_bilinear",
                                      "conv2d_transpose",
                                      "concat_n",
                                      "add_broadcast",
                                      "mul_broadcast"};
  return names[op < sizeof(names) / sizeof(names[0]) ? op : 0];
}
/* "tfl2" of QPLAN_NPU_TFL2; "?" of what is no contract. */
static inline const char* qplan_npu_contract_name(uint32_t contract) {
  return contract == QPLAN_NPU_TFL2    ? "tfl2"
         : contract == QPLAN_NPU_TFL1  ? "tfl1"
         : contract == QPLAN_NPU_F32E  ? "f32e"
         : contract == QPLAN_NPU_ACC32 ? "acc32"
                                       : "?";
}

/* "sram" of QPLAN_NPU_MEMORY_CLASS_SRAM; "?" of a class that this ABI does not name. */
static inline const char* qplan_npu_memory_class_name(uint32_t memory_class) {
  return memory_class == QPLAN_NPU_MEMORY_CLASS_ANY     ? "any"
         : memory_class == QPLAN_NPU_MEMORY_CLASS_SRAM  ? "sram"
         : memory_class == QPLAN_NPU_MEMORY_CLASS_DRAM  ? "dram"
         : memory_class == QPLAN_NPU_MEMORY_CLASS_FLASH ? "flash"
                                                        : "?";
}

/* Kinds of operators (QPLAN_NPU_OP_*): layers of weights; sums and products of two tensors, whose shapes may
 * have to broadcast; those of two inputs or more; those whose results depend on the contract. */
static inline int qplan_npu_op_is_layer(uint32_t op) {
  return op == QPLAN_NPU_OP_CONV2D || op == QPLAN_NPU_OP_DENSE || op == QPLAN_NPU_OP_CONV2D_TRANSPOSE;
}
static inline int qplan_npu_op_is_sum(uint32_t op) {
  return op == QPLAN_NPU_OP_ADD || op == QPLAN_NPU_OP_ADD_BROADCAST;
}
static inline int qplan_npu_op_is_product(uint32_t op) {
  return op == QPLAN_NPU_OP_MUL || op == QPLAN_NPU_OP_MUL_BROADCAST;
}
static inline int qplan_npu_op_broadcasts(uint32_t op) {
  return op == QPLAN_NPU_OP_ADD_BROADCAST || op == QPLAN_NPU_OP_MUL_BROADCAST;
}
static inline int qplan_npu_op_is_resize(uint32_t op) {
  return op == QPLAN_NPU_OP_RESIZE_NEAREST || op == QPLAN_NPU_OP_RESIZE_BILINEAR;
}
static inline int qplan_npu_op_has_two_inputs(uint32_t op) {
  return qplan_npu_op_is_sum(op) || qplan_npu_op_is_product(op) || op == QPLAN_NPU_OP_MAXIMUM ||
         op == QPLAN_NPU_OP_MINIMUM || op == QPLAN_NPU_OP_CONCAT || op == QPLAN_NPU_OP_CONCAT_N;
}
static inline int qplan_npu_op_has_contract(uint32_t op) {
  return qplan_npu_op_is_layer(op) || qplan_npu_op_is_sum(op) || qplan_npu_op_is_product(op) ||
         op == QPLAN_NPU_OP_AVG_POOL2D || op == QPLAN_NPU_OP_MEAN || op == QPLAN_NPU_OP_SOFTMAX;
}
/* How many inputs an operator has, and one of them. */
static inline uint32_t qplan_npu_op_num_inputs(const qplan_npu_op* op) {
  if (op->op == QPLAN_NPU_OP_CONCAT_N) return op->num_inputs;
  return qplan_npu_op_has_two_inputs(op->op) ? 2 : 1;
}
static inline const DLTensor* qplan_npu_op_input(const qplan_npu_op* op, uint32_t index) {
  return index < 2 ? op->inputs[index] : op->more_inputs[index - 2];
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

/* Resizes to the nearest element: the input's row (axis 1) or column (axis 2) of which an output is a copy.
 * With n rows of the input, m of the output and o this one: floor(o * n / m); with half-pixel centres
 * floor((2 o + 1) * n / (2 m)); with aligned corners o * (n - 1) / (m - 1), halves rounded up. */
static inline int64_t qplan_npu_op_nearest(const qplan_npu_op* op, int32_t axis, int64_t o) {
  const int64_t n = op->inputs[0]->shape[axis], m = op->output->shape[axis];
  if ((op->flags & QPLAN_NPU_OP_HALF_PIXEL_CENTERS) != 0) return (2 * o + 1) * n / (2 * m);
  if ((op->flags & QPLAN_NPU_OP_ALIGN_CORNERS) == 0 || m == 1) return o * n / m;
  return (2 * o * (n - 1) + m - 1) / (2 * (m - 1));
}

/* Under F32E output_scale, then 256 exponentials; else input_multiplier and input_left_shift. */
static inline const char* qplan_npu_op_check_softmax(const qplan_npu_op* op) {
  uint32_t i;
  if (op->contract != QPLAN_NPU_F32E) {
    if (op->num_scales != 1) return "a softmax has one multiplier and shift";
    if (op->multipliers != NULL && op->shifts != NULL &&
        (op->multipliers[0] < 0 || op->shifts[0] < 0 || op->shifts[0] > 31))
      return "the multiplier of a softmax is negative, or its shift outside [0, 31]";
    return op->output_zero_point == (op->output->dtype.code == kDLInt ? -128 : 0)
               ? NULL
               : "the zero point of a softmax is the least value, but under f32e";
  }
  if (op->num_scales != QPLAN_OPLIST_SOFTMAX_SCALES) return "a softmax has a scale and a table of 256";
  if (op->scales == NULL) return NULL;
  if (!(op->scales[0] > 0.0f) || op->scales[0] > 1.2676506e30f) return "a scale is not in (0, 2^100]";
  for (i = 1; i < op->num_scales; ++i) {
    if (!(op->scales[i] >= 0.0f && op->scales[i] <= 1.0f) || (i == 1 && op->scales[i] != 1.0f))
      return "the table of a softmax begins with 1, and is in [0, 1]";
  }
  return NULL;
}

static inline const char* qplan_npu_op_check_scales(const qplan_npu_op* op, int64_t channels) {
  const int is_sum = qplan_npu_op_is_sum(op->op);
  uint32_t expected = is_sum ? 3 : 2;
  uint32_t i;
  if (!qplan_npu_op_has_contract(op->op)) return NULL;
  if (op->op == QPLAN_NPU_OP_AVG_POOL2D && op->contract != QPLAN_NPU_F32E) return NULL;
  if (op->contract == QPLAN_NPU_ACC32) return NULL;
  if (op->op == QPLAN_NPU_OP_SOFTMAX) return qplan_npu_op_check_softmax(op);
  if (qplan_npu_op_is_layer(op->op)) expected = op->num_scales == 1 ? 1 : (uint32_t)channels;
  if (op->op == QPLAN_NPU_OP_MEAN) expected = 1;
  if (qplan_npu_op_is_product(op->op)) expected = op->contract == QPLAN_NPU_F32E ? 3 : 1;
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
    const int32_t most = is_sum ? 0 : 30;
    if (op->multipliers[i] < 0 || op->shifts[i] < -31 || op->shifts[i] > most)
      return "a multiplier is negative, or a shift outside [-31, 30]; of an add [-31, 0]";
  }
  return NULL;
}

static inline const char* qplan_npu_op_check_window(const qplan_npu_op* op) {
  const DLTensor *x = op->inputs[0], *y = op->output;
  const int is_transposed = op->op == QPLAN_NPU_OP_CONV2D_TRANSPOSE;
  const int is_conv = op->op == QPLAN_NPU_OP_CONV2D || is_transposed;
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
  if (is_transposed && (op->groups != 1 || op->dilations[0] != 1 || op->dilations[1] != 1))
    return "transposed convolutions have one group, and no dilations";
  return NULL;
}

/* The extents of several tensors along an axis are those of the output, one after the other. */
static inline const char* qplan_npu_op_check_concat(const qplan_npu_op* op, int32_t along) {
  const DLTensor* y = op->output;
  const uint32_t count = qplan_npu_op_num_inputs(op);
  int64_t sum = 0;
  int32_t axis;
  uint32_t i;
  for (i = 0; i < count; ++i) {
    const DLTensor* x = qplan_npu_op_input(op, i);
    if (x->ndim != y->ndim || along < 0 || along >= y->ndim)
      return "inputs and output of a concatenation do not fit";
    for (axis = 0; axis < y->ndim; ++axis) {
      if (axis != along && x->shape[axis] != y->shape[axis])
        return "inputs and output of a concatenation do not fit";
    }
    sum += x->shape[along];
  }
  return sum == y->shape[along] ? NULL : "inputs and output of a concatenation do not fit";
}

/* Sums and products that broadcast: axes are counted from the last, and one that is missing or 1 is repeated.
 * The output has no more than its inputs. */
static inline const char* qplan_npu_op_check_broadcast(const qplan_npu_op* op) {
  const DLTensor* y = op->output;
  int32_t axis, i;
  for (axis = 1; axis <= y->ndim; ++axis) {
    const int64_t extent = y->shape[y->ndim - axis];
    int64_t largest = 1;
    for (i = 0; i < 2; ++i) {
      const DLTensor* x = op->inputs[i];
      const int64_t own = axis <= x->ndim ? x->shape[x->ndim - axis] : 1;
      if (own != 1 && own != extent) return "an input does not broadcast to the output";
      if (own > largest) largest = own;
    }
    if (largest != extent) return "the output has other extents than its inputs together";
  }
  return op->inputs[0]->ndim <= y->ndim && op->inputs[1]->ndim <= y->ndim
             ? NULL
             : "an input has more axes than the output";
}

static inline const char* qplan_npu_op_check_resize(const qplan_npu_op* op) {
  const DLTensor *x = op->inputs[0], *y = op->output;
  const uint32_t both = QPLAN_NPU_OP_ALIGN_CORNERS | QPLAN_NPU_OP_HALF_PIXEL_CENTERS;
  int i;
  if (x->ndim != 4 || y->ndim != 4 || x->shape[0] != y->shape[0] || x->shape[3] != y->shape[3])
    return "a resize has four axes, and keeps batch and channels";
  for (i = 1; i < 3; ++i) {
    if (x->shape[i] > QPLAN_OPLIST_MAX_RESIZE || y->shape[i] > QPLAN_OPLIST_MAX_RESIZE)
      return "height or width of a resize is above 2^20";
  }
  if ((op->flags & both) == both) return "corners are aligned, or pixels have centres";
  if ((op->flags & QPLAN_NPU_OP_RESIZE_FLOAT) != 0 &&
      (op->op != QPLAN_NPU_OP_RESIZE_BILINEAR || x->dtype.code != kDLUInt))
    return "only uint8 is interpolated in floats";
  return NULL;
}

/* PAD, CONCAT, RESHAPE, MEAN, LOOKUP and later kinds: what their extents have to do with each other. */
static inline const char* qplan_npu_op_check_movement(const qplan_npu_op* op) {
  const DLTensor *x = op->inputs[0], *y = op->output;
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
      return qplan_npu_op_check_concat(op, y->ndim - 1);
    case QPLAN_NPU_OP_CONCAT_N:
      return qplan_npu_op_check_concat(op, op->axis < QPLAN_OPLIST_MAX_RANK ? (int32_t)op->axis : -1);
    case QPLAN_NPU_OP_ADD_BROADCAST:
    case QPLAN_NPU_OP_MUL_BROADCAST:
      return qplan_npu_op_check_broadcast(op);
    case QPLAN_NPU_OP_RESIZE_NEAREST:
    case QPLAN_NPU_OP_RESIZE_BILINEAR:
      return qplan_npu_op_check_resize(op);
    case QPLAN_NPU_OP_SOFTMAX:
      return x->ndim >= 1 && qplan_npu_op_same_shape(x, y) ? NULL : "a softmax has rows, and keeps the shape";
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

/* The inputs after the first two. */
static inline const char* qplan_npu_op_check_more_inputs(const qplan_npu_op* op) {
  uint32_t i;
  if (op->op != QPLAN_NPU_OP_CONCAT_N) return NULL;
  if (op->num_inputs < 2 || op->num_inputs > QPLAN_NPU_MAX_INPUTS) return "the inputs are 2 to 8";
  if (op->num_inputs > 2 && op->more_inputs == NULL) return "a tensor is missing";
  for (i = 2; i < op->num_inputs; ++i) {
    const DLTensor* x = op->more_inputs[i - 2];
    if (x == NULL) return "a tensor is missing";
    if (!qplan_npu_op_has_extents(x))
      return "a tensor has more than 6 axes, an empty one, or more than 2^30 elements";
    if (!qplan_npu_op_is_8_bit(x) || x->dtype.code != op->output->dtype.code)
      return "input and output have one dtype";
  }
  return NULL;
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
  if ((is_layer && op->op != QPLAN_NPU_OP_DENSE) || op->op == QPLAN_NPU_OP_MAX_POOL2D ||
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
  if (qplan_npu_op_is_sum(op->op) && (op->left_shift < 0 || op->left_shift > 22))
    return "left_shift is outside [0, 22]";
  if (!is_layer && (has_weights ? w : x)->dtype.code != y->dtype.code)
    return "input and output, or table and output, have one dtype";
  if (has_two && op->inputs[1]->dtype.code != y->dtype.code) return "input and output have one dtype";
  if (((op->op == QPLAN_NPU_OP_CLIP || op->op == QPLAN_NPU_OP_LOOKUP) && !qplan_npu_op_same_shape(x, y)) ||
      (has_two && op->op != QPLAN_NPU_OP_CONCAT && op->op != QPLAN_NPU_OP_CONCAT_N &&
       !qplan_npu_op_broadcasts(op->op) &&
       (!qplan_npu_op_same_shape(x, y) || !qplan_npu_op_same_shape(op->inputs[1], y)))) {
    return "inputs and output have one shape";
  }
  error = qplan_npu_op_check_more_inputs(op);
  if (error != NULL) return error;
  error = qplan_npu_op_check_movement(op);
  if (error != NULL) return error;
  return qplan_npu_op_check_scales(op, channels);
}

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_NPU_OP_H_ */
