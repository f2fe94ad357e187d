/* clang-format off */
/* npu_oplist.h -- the operator list: a region as data, for drivers that compile or interpret it themselves.
 * C99, C11, C++17; needs memcpy and nothing else of a C library.
 *
 * A blob of format QPLAN_NPU_BLOB_OPLIST, little-endian, in this order, each part directly after the one
 * before:
 *
 *   header      qplan_oplist_header
 *   slots       num_slots records of slot_bytes: qplan_oplist_slot. The regions of the program
 *   tensors     num_tensors records of tensor_bytes: qplan_oplist_tensor
 *   operators   num_ops records of op_bytes: qplan_oplist_op, in the order in which they run
 *   names       names_bytes: NUL-terminated texts, padded so that what follows begins at a multiple of 64
 *   data        of the slots that the blob carries, each at a multiple of 64, zeros between
 *
 * Tensors are packed and row-major, without borders: a bound slot is the application's tensor as it is.
 * Activations are NHWC, weights OHWI ([O][H][W][I / groups]) or [O][I], always with the dtype that they have
 * in the network's canonical form (docs/canonical-form.md). What the fields of an operator mean is said at qplan_npu_op, what it computes, to the bit, in
 * docs/numerics.md. No operator's output overlaps its operands. What an operator reads is an input, carried, or was
 * written before it: so the packer writes lists, and so the reader does not prove it. An operator that reads what none
 * has written computes with whatever the memory holds.
 *
 * Versions: the major changes when old readers would compute something else, the minor when records grow at
 * their ends. Read records with their size in the header as the distance.
 *
 * The functions below are the reader: qplan_oplist_open proves that everything is inside the blob and its
 * slot, and that an operator that requantises has what it requantises with; qplan_oplist_bind makes of a
 * record what qplan_npu_driver.supported() takes, with pointers to compute with; qplan_npu_op_check proves
 * that loops over its extents stay inside its tensors. Whoever passes a blob through the three, with memory
 * for all slots, can run it without leaving that memory. */
/* clang-format on */
#ifndef QPLAN_NPU_OPLIST_H_
#define QPLAN_NPU_OPLIST_H_

#include <qplan/npu_op.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QPLAN_OPLIST_VERSION 0x00010001u /* major << 16 | minor; 1.1: operators with more inputs */
#define QPLAN_OPLIST_OP_BYTES_1_0 128u   /* of qplan_oplist_op in version 1.0 */
#define QPLAN_OPLIST_NONE 0xffffffffu    /* in the place of an index */
#define QPLAN_OPLIST_ALIGNMENT 64u       /* of carried data */

typedef struct qplan_oplist_header { /* 64 bytes */
  uint32_t magic;                    /* QPLAN_NPU_BLOB_OPLIST */
  uint32_t version;
  uint64_t total_bytes;
  uint64_t capabilities_hash; /* qplan_npu_capabilities.hash of what it was made for */
  uint64_t checksum;          /* qplan_oplist_checksum of all other bytes */
  uint32_t num_slots;
  uint32_t num_tensors;
  uint32_t num_ops;
  uint32_t slot_bytes;
  uint32_t tensor_bytes;
  uint32_t op_bytes;
  uint32_t names_bytes;
  uint32_t reserved;
} qplan_oplist_header;

typedef struct qplan_oplist_slot { /* 32 bytes */
  uint32_t usage;                  /* one of QPLAN_NPU_USE_*; WEIGHTS are carried, all others bound */
  uint32_t alignment;              /* of its memory */
  uint64_t bytes;
  uint64_t data_offset; /* WEIGHTS: from the start of the blob; else 0 */
  uint64_t reserved;
} qplan_oplist_slot;

typedef struct qplan_oplist_tensor { /* 72 bytes */
  uint32_t slot;
  uint8_t dtype_code; /* as in DLDataType */
  uint8_t dtype_bits;
  uint16_t dtype_lanes; /* 1 */
  uint32_t rank;        /* at most 6 */
  uint32_t reserved;
  uint64_t offset;  /* from the start of the slot, a multiple of the element's size */
  int64_t shape[6]; /* extents of at least 1, outermost first */
} qplan_oplist_tensor;

