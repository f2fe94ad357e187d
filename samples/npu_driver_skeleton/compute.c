/* The computation that a real device does in hardware: the formulas of docs/numerics.md, one output after the
 * other. Slow and exact. */
#include "skeleton.h"

/* ---- contracts: from an accumulator to an output ---- */
static int32_t as_signed(uint32_t bits) { /* two's complement, without undefined conversions */
  return bits <= INT32_MAX ? (int32_t)bits : (int32_t)(bits - 0x80000000u) + INT32_MIN;
}

int64_t floor_shift(int64_t value, int shift) { return value >= 0 ? value >> shift : ~(~value >> shift); }

static int64_t tfl2(int32_t a, int32_t multiplier, int32_t shift) {
  const int left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
  const int64_t x = as_signed((uint32_t)a << left);
  const int64_t v = floor_shift(x * multiplier + (INT64_C(1) << 30), 31);
  const int64_t mask = (INT64_C(1) << right) - 1;
  const int64_t rest = (int64_t)((uint64_t)v & (uint64_t)mask);
  return floor_shift(v, right) + (rest > (mask >> 1) + (v < 0));
}

static int64_t tfl1(int32_t a, int32_t multiplier, int32_t shift) {
  const int total = 31 - shift; /* 1 to 62 */
  return as_signed(
      (uint32_t)(uint64_t)floor_shift((int64_t)a * multiplier + (INT64_C(1) << (total - 1)), total));
}

static int32_t clamped(int64_t value, const qplan_npu_op* op) {
  return value < op->clamp_min ? op->clamp_min : value > op->clamp_max ? op->clamp_max : (int32_t)value;
}

/* zero point, half to even, clamp. The ends of the clamp are integers, so that clamping first is the same. */
int32_t quantized(float real, const qplan_npu_op* op) {
  const float low = (float)(op->clamp_min - op->output_zero_point);
  const float high = (float)(op->clamp_max - op->output_zero_point);
  volatile float
      shifted; /* adding and subtracting 1.5 * 2^23 leaves the integer; no optimiser may cancel it */
  if (real < low) real = low;
  if (real > high) real = high;
  shifted = real + 12582912.0f;
  return op->output_zero_point + (int32_t)(shifted - 12582912.0f);
}

static int32_t requantized(const qplan_npu_op* op, int32_t a, int64_t channel) {
  const int64_t k = op->num_scales == 1 ? 0 : channel;
  if (op->contract == QPLAN_NPU_ACC32) return a; /* the CPU requantises */
  if (op->contract == QPLAN_NPU_F32E) return quantized((float)a * op->scales[k], op);
  return clamped((op->contract == QPLAN_NPU_TFL1 ? tfl1(a, op->multipliers[k], op->shifts[k])
                                                 : tfl2(a, op->multipliers[k], op->shifts[k])) +
                     op->output_zero_point,
                 op);
}

/* ---- elements: of 8 bits, and accumulators of 32 ---- */
int32_t get(const DLTensor* t, int64_t i) {
  return t->dtype.code == kDLInt ? ((const int8_t*)t->data)[i] : ((const uint8_t*)t->data)[i];
}
void put(const DLTensor* t, int64_t i, int32_t value) {
  if (t->dtype.bits == 32) {
    ((int32_t*)t->data)[i] = value;
  } else {
    ((uint8_t*)t->data)[i] = (uint8_t)value;
  }
}
static int32_t bias_of(const qplan_npu_op* op, int64_t o) {
  return op->bias == NULL ? 0 : ((const int32_t*)op->bias->data)[o];
}
int stopped(const qplan_npu_status* stop) { return __atomic_load_n(stop, __ATOMIC_RELAXED) != 0; }

