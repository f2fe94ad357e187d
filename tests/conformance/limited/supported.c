/* dense: fully connected layers alone. c16: channels in multiples of 16, one scale a layer, zero points
 * and borders of 0. acc32: accumulators alone. no_contracts: capabilities that leave all to `supported`.
 * nothing: no contract and no operator at all. native: a blob format of its own; binary: one whose bytes
 * are no letters. contradicts: c16 whose `supported` forgets it. refuses: contracts, and a `supported`
 * that takes nothing. tiny: memory of one byte, which nearly nothing fits in. no_answer: `supported`
 * mistakes config for a device. one_operator: native, and `load` refuses programs of several. no_dense:
 * native, and `load` blames fully connected layers. deaf: native, and `load` understands nothing.
 * two_binds: jobs bind two buffers. scratch: native, and its programs need more scratch than the list
 * says; no_scratch: none, because they carry it. signed: int8 alone, and its target flips uint8.
 * padded: native, and tensors at the border have channels in multiples of 16, after one pixel's border.
 * blocked16, blocked32: native, and tensors at the border have blocks of so many channels outside of all
 * other axes; there are neither depthwise convolutions nor sums of 16 channels, so that many tensors are at
 * a border. The first ignores what the last block lacks, the second wants and leaves a fill there, and is
 * `signed` too.
 * fast: its target asks for scratch in fast memory, of which the device has some; slow: it has none;
 * misasks: its target asks for scratch in flash. target.c has the rest. */
#include "tests/conformance/limited/limited.h"

#define check_op sample_check_op
#define fill_capabilities sample_capabilities
#include "samples/npu_driver_skeleton/supported.c"
#undef check_op
#undef fill_capabilities

enum { LIMITED_RULE = 77 };

void fill_capabilities(uint32_t max_window, qplan_npu_capabilities* c) {
  sample_capabilities(max_window, c);
  if (limited_is("c16") || limited_is("contradicts")) {
    c->channel_pack = 16;
    c->input_zero_point = c->output_zero_point = c->pad_value = 0;
    c->contracts = QPLAN_NPU_TFL2;
    c->contracts_per_channel = 0;
  }
  if (limited_is("acc32")) {
    c->contracts = c->contracts_per_channel = QPLAN_NPU_ACC32;
    c->output_zero_point = 0;
  }
  if (limited_is("nothing") || limited_is("no_contracts")) c->contracts = c->contracts_per_channel = 0;
  if (limited_is("two_binds")) c->max_binds = 2;
  if (limited_is("tiny")) c->max_buffer_bytes = 1;
  if (limited_format() != 0) c->blob_formats[0] = limited_format();
}

static int takes_c16(const qplan_npu_op* op) {
  const DLTensor *x = op->inputs[0], *y = op->output;
  int i;
  for (i = 0; i < 2; ++i) {
    if (op->input_zero_points[i] != 0) return 0;
  }
  for (i = 0; i < 4 && op->op == QPLAN_NPU_OP_CONV2D && (op->flags & QPLAN_NPU_OP_PAD_VALUE) != 0; ++i) {
    if (op->pads[i] != 0 && op->pad_value != 0) return 0;
  }
  if (op->output_zero_point != 0 || op->contract != QPLAN_NPU_TFL2) return 0;
  if ((op->op == QPLAN_NPU_OP_CONV2D || op->op == QPLAN_NPU_OP_DENSE) && op->num_scales > 1) return 0;
  return x->ndim > 0 && y->ndim > 0 && x->shape[x->ndim - 1] % 16 == 0 && y->shape[y->ndim - 1] % 16 == 0;
}

static int takes_signed(const qplan_npu_op* op) {
  uint32_t i;
  for (i = 0; i < qplan_npu_op_num_inputs(op); ++i) {
    if (qplan_npu_op_input(op, i)->dtype.code == kDLUInt) return 0;
  }
  return op->output->dtype.code == kDLInt && (op->weights == NULL || op->weights->dtype.code == kDLInt);
}

static int takes_blocked(const qplan_npu_op* op) {
  const DLTensor* y = op->output;
  const int is_sum = op->op == QPLAN_NPU_OP_ADD || op->op == QPLAN_NPU_OP_ADD_BROADCAST;
  if (is_sum) return y->ndim == 0 || y->shape[y->ndim - 1] != 16;
  return op->op != QPLAN_NPU_OP_CONV2D || op->groups == 1;
}

static int takes(const qplan_npu_op* op) {
  if (limited_block() != 0 && !takes_blocked(op)) return 0;
  if (limited_is("signed") || limited_is("blocked32")) return takes_signed(op);
  if (limited_is("dense") || limited_is("boasts")) return op->op == QPLAN_NPU_OP_DENSE;
  if (limited_is("c16")) return takes_c16(op);
  if (limited_is("acc32")) return op->contract == QPLAN_NPU_ACC32;
  return !limited_is("nothing") && !limited_is("refuses") && !limited_is("tiny");
}

qplan_npu_status check_op(uint32_t max_window, const qplan_npu_op* op, qplan_npu_reason* reasons,
                          uint32_t* num_reasons) {
  const uint32_t room = num_reasons == NULL ? 0 : *num_reasons;
  qplan_npu_status status;
  if (limited_is("no_answer")) return QPLAN_NPU_E_ARGUMENT;
  status = sample_check_op(max_window, op, reasons, num_reasons);
  if (status != QPLAN_NPU_OK || takes(op)) return status;
  *num_reasons = 1;
  if (reasons != NULL && room > 0)
    qplan_oplist_refuse(reasons, 0, LIMITED_RULE, QPLAN_OPLIST_NONE, 0, 0, "the device has no such unit");
  return QPLAN_NPU_E_UNSUPPORTED;
}