typedef struct qplan_oplist_op { /* 160 bytes; fields as in qplan_npu_op, tensors by index or
                                    QPLAN_OPLIST_NONE */
  uint32_t op;
  uint32_t contract;
  uint32_t flags;
  uint32_t name; /* offset in the names, or QPLAN_OPLIST_NONE */
  uint32_t inputs[2];
  uint32_t weights;
  uint32_t bias;
  uint32_t output;
  uint32_t multipliers; /* int32 [num_scales]; so are shifts */
  uint32_t shifts;
  uint32_t scales; /* float32 [num_scales] */
  int32_t input_zero_points[2];
  int32_t output_zero_point;
  int32_t weights_zero_point;
  int32_t pad_value;
  int32_t left_shift;
  int32_t clamp_min;
  int32_t clamp_max;
  uint32_t groups;
  uint32_t window[2];
  uint32_t strides[2];
  uint32_t dilations[2];
  uint32_t pads[4];
  uint32_t num_scales;
  /* since 1.1; lists of 1.0 end before */
  uint32_t more_inputs[QPLAN_NPU_MAX_INPUTS - 2]; /* CONCAT_N: after the first two */
  uint32_t num_inputs;
  uint32_t axis;
} qplan_oplist_op;

/* Reasons (qplan_npu_reason.code) of the functions below; place is the slot, tensor or operator. */
enum {
  QPLAN_OPLIST_BAD_HEADER = 0x51000001,
  QPLAN_OPLIST_BAD_VERSION = 0x51000002,
  QPLAN_OPLIST_BAD_SIZE = 0x51000003,
  QPLAN_OPLIST_BAD_CHECKSUM = 0x51000004,
  QPLAN_OPLIST_BAD_SLOT = 0x51000005,
  QPLAN_OPLIST_BAD_TENSOR = 0x51000006,
  QPLAN_OPLIST_BAD_OP = 0x51000007
};

typedef struct qplan_oplist { /* an opened blob, which must stay */
  const uint8_t* blob;
  qplan_oplist_header header;
} qplan_oplist;

/* An operator with its tensors. Not copied: its pointers lead into itself. */
typedef struct qplan_oplist_call {
  qplan_npu_op op;
  DLTensor tensors[5 + QPLAN_NPU_MAX_INPUTS - 2]; /* two inputs, weights, bias, output, more inputs */
  int64_t shapes[5 + QPLAN_NPU_MAX_INPUTS - 2][QPLAN_OPLIST_MAX_RANK];
  const DLTensor* more_inputs[QPLAN_NPU_MAX_INPUTS - 2];
} qplan_oplist_call;

/* status, and the reason where there is room for it. */
static inline qplan_npu_status qplan_oplist_refuse(qplan_npu_reason* why, qplan_npu_status status,
                                                   uint32_t code, uint32_t place, int64_t limit,
                                                   int64_t actual, const char* text) {
  if (why != NULL) {
    size_t length = strlen(text);
    if (length > sizeof(why->text) - 1) length = sizeof(why->text) - 1;
    why->code = code;
    why->place = place;
    why->limit = limit;
    why->actual = actual;
    memcpy(why->text, text, length);
    why->text[length] = '\0';
  }
  return status;
}

/* FNV-1a, 64 bits, of all bytes but the checksum's own (24 to 31), of a blob of at least a header. */
static inline uint64_t qplan_oplist_checksum(const void* blob, uint64_t bytes) {
  const uint8_t* at = (const uint8_t*)blob;
  uint64_t hash = 0xcbf29ce484222325u, i;
  for (i = 0; i < bytes; ++i) {
    if (i < 24 || i >= 32) hash = (hash ^ at[i]) * 0x100000001b3u;
  }
  return hash;
}

static inline uint64_t qplan_oplist_slots_end(const qplan_oplist_header* h) {
  return sizeof(qplan_oplist_header) + (uint64_t)h->num_slots * h->slot_bytes;
}
static inline uint64_t qplan_oplist_tensors_end(const qplan_oplist_header* h) {
  return qplan_oplist_slots_end(h) + (uint64_t)h->num_tensors * h->tensor_bytes;
}
static inline uint64_t qplan_oplist_ops_end(const qplan_oplist_header* h) {
  return qplan_oplist_tensors_end(h) + (uint64_t)h->num_ops * h->op_bytes;
}

