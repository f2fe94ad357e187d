/* Softmax of rows: docs/numerics/softmax.md. Numbers Qm.n have 32 bits, m of them before the point. */
#include "skeleton.h"

/* floor((a * b + 2^30) / 2^31) */
static int32_t product(int32_t a, int32_t b) {
  return (int32_t)floor_shift((int64_t)a * b + (INT64_C(1) << 30), 31);
}
/* a / 2^count, halves away from zero. */
static int32_t divided(int32_t a, int count) {
  const int64_t size = a < 0 ? -(int64_t)a : a;
  const int64_t half = count == 0 ? 0 : INT64_C(1) << (count - 1);
  const int64_t quotient = (size + half) >> count;
  return (int32_t)(a < 0 ? -quotient : quotient);
}
static int32_t saturated(int64_t a) {
  return a > INT32_MAX ? INT32_MAX : a < INT32_MIN ? INT32_MIN : (int32_t)a;
}

/* exp(a) in Q0.31, of a <= 0 in Q5.26. */
static int32_t exponential(int32_t a) {
  static const int32_t kFactors[7] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
  const int32_t quarter = 1 << 24;
  const int32_t rest = (int32_t)((uint32_t)a & (uint32_t)(quarter - 1)) - quarter;
  const int64_t quarters = (int64_t)rest - a;
  const int32_t x = rest * 32 + (1 << 28);
  const int32_t x2 = product(x, x), x3 = product(x2, x), x4 = product(x2, x2);
  const int32_t tail = divided(product(divided(x4, 2) + x3, 715827883) + x2, 1);
  int32_t y = 1895147668 + product(1895147668, x + tail);
  int k;
  if (a == 0) return INT32_MAX;
  for (k = 0; k < 7; ++k) {
    if ((quarters >> (24 + k) & 1) != 0) y = product(y, kFactors[k]);
  }
  return y;
}

/* 1 / (1 + a) in Q0.31, of a in [0, 1) in Q0.31. */
static int32_t reciprocal(int32_t a) {
  const int32_t half = (int32_t)(((int64_t)a + (INT64_C(1) << 31)) >> 1);
  int32_t x = 1515870810 + product(half, -1010580540);
  int i;
  for (i = 0; i < 3; ++i) x += saturated((int64_t)product(x, (1 << 29) - product(half, x)) * 4);
  return saturated((int64_t)x * 2);
}

/* Under TFL2; d <= 0. */
static int32_t share_of(const qplan_npu_op* op, int32_t d) {
  return exponential(product((int32_t)(d * (INT64_C(1) << op->shifts[0])), op->multipliers[0]));
}

static void row_tfl2(const qplan_npu_op* op, int64_t at, int64_t depth, int32_t largest) {
  const int32_t least = op->output->dtype.code == kDLInt ? -128 : 0;
  const int32_t diff_min = -(int32_t)((INT64_C(31) << 26) >> op->shifts[0]);
  int64_t sum = 0, i, power = -19;
  int32_t inverse;
  for (i = 0; i < depth; ++i) {
    const int32_t d = get(op->inputs[0], at + i) - largest;
    if (d >= diff_min) sum += divided(share_of(op, d), 12);
  }
  if (sum > INT32_MAX) sum = INT32_MAX;
  for (i = sum; i > 1; i >>= 1) ++power;
  inverse = reciprocal((int32_t)((sum << (12 - power)) - (INT64_C(1) << 31)));
  for (i = 0; i < depth; ++i) {
    const int32_t d = get(op->inputs[0], at + i) - largest;
    int32_t value = 0;
    if (d >= diff_min && power + 23 < 32) value = divided(product(inverse, share_of(op, d)), (int)power + 23);
    put(op->output, at + i, least + (value > 255 ? 255 : value));
  }
}

static void row_f32e(const qplan_npu_op* op, int64_t at, int64_t depth, int32_t largest) {
  const float* table = op->scales + 1;
  float sum = 0.0f;
  int64_t i;
  for (i = 0; i < depth; ++i) sum += table[largest - get(op->inputs[0], at + i)];
  for (i = 0; i < depth; ++i) {
    const float share = table[largest - get(op->inputs[0], at + i)] / sum;
    put(op->output, at + i, quantized(share / op->scales[0], op));
  }
}

void softmax(const qplan_npu_op* op, const qplan_npu_status* stop) {
  const int64_t depth = op->output->shape[op->output->ndim - 1];
  const int64_t count = qplan_npu_op_elements(op->output);
  int64_t at, i;
  for (at = 0; at < count && !stopped(stop); at += depth) {
    int32_t largest = get(op->inputs[0], at);
    for (i = 1; i < depth; ++i) {
      const int32_t v = get(op->inputs[0], at + i);
      if (v > largest) largest = v;
    }
    if (op->contract == QPLAN_NPU_F32E) {
      row_f32e(op, at, depth, largest);
    } else {
      row_tfl2(op, at, depth, largest);
    }
  }
}