/* ---- operators ---- */
/* Sums are taken modulo 2^32. */
static int32_t conv2d_sum(const qplan_npu_op* op, int64_t n, int64_t y, int64_t x, int64_t o) {
  const int64_t *in = op->inputs[0]->shape, *w = op->weights->shape;
  const int64_t first =
      o / (op->output->shape[3] / (int64_t)op->groups) * w[3]; /* input channel of the group */
  const int32_t border = (op->flags & QPLAN_NPU_OP_PAD_VALUE) != 0 ? op->pad_value : op->input_zero_points[0];
  uint32_t sum = (uint32_t)bias_of(op, o);
  int64_t ky, kx, i;
  for (ky = 0; ky < w[1]; ++ky) {
    const int64_t iy = y * op->strides[0] - op->pads[0] + ky * op->dilations[0];
    for (kx = 0; kx < w[2]; ++kx) {
      const int64_t ix = x * op->strides[1] - op->pads[1] + kx * op->dilations[1];
      const int is_inside = iy >= 0 && iy < in[1] && ix >= 0 && ix < in[2];
      for (i = 0; i < w[3]; ++i) {
        const int32_t v =
            is_inside ? get(op->inputs[0], ((n * in[1] + iy) * in[2] + ix) * in[3] + first + i) : border;
        const int32_t weight = get(op->weights, ((o * w[1] + ky) * w[2] + kx) * w[3] + i);
        sum += (uint32_t)((v - op->input_zero_points[0]) * (weight - op->weights_zero_point));
      }
    }
  }
  return as_signed(sum);
}

/* The input's position of which output `at` gets products through tap k, before the stride; -1: none. */
static int64_t source_of(int64_t at, int64_t k, uint32_t cut, uint32_t stride, int64_t extent) {
  const int64_t reach = at + (int64_t)cut - k;
  return reach < 0 || reach % (int64_t)stride != 0 || reach / (int64_t)stride >= extent
             ? -1
             : reach / (int64_t)stride;
}

static int32_t transposed_sum(const qplan_npu_op* op, int64_t n, int64_t y, int64_t x, int64_t o) {
  const int64_t *in = op->inputs[0]->shape, *w = op->weights->shape;
  uint32_t sum = (uint32_t)bias_of(op, o);
  int64_t ky, kx, i;
  for (ky = 0; ky < w[1]; ++ky) {
    const int64_t iy = source_of(y, ky, op->pads[0], op->strides[0], in[1]);
    for (kx = 0; iy >= 0 && kx < w[2]; ++kx) {
      const int64_t ix = source_of(x, kx, op->pads[1], op->strides[1], in[2]);
      for (i = 0; ix >= 0 && i < w[3]; ++i) {
        const int32_t v = get(op->inputs[0], ((n * in[1] + iy) * in[2] + ix) * in[3] + i);
        const int32_t weight = get(op->weights, ((o * w[1] + ky) * w[2] + kx) * w[3] + i);
        sum += (uint32_t)((v - op->input_zero_points[0]) * (weight - op->weights_zero_point));
      }
    }
  }
  return as_signed(sum);
}

static void conv2d(const qplan_npu_op* op, const qplan_npu_status* stop) {
  const int64_t* out = op->output->shape;
  int64_t n, y, x, o, at = 0;
  for (n = 0; n < out[0]; ++n) {
    for (y = 0; y < out[1]; ++y) {
      for (x = 0; x < out[2]; ++x) {
        if (stopped(stop)) return; /* a pixel takes as many products as there are weights: that is bounded */
        for (o = 0; o < out[3]; ++o, ++at) {
          const int32_t sum =
              op->op == QPLAN_NPU_OP_CONV2D ? conv2d_sum(op, n, y, x, o) : transposed_sum(op, n, y, x, o);
          put(op->output, at, requantized(op, sum, o));
        }
      }
    }
  }
}

static void dense(const qplan_npu_op* op, const qplan_npu_status* stop) {
  const int64_t outputs = op->weights->shape[0], depth = op->weights->shape[1];
  const int64_t rows = qplan_npu_op_elements(op->output) / outputs;
  int64_t r, o, k;
  for (r = 0; r < rows && !stopped(stop); ++r) {
    for (o = 0; o < outputs; ++o) {
      uint32_t sum = (uint32_t)bias_of(op, o);
      for (k = 0; k < depth; ++k) {
        sum += (uint32_t)((get(op->inputs[0], r * depth + k) - op->input_zero_points[0]) *
                          (get(op->weights, o * depth + k) - op->weights_zero_point));
      }
      put(op->output, r * outputs + o, requantized(op, as_signed(sum), o));
    }
  }
}