/* Records of an opened list; index below their number. */
static inline qplan_oplist_slot qplan_oplist_slot_at(const qplan_oplist* list, uint32_t index) {
  qplan_oplist_slot slot;
  memcpy(&slot, list->blob + sizeof(qplan_oplist_header) + (uint64_t)index * list->header.slot_bytes,
         sizeof(slot));
  return slot;
}
static inline qplan_oplist_tensor qplan_oplist_tensor_at(const qplan_oplist* list, uint32_t index) {
  qplan_oplist_tensor t;
  memcpy(&t, list->blob + qplan_oplist_slots_end(&list->header) + (uint64_t)index * list->header.tensor_bytes,
         sizeof(t));
  return t;
}
static inline qplan_oplist_op qplan_oplist_op_at(const qplan_oplist* list, uint32_t index) {
  const size_t bytes =
      list->header.op_bytes < sizeof(qplan_oplist_op) ? QPLAN_OPLIST_OP_BYTES_1_0 : sizeof(qplan_oplist_op);
  qplan_oplist_op op;
  memset(&op, 0, sizeof(op));
  memset(op.more_inputs, 0xff, sizeof(op.more_inputs)); /* QPLAN_OPLIST_NONE */
  memcpy(&op, list->blob + qplan_oplist_tensors_end(&list->header) + (uint64_t)index * list->header.op_bytes,
         bytes);
  return op;
}

/* Bytes of a tensor with extents and dtype as a list allows; 0: none of that kind. */
static inline uint64_t qplan_oplist_tensor_bytes(const qplan_oplist_tensor* t) {
  uint64_t bytes = t->dtype_bits / 8u;
  uint32_t axis;
  if (t->rank > QPLAN_OPLIST_MAX_RANK || t->dtype_lanes != 1 ||
      (t->dtype_bits != 8 && t->dtype_bits != 16 && t->dtype_bits != 32)) {
    return 0;
  }
  for (axis = 0; axis < t->rank; ++axis) {
    if (t->shape[axis] < 1 || t->shape[axis] > INT32_MAX ||
        bytes > (UINT64_MAX >> 33) / (uint64_t)t->shape[axis])
      return 0;
    bytes *= (uint64_t)t->shape[axis];
  }
  return bytes;
}

/* For qplan_oplist_open. */
static inline qplan_npu_status qplan_oplist_check_slots(const qplan_oplist* list, qplan_npu_reason* why) {
  const uint64_t data_begin = qplan_oplist_ops_end(&list->header) + list->header.names_bytes;
  uint32_t i;
  for (i = 0; i < list->header.num_slots; ++i) {
    const qplan_oplist_slot slot = qplan_oplist_slot_at(list, i);
    const uint32_t use = slot.usage;
    if (use != QPLAN_NPU_USE_INPUT && use != QPLAN_NPU_USE_OUTPUT && use != QPLAN_NPU_USE_WEIGHTS &&
        use != QPLAN_NPU_USE_SCRATCH) {
      return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_SLOT, i, 8, use,
                                 "oplist: usage of a slot");
    }
    if (slot.alignment == 0 || (slot.alignment & (slot.alignment - 1)) != 0 || slot.alignment > 4096)
      return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_SLOT, i, 4096, slot.alignment,
                                 "oplist: alignment of a slot");
    if (use != QPLAN_NPU_USE_WEIGHTS) {
      if (slot.data_offset == 0) continue;
      return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_SLOT, i, 0,
                                 (int64_t)slot.data_offset, "oplist: a slot that is bound carries data");
    }
    if (slot.data_offset % QPLAN_OPLIST_ALIGNMENT != 0 || slot.data_offset < data_begin ||
        slot.data_offset > list->header.total_bytes ||
        slot.bytes > list->header.total_bytes - slot.data_offset) {
      return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_SLOT, i,
                                 (int64_t)list->header.total_bytes, (int64_t)slot.data_offset,
                                 "oplist: the data of a slot is outside the blob");
    }
  }
  return QPLAN_NPU_OK;
}

