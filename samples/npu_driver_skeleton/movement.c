/* Operators that move or interpolate stored values: pads, concatenations, resizes. */
#include "skeleton.h"

void pad(const qplan_npu_op* op, const qplan_npu_status* stop) {
  const int64_t *in = op->inputs[0]->shape, *out = op->output->shape;
  int64_t n, y, x, c, at = 0;
  for (n = 0; n < out[0]; ++n) {
    for (y = 0; y < out[1] && !stopped(stop); ++y) {
      const int64_t iy = y - op->pads[0];
      for (x = 0; x < out[2]; ++x) {
        const int64_t ix = x - op->pads[1];
        const int is_inside = iy >= 0 && iy < in[1] && ix >= 0 && ix < in[2];
        for (c = 0; c < out[3]; ++c, ++at) {
          put(op->output, at,
              is_inside ? get(op->inputs[0], ((n * in[1] + iy) * in[2] + ix) * in[3] + c) : op->pad_value);
        }
      }
    }
  }
}

/* The extents before the axis, along it and after it. */
void concat(const qplan_npu_op* op, const qplan_npu_status* stop) {
  const int32_t axis = op->op == QPLAN_NPU_OP_CONCAT ? op->output->ndim - 1 : (int32_t)op->axis;
  const uint32_t count = qplan_npu_op_num_inputs(op);
  int64_t rows = 1, after = 1, r, e, at = 0;
  int32_t i;
  uint32_t part;
  for (i = 0; i < axis; ++i) rows *= op->output->shape[i];
  for (i = axis + 1; i < op->output->ndim; ++i) after *= op->output->shape[i];
  for (r = 0; r < rows && !stopped(stop); ++r) {
    for (part = 0; part < count; ++part) {
      const DLTensor* x = qplan_npu_op_input(op, part);
      const int64_t length = x->shape[axis] * after;
      for (e = 0; e < length; ++e, ++at) put(op->output, at, get(x, r * length + e));
    }
  }
}

/* ---- resizes ---- */
struct neighbours { /* of an output along an axis: two positions, and the distance to the lower one */
  int64_t lower, upper;
  int64_t part; /* in 1/1024 */
  float real;   /* RESIZE_FLOAT */
};

static int64_t within(int64_t value, int64_t last) { return value < 0 ? 0 : value > last ? last : value; }

static struct neighbours integer_neighbours(const qplan_npu_op* op, int axis, int64_t o) {
  const int64_t in = op->inputs[0]->shape[axis], out = op->output->shape[axis];
  const int aligns = (op->flags & QPLAN_NPU_OP_ALIGN_CORNERS) != 0 && out > 1;
  const int64_t scale = aligns ? (1024 * (in - 1) + (out - 1) / 2) / (out - 1) : (1024 * in + out / 2) / out;
  struct neighbours n;
  int64_t position = o * scale;
  if ((op->flags & QPLAN_NPU_OP_HALF_PIXEL_CENTERS) != 0) position += scale / 2 - 512;
  n.lower = within(position / 1024, in - 1);
  n.upper = within((position + 1023) / 1024, in - 1);
  n.part = position - 1024 * n.lower;
  n.real = 0.0f;
  return n;
}

static struct neighbours float_neighbours(const qplan_npu_op* op, int axis, int64_t o) {
  const int64_t in = op->inputs[0]->shape[axis], out = op->output->shape[axis];
  const int aligns = (op->flags & QPLAN_NPU_OP_ALIGN_CORNERS) != 0 && out > 1;
  const float scale = aligns ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
  struct neighbours n;
  float position = (float)o * scale;
  int64_t whole;
  if ((op->flags & QPLAN_NPU_OP_HALF_PIXEL_CENTERS) != 0) {
    position = ((float)o + 0.5f) * scale;
    position -= 0.5f;
  }
  whole = (int64_t)position; /* above -1: floor, or 0 */
  n.lower = within(whole, in - 1);
  n.upper = within((float)whole < position ? whole + 1 : whole, in - 1);
  n.part = 0;
  n.real = position - (float)n.lower;
  return n;
}

static int32_t interpolated(const int32_t v[4], const struct neighbours* y, const struct neighbours* x) {
  const int64_t dy = y->part, dx = x->part;
  const int64_t sum =
      v[0] * (1024 - dy) * (1024 - dx) + v[1] * dy * (1024 - dx) + v[2] * (1024 - dy) * dx + v[3] * dy * dx;
  return (int32_t)((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20)); /* halves away from zero */
}

static int32_t interpolated_float(const int32_t v[4], const struct neighbours* y,
                                  const struct neighbours* x) {
  const float dy = y->real, dx = x->real;
  const float sum = (float)v[0] * (1.0f - dy) * (1.0f - dx) + (float)v[1] * dy * (1.0f - dx) +
                    (float)v[2] * (1.0f - dy) * dx + (float)v[3] * dy * dx;
  return (int32_t)(sum + 0.5f);
}

static int32_t resized(const qplan_npu_op* op, int64_t n, const struct neighbours* y,
                       const struct neighbours* x, int64_t c) {
  const DLTensor* from = op->inputs[0];
  const int64_t* in = from->shape;
  int32_t v[4]; /* lower and lower, upper and lower, lower and upper, upper and upper: height first */
  v[0] = get(from, ((n * in[1] + y->lower) * in[2] + x->lower) * in[3] + c);
  if (op->op == QPLAN_NPU_OP_RESIZE_NEAREST) return v[0];
  v[1] = get(from, ((n * in[1] + y->upper) * in[2] + x->lower) * in[3] + c);
  v[2] = get(from, ((n * in[1] + y->lower) * in[2] + x->upper) * in[3] + c);
  v[3] = get(from, ((n * in[1] + y->upper) * in[2] + x->upper) * in[3] + c);
  return (op->flags & QPLAN_NPU_OP_RESIZE_FLOAT) != 0 ? interpolated_float(v, y, x) : interpolated(v, y, x);
}

static struct neighbours neighbours_of(const qplan_npu_op* op, int axis, int64_t o) {
  struct neighbours n = {0, 0, 0, 0.0f};
  if (op->op == QPLAN_NPU_OP_RESIZE_NEAREST) {
    n.lower = qplan_npu_op_nearest(op, axis, o);
    return n;
  }
  return (op->flags & QPLAN_NPU_OP_RESIZE_FLOAT) != 0 ? float_neighbours(op, axis, o)
                                                      : integer_neighbours(op, axis, o);
}

void resize(const qplan_npu_op* op, const qplan_npu_status* stop) {
  const int64_t* out = op->output->shape;
  int64_t n, y, x, c, at = 0;
  for (n = 0; n < out[0]; ++n) {
    for (y = 0; y < out[1]; ++y) {
      const struct neighbours rows = neighbours_of(op, 1, y);
      if (stopped(stop)) return;
      for (x = 0; x < out[2]; ++x) {
        const struct neighbours columns = neighbours_of(op, 2, x);
        for (c = 0; c < out[3]; ++c, ++at) put(op->output, at, resized(op, n, &rows, &columns, c));
      }
    }
  }
}