static int32_t add_values(const qplan_npu_op* op, int32_t a, int32_t b) {
  const int32_t da = a - op->input_zero_points[0], db = b - op->input_zero_points[1];
  int64_t sum;
  if (op->contract == QPLAN_NPU_F32E) {
    const float x = (float)da * op->scales[0], y = (float)db * op->scales[1];
    return quantized((x + y) / op->scales[2], op);
  }
  sum = tfl2(da * (1 << op->left_shift), op->multipliers[0], op->shifts[0]) +
        tfl2(db * (1 << op->left_shift), op->multipliers[1], op->shifts[1]);
  return clamped(tfl2((int32_t)sum, op->multipliers[2], op->shifts[2]) + op->output_zero_point, op);
}

static int32_t mul_values(const qplan_npu_op* op, int32_t a, int32_t b) {
  const int32_t da = a - op->input_zero_points[0], db = b - op->input_zero_points[1];
  if (op->contract == QPLAN_NPU_F32E) {
    const float x = (float)da * op->scales[0], y = (float)db * op->scales[1];
    return quantized(x * y / op->scales[2], op);
  }
  return requantized(op, da * db, 0);
}

/* The element of t that stands where element i of the output is: axes of t that are missing or 1 repeat. */
static int64_t broadcast(const DLTensor* t, const DLTensor* output, int64_t i) {
  int64_t at = 0, step = 1;
  int32_t axis;
  for (axis = 1; axis <= t->ndim; ++axis) {
    const int64_t whole = output->shape[output->ndim - axis], own = t->shape[t->ndim - axis];
    if (own != 1) at += i % whole * step;
    i /= whole;
    step *= own;
  }
  return at;
}

static int32_t element(const qplan_npu_op* op, int64_t i) {
  const int broadcasts = qplan_npu_op_broadcasts(op->op);
  const int32_t a = get(op->inputs[0], broadcasts ? broadcast(op->inputs[0], op->output, i) : i);
  int32_t b = 0;
  if (qplan_npu_op_has_two_inputs(op->op))
    b = get(op->inputs[1], broadcasts ? broadcast(op->inputs[1], op->output, i) : i);
  switch (op->op) {
    case QPLAN_NPU_OP_ADD:
    case QPLAN_NPU_OP_ADD_BROADCAST:
      return add_values(op, a, b);
    case QPLAN_NPU_OP_MUL:
    case QPLAN_NPU_OP_MUL_BROADCAST:
      return mul_values(op, a, b);
    case QPLAN_NPU_OP_MAXIMUM:
      return a > b ? a : b;
    case QPLAN_NPU_OP_MINIMUM:
      return a < b ? a : b;
    case QPLAN_NPU_OP_LOOKUP:
      return get(op->weights, a & 0xff);
    case QPLAN_NPU_OP_RESHAPE:
      return a;
    default:
      return clamped(a, op);
  }
}

static void elementwise(const qplan_npu_op* op, const qplan_npu_status* stop) {
  const int64_t count = qplan_npu_op_elements(op->output);
  int64_t i;
  for (i = 0; i < count; ++i) {
    if (i % 4096 == 0 && stopped(stop)) return;
    put(op->output, i, element(op, i));
  }
}

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int32_t average(const qplan_npu_op* op, int64_t sum, int64_t count) {
  float scale;
  if (op->contract != QPLAN_NPU_F32E)
    return clamped((sum + (sum > 0 ? count / 2 : -(count / 2))) / count, op);
  sum -= count * op->input_zero_points[0];
  if ((op->flags & QPLAN_NPU_OP_COUNT_INCLUDE_PAD) != 0) count = (int64_t)op->window[0] * op->window[1];
  scale = op->scales[0] / (op->scales[1] * (float)count);
  return quantized((float)sum * scale, op);
}