static inline qplan_npu_status qplan_oplist_check_tensors(const qplan_oplist* list, qplan_npu_reason* why) {
  uint32_t i;
  for (i = 0; i < list->header.num_tensors; ++i) {
    const qplan_oplist_tensor t = qplan_oplist_tensor_at(list, i);
    const uint64_t bytes = qplan_oplist_tensor_bytes(&t);
    qplan_oplist_slot slot;
    if (bytes == 0 || t.slot >= list->header.num_slots)
      return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_TENSOR, i, list->header.num_slots,
                                 t.slot, "oplist: dtype, extents or slot of a tensor");
    slot = qplan_oplist_slot_at(list, t.slot);
    if (t.offset % (t.dtype_bits / 8u) != 0 || slot.alignment % (t.dtype_bits / 8u) != 0 ||
        t.offset > slot.bytes || bytes > slot.bytes - t.offset) {
      return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_TENSOR, i, (int64_t)slot.bytes,
                                 (int64_t)t.offset,
                                 "oplist: a tensor is outside its slot, or between elements");
    }
  }
  return QPLAN_NPU_OK;
}

/* Whether tensors a and b share bytes. */
static inline int qplan_oplist_overlap(const qplan_oplist* list, uint32_t a, uint32_t b) {
  const qplan_oplist_tensor x = qplan_oplist_tensor_at(list, a), y = qplan_oplist_tensor_at(list, b);
  return x.slot == y.slot && x.offset < y.offset + qplan_oplist_tensor_bytes(&y) &&
         y.offset < x.offset + qplan_oplist_tensor_bytes(&x);
}

/* Whether the operator reads multipliers and shifts, or scales. */
static inline int qplan_oplist_requantises(const qplan_oplist_op* op) {
  if (op->op == QPLAN_NPU_OP_AVG_POOL2D) return op->contract == QPLAN_NPU_F32E;
  return op->contract != QPLAN_NPU_ACC32 && qplan_npu_op_has_contract(op->op);
}

static inline qplan_npu_status qplan_oplist_check_ops(const qplan_oplist* list, qplan_npu_reason* why) {
  const qplan_oplist_header* h = &list->header;
  uint32_t i, k;
  for (i = 0; i < h->num_ops; ++i) {
    const qplan_oplist_op op = qplan_oplist_op_at(list, i);
    uint32_t reads[7 + QPLAN_NPU_MAX_INPUTS - 2];
    uint32_t use;
    reads[0] = op.inputs[0], reads[1] = op.inputs[1], reads[2] = op.weights, reads[3] = op.bias;
    reads[4] = op.multipliers, reads[5] = op.shifts, reads[6] = op.scales;
    memcpy(reads + 7, op.more_inputs, sizeof(op.more_inputs));
    if (op.output >= h->num_tensors || op.inputs[0] >= h->num_tensors ||
        (op.name != QPLAN_OPLIST_NONE && op.name >= h->names_bytes)) {
      return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_OP, i, h->num_tensors, op.output,
                                 "oplist: an operator without input, output or name");
    }
    use = qplan_oplist_slot_at(list, qplan_oplist_tensor_at(list, op.output).slot).usage;
    if (use != QPLAN_NPU_USE_OUTPUT && use != QPLAN_NPU_USE_SCRATCH)
      return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_OP, i, QPLAN_NPU_USE_OUTPUT, use,
                                 "oplist: an operator writes what must not be written");
    for (k = 0; k < (op.op == QPLAN_NPU_OP_CONCAT_N ? sizeof(reads) / sizeof(reads[0]) : 7); ++k) {
      if (reads[k] == QPLAN_OPLIST_NONE) continue;
      if (reads[k] >= h->num_tensors || qplan_oplist_overlap(list, reads[k], op.output))
        return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_OP, i, h->num_tensors, reads[k],
                                   "oplist: an operand is no tensor, or overlaps the output");
      use = qplan_oplist_slot_at(list, qplan_oplist_tensor_at(list, reads[k]).slot).usage;
      if (k >= 2 && k < 7 && use != QPLAN_NPU_USE_WEIGHTS)
        return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_OP, i, QPLAN_NPU_USE_WEIGHTS, use,
                                   "oplist: weights, bias and scales must be carried");
    }
    if (op.num_scales > 0 && qplan_oplist_requantises(&op) &&
        (op.contract == QPLAN_NPU_F32E
             ? op.scales == QPLAN_OPLIST_NONE
             : op.multipliers == QPLAN_OPLIST_NONE || op.shifts == QPLAN_OPLIST_NONE)) {
      return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_OP, i, op.num_scales, 0,
                                 "oplist: an operator without its multipliers and shifts, or its scales");
    }
    for (k = 4; k < 7; ++k) {
      qplan_oplist_tensor t;
      const uint8_t code = k == 6 ? (uint8_t)kDLFloat : (uint8_t)kDLInt;
      if (reads[k] == QPLAN_OPLIST_NONE) continue;
      t = qplan_oplist_tensor_at(list, reads[k]);
      if (t.rank != 1 || t.shape[0] != (int64_t)op.num_scales || t.dtype_bits != 32 || t.dtype_code != code)
        return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_OP, i, op.num_scales, t.shape[0],
                                   "oplist: multipliers, shifts and scales are vectors of num_scales");
    }
  }
  return QPLAN_NPU_OK;
}

