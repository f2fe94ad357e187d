/* What the device can do. The packer asks the same function about the same operators, long before there is a
 * device: the target passes the variant that its options name, the driver that of the device. */
#include <stdlib.h>

#include "skeleton.h"

enum { RULE_FORM = 1, RULE_CONTRACT = 2, RULE_WINDOW = 3, RULE_GROUPS = 4 };

const qplan_npu_rule skeleton_rules[SKELETON_NUM_RULES] = {
    {RULE_FORM, 0, "skeleton.form", "a well-formed operator on packed tensors of 8 bits",
     "quantise the model to 8-bit integers"},
    {RULE_CONTRACT, 0, "skeleton.contract",
     "contract tfl2, tfl1, f32e or acc32; of all but layers tfl2 or f32e",
     "pack with --contract=tfl2 if these results are acceptable"},
    {RULE_WINDOW, 0, "skeleton.window",
     "kernels and pools of at most the window that the device has, 256 x 256 without options",
     "nothing to change in the model"},
    {RULE_GROUPS, 0, "skeleton.groups", "one group, or as many as input channels",
     "a convolution without groups"},
};

static void put_text(char* to, size_t room, const char* text) {
  const size_t length = strlen(text) < room - 1 ? strlen(text) : room - 1;
  memcpy(to, text, length);
  to[length] = '\0';
}

qplan_npu_status read_options(const char* options, uint32_t* max_window, qplan_npu_reason* why) {
  static const char kWindow[] = "window=";
  const size_t length = sizeof(kWindow) - 1;
  char* end;
  unsigned long value;
  *max_window = SKELETON_MAX_WINDOW;
  if (options == NULL || options[0] == '\0') return QPLAN_NPU_OK;
  if (strncmp(options, kWindow, length) != 0)
    return refuse(why, QPLAN_NPU_E_ARGUMENT, 0, 0, "skeleton: an option is not known; known: window");
  value = strtoul(options + length, &end, 10);
  if (options[length] < '0' || options[length] > '9' || *end != '\0' || value < 1 ||
      value > SKELETON_MAX_WINDOW)
    return refuse(why, QPLAN_NPU_E_ARGUMENT, SKELETON_MAX_WINDOW, 0,
                  "skeleton: window is not a number from 1 to 256");
  *max_window = (uint32_t)value;
  return QPLAN_NPU_OK;
}

/* Change the constant whenever check_op takes less, or when results change. */
uint64_t hash_of(uint32_t max_window) { return UINT64_C(0x736b656c65746f31) ^ (uint64_t)max_window << 32; }

void fill_capabilities(uint32_t max_window, qplan_npu_capabilities* c) {
  memset(c, 0, sizeof(*c));
  c->abi = QPLAN_NPU_ABI;
  put_text(c->vendor, sizeof(c->vendor), "qplan");
  put_text(c->target, sizeof(c->target), "skeleton");
  put_text(c->hw_revision, sizeof(c->hw_revision), "cpu");
  put_text(c->driver_revision, sizeof(c->driver_revision), "1.0");
  c->hash = hash_of(max_window);
  c->blob_formats[0] = QPLAN_NPU_BLOB_OPLIST;
  c->buffer_alignment = SKELETON_ALIGNMENT;
  c->line_alignment = 1;
  c->channel_pack = 1;
  c->max_binds = 65536;
  c->max_queue = SKELETON_QUEUE;
  c->num_engines = 1;
  c->memory_kinds = QPLAN_NPU_MEMORY_COHERENT;
  c->address_bits = 8 * sizeof(void*);
  c->max_buffer_bytes = SKELETON_MAX_BUFFER;
  c->contracts = SKELETON_CONTRACTS;
  c->contracts_per_channel = SKELETON_CONTRACTS;
  c->input_zero_point = c->output_zero_point = c->pad_value = 1;
  c->flags = QPLAN_NPU_CAN_ASYNC | QPLAN_NPU_CAN_CANCEL | QPLAN_NPU_CAN_COUNT | QPLAN_NPU_CAN_MULTIPLY |
             QPLAN_NPU_CAN_IMPORT | QPLAN_NPU_CAN_SOFT_RESET;
  c->clock_khz = 100000;
}

/* Counts reasons, and keeps those for which there is room. */
struct list {
  qplan_npu_reason* reasons;
  uint32_t room, count;
};
static void add(struct list* list, uint32_t rule, int64_t limit, int64_t actual, const char* text) {
  if (list->count < list->room) {
    (void)qplan_oplist_refuse(&list->reasons[list->count], 0, rule, QPLAN_OPLIST_NONE, limit, actual, text);
  }
  ++list->count;
}

static void check_window(uint32_t max_window, const qplan_npu_op* op, struct list* list) {
  int64_t h = op->window[0], w = op->window[1];
  if (qplan_npu_op_is_layer(op->op)) h = op->weights->shape[1], w = op->weights->shape[2];
  if (h > (int64_t)max_window || w > (int64_t)max_window)
    add(list, RULE_WINDOW, max_window, h > w ? h : w, "the window is larger than the device's");
}

qplan_npu_status check_op(uint32_t max_window, const qplan_npu_op* from, qplan_npu_reason* reasons,
                          uint32_t* num_reasons) {
  struct list list = {reasons, 0, 0};
  const char* malformed;
  qplan_npu_op op;
  if (num_reasons == NULL || !copy_in(&op, sizeof(op), from)) return QPLAN_NPU_E_ARGUMENT;
  if (reasons != NULL) list.room = *num_reasons;
  malformed = qplan_npu_op_check(&op);
  if (malformed != NULL) add(&list, RULE_FORM, 0, 0, malformed);
  if (qplan_npu_op_has_contract(op.op)) { /* the others are the same under all */
    const uint32_t contracts =
        qplan_npu_op_is_layer(op.op) ? SKELETON_CONTRACTS : QPLAN_NPU_TFL2 | QPLAN_NPU_F32E;
    if ((op.contract & contracts) == 0 || (op.contract & (op.contract - 1)) != 0)
      add(&list, RULE_CONTRACT, contracts, op.contract, "the contract is not one that this device computes");
  }
  if (malformed == NULL && (op.op == QPLAN_NPU_OP_CONV2D || op.op == QPLAN_NPU_OP_CONV2D_TRANSPOSE ||
                            op.op == QPLAN_NPU_OP_MAX_POOL2D || op.op == QPLAN_NPU_OP_AVG_POOL2D)) {
    check_window(max_window, &op, &list);
  }
  if (malformed == NULL && op.op == QPLAN_NPU_OP_CONV2D && op.groups != 1 &&
      op.groups != op.inputs[0]->shape[3])
    add(&list, RULE_GROUPS, op.inputs[0]->shape[3], op.groups,
        "groups are neither 1 nor as many as input channels");
  *num_reasons = list.count;
  return list.count == 0 ? QPLAN_NPU_OK : QPLAN_NPU_E_UNSUPPORTED;
}