static void pool2d(const qplan_npu_op* op, const qplan_npu_status* stop) {
  const int64_t *in = op->inputs[0]->shape, *out = op->output->shape;
  int64_t n, y, x, c, iy, ix, at = 0;
  for (n = 0; n < out[0]; ++n) {
    for (y = 0; y < out[1]; ++y) {
      const int64_t top = y * op->strides[0] - op->pads[0];
      for (x = 0; x < out[2]; ++x) {
        const int64_t left = x * op->strides[1] - op->pads[1];
        if (stopped(stop)) return;
        for (c = 0; c < out[3]; ++c, ++at) {
          int64_t sum = 0, count = 0, largest = INT32_MIN; /* padding is neither compared nor averaged */
          for (iy = most(top, 0); iy < least(top + op->window[0], in[1]); ++iy) {
            for (ix = most(left, 0); ix < least(left + op->window[1], in[2]); ++ix, ++count) {
              const int32_t v = get(op->inputs[0], ((n * in[1] + iy) * in[2] + ix) * in[3] + c);
              sum += v;
              largest = most(largest, v);
            }
          }
          put(op->output, at,
              op->op == QPLAN_NPU_OP_MAX_POOL2D ? clamped(largest, op) : average(op, sum, count));
        }
      }
    }
  }
}

static void mean(const qplan_npu_op* op, const qplan_npu_status* stop) {
  const int64_t *in = op->inputs[0]->shape, pixels = in[1] * in[2];
  int64_t n, c, k;
  for (n = 0; n < in[0]; ++n) {
    for (c = 0; c < in[3] && !stopped(stop); ++c) {
      int32_t sum = 0; /* of 2^23 elements at most */
      for (k = 0; k < pixels; ++k)
        sum += get(op->inputs[0], (n * pixels + k) * in[3] + c) - op->input_zero_points[0];
      put(op->output, n * in[3] + c, requantized(op, sum, 0));
    }
  }
}

void compute(const qplan_npu_op* op, const qplan_npu_status* stop) {
  switch (op->op) {
    case QPLAN_NPU_OP_CONV2D:
    case QPLAN_NPU_OP_CONV2D_TRANSPOSE:
      conv2d(op, stop);
      break;
    case QPLAN_NPU_OP_DENSE:
      dense(op, stop);
      break;
    case QPLAN_NPU_OP_MAX_POOL2D:
    case QPLAN_NPU_OP_AVG_POOL2D:
      pool2d(op, stop);
      break;
    case QPLAN_NPU_OP_MEAN:
      mean(op, stop);
      break;
    case QPLAN_NPU_OP_PAD:
      pad(op, stop);
      break;
    case QPLAN_NPU_OP_CONCAT:
    case QPLAN_NPU_OP_CONCAT_N:
      concat(op, stop);
      break;
    case QPLAN_NPU_OP_RESIZE_NEAREST:
    case QPLAN_NPU_OP_RESIZE_BILINEAR:
      resize(op, stop);
      break;
    case QPLAN_NPU_OP_SOFTMAX:
      softmax(op, stop);
      break;
    default: /* check_op took it: it is one that goes element by element */
      elementwise(op, stop);
      break;
  }
}

uint64_t op_macs(const qplan_npu_op* op) {
  if (!qplan_npu_op_is_layer(op->op)) return 0;
  if (op->op == QPLAN_NPU_OP_CONV2D_TRANSPOSE) /* each element of the input with all taps */
    return (uint64_t)qplan_npu_op_elements(op->inputs[0]) *
           (uint64_t)(qplan_npu_op_elements(op->weights) / op->weights->shape[3]);
  return (uint64_t)qplan_npu_op_elements(op->output) *
         (uint64_t)(qplan_npu_op_elements(op->weights) / op->weights->shape[0]);
}