/* Checks that everything is in its place. QPLAN_NPU_E_BLOB or QPLAN_NPU_E_VERSION with the reason (why may be
 * NULL).
 */
static inline qplan_npu_status qplan_oplist_open(const void* blob, uint64_t bytes, qplan_oplist* list,
                                                 qplan_npu_reason* why) {
  qplan_oplist_header* h = &list->header;
  uint64_t names_end;
  qplan_npu_status status;
  if (blob == NULL || bytes < sizeof(*h))
    return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_SIZE, QPLAN_OPLIST_NONE, sizeof(*h),
                               (int64_t)bytes, "oplist: shorter than its header");
  list->blob = (const uint8_t*)blob;
  memcpy(h, blob, sizeof(*h));
  if (h->magic != QPLAN_NPU_BLOB_OPLIST)
    return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_HEADER, QPLAN_OPLIST_NONE,
                               QPLAN_NPU_BLOB_OPLIST, h->magic, "oplist: does not begin with 'QOP1'");
  if (h->version >> 16 != QPLAN_OPLIST_VERSION >> 16)
    return qplan_oplist_refuse(why, QPLAN_NPU_E_VERSION, QPLAN_OPLIST_BAD_VERSION, QPLAN_OPLIST_NONE,
                               QPLAN_OPLIST_VERSION >> 16, h->version >> 16, "oplist: another major version");
  if (h->total_bytes != bytes)
    return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_SIZE, QPLAN_OPLIST_NONE,
                               (int64_t)h->total_bytes, (int64_t)bytes,
                               "oplist: truncated, or followed by more bytes");
  if (h->checksum != qplan_oplist_checksum(blob, bytes))
    return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_CHECKSUM, QPLAN_OPLIST_NONE, 0, 0,
                               "oplist: damaged: the checksum is another");
  if (h->slot_bytes < sizeof(qplan_oplist_slot) || h->tensor_bytes < sizeof(qplan_oplist_tensor) ||
      h->op_bytes < QPLAN_OPLIST_OP_BYTES_1_0 || h->num_slots > 65536 || h->num_tensors > (1u << 24) ||
      h->num_ops > (1u << 24)) {
    return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_HEADER, QPLAN_OPLIST_NONE, 0, 0,
                               "oplist: records are smaller than in version 1.0, or too many");
  }
  names_end = qplan_oplist_ops_end(h) + h->names_bytes;
  if (names_end > bytes || names_end % QPLAN_OPLIST_ALIGNMENT != 0 ||
      (h->names_bytes > 0 && list->blob[names_end - 1] != 0)) {
    return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_SIZE, QPLAN_OPLIST_NONE,
                               (int64_t)bytes, (int64_t)names_end,
                               "oplist: records or names are outside the blob");
  }
  status = qplan_oplist_check_slots(list, why);
  if (status == QPLAN_NPU_OK) status = qplan_oplist_check_tensors(list, why);
  return status == QPLAN_NPU_OK ? qplan_oplist_check_ops(list, why) : status;
}

/* For qplan_oplist_bind: tensor `index` as a DLTensor; NULL where there is none. */
static inline const DLTensor* qplan_oplist_bind_tensor(const qplan_oplist* list, uint32_t index,
                                                       void* const* slot_memory, qplan_oplist_call* call,
                                                       int place) {
  DLTensor* to = &call->tensors[place];
  qplan_oplist_tensor t;
  if (index == QPLAN_OPLIST_NONE) return NULL;
  t = qplan_oplist_tensor_at(list, index);
  memset(to, 0, sizeof(*to));
  memcpy(call->shapes[place], t.shape, sizeof(t.shape));
  to->device.device_type = kDLCPU;
  to->dtype.code = t.dtype_code;
  to->dtype.bits = t.dtype_bits;
  to->dtype.lanes = t.dtype_lanes;
  to->ndim = (int32_t)t.rank;
  to->shape = call->shapes[place];
  if (slot_memory[t.slot] != NULL) to->data = (uint8_t*)slot_memory[t.slot] + t.offset;
  return to;
}
static inline const void* qplan_oplist_bind_values(const qplan_oplist* list, uint32_t index,
                                                   void* const* slot_memory) {
  qplan_oplist_tensor t;
  if (index == QPLAN_OPLIST_NONE) return NULL;
  t = qplan_oplist_tensor_at(list, index);
  return slot_memory[t.slot] == NULL ? NULL : (const uint8_t*)slot_memory[t.slot] + t.offset;
}

/* Operator `index` of an opened list. slot_memory: the address of each slot, aligned as the slot demands;
 * NULL for those that are not bound yet, whose tensors then have no data. */
static inline void qplan_oplist_bind(const qplan_oplist* list, uint32_t index, void* const* slot_memory,
                                     qplan_oplist_call* call) {
  const qplan_oplist_op r = qplan_oplist_op_at(list, index);
  qplan_npu_op* op = &call->op;
  int i;
  memset(op, 0, sizeof(*op));
  op->struct_size = sizeof(*op);
  op->op = r.op;
  op->contract = r.contract;
  op->flags = r.flags;
  op->inputs[0] = qplan_oplist_bind_tensor(list, r.inputs[0], slot_memory, call, 0);
  op->inputs[1] = qplan_oplist_bind_tensor(list, r.inputs[1], slot_memory, call, 1);
  op->weights = qplan_oplist_bind_tensor(list, r.weights, slot_memory, call, 2);
  op->bias = qplan_oplist_bind_tensor(list, r.bias, slot_memory, call, 3);
  op->output = qplan_oplist_bind_tensor(list, r.output, slot_memory, call, 4);
  for (i = 0; r.op == QPLAN_NPU_OP_CONCAT_N && i < (int)QPLAN_NPU_MAX_INPUTS - 2; ++i)
    call->more_inputs[i] = qplan_oplist_bind_tensor(list, r.more_inputs[i], slot_memory, call, 5 + i);
  if (i > 0) op->more_inputs = call->more_inputs;
  op->num_inputs = r.num_inputs;
  op->axis = r.axis;
  memcpy(op->input_zero_points, r.input_zero_points, sizeof(r.input_zero_points));
  op->output_zero_point = r.output_zero_point;
  op->clamp_min = r.clamp_min;
  op->clamp_max = r.clamp_max;
  op->groups = r.groups;
  memcpy(op->window, r.window, sizeof(r.window));
  memcpy(op->strides, r.strides, sizeof(r.strides));
  memcpy(op->dilations, r.dilations, sizeof(r.dilations));
  memcpy(op->pads, r.pads, sizeof(r.pads));
  op->num_scales = r.num_scales;
  op->multipliers = (const int32_t*)qplan_oplist_bind_values(list, r.multipliers, slot_memory);
  op->shifts = (const int32_t*)qplan_oplist_bind_values(list, r.shifts, slot_memory);
  op->scales = (const float*)qplan_oplist_bind_values(list, r.scales, slot_memory);
  op->weights_zero_point = r.weights_zero_point;
  op->pad_value = r.pad_value;
  op->left_shift = r.left_shift;
  op->name = r.name == QPLAN_OPLIST_NONE
                 ? NULL
                 : (const char*)list->blob + qplan_oplist_ops_end(&list->header) + r.name;
}

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_NPU_OPLIST_H_ */
