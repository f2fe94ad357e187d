/* npu_target.h -- a target from outside the tree: what a shared library tells the packer about a device.
 * Hosts only. C99, C11, C++17.
 *
 * `qplan pack --target-lib libX.so --target "x, cpu"` loads the library and asks qplan_npu_target_entry for
 * the struct below. The packer matches its patterns, asks `supported` about every match, with the function
 * that the driver has, and hands regions of what was taken to `compile`, or puts the operator list
 * (npu_oplist.h) itself into the plan. The same library may export qplan_npu_driver_entry too, and be the
 * driver.
 *
 * All pointers stay good as long as the library is loaded. Functions may be called from several threads.
 * Structs follow the rules of npu_driver.h: struct_size first, zero is "default", they grow at the end;
 * arrays of patterns, steps and rules have elements without a size, which never change. */
#ifndef QPLAN_NPU_TARGET_H_
#define QPLAN_NPU_TARGET_H_

#include <qplan/npu_driver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* major << 16 | minor; majors must match. 1.1: scratch; 1.2: layout, more composites and patterns;
 * 1.3: blocks of channels and flags in layouts, qplan.qconv2d_transpose_acc32; 1.4: memory_classes */
#define QPLAN_NPU_TARGET_ABI 0x00010003u

/* Figures for the cost gate and `qplan explain`. 0: the packer's default. */
typedef struct qplan_npu_target_costs {
  uint32_t struct_size;
  uint32_t clock_mhz;           /* 100 */
  uint32_t macs_per_cycle;      /* 256 */
  uint32_t dma_bytes_per_cycle; /* 8 */
  uint32_t dma_latency_cycles;  /* 64 */
  uint32_t reserved;
  uint32_t
      fj_per_mac; /* 2800: energy of a multiply-accumulate, its operands from local memory, in femtojoules */
  uint32_t fj_per_byte; /* 162500: of a byte from or to the system's memory; both for --prefer energy */
} qplan_npu_target_costs;

/* One operator of the IR in a chain, whose result is the first operand of the next. */
typedef struct qplan_npu_pattern_step {
  const char* op;    /* "qnn.conv2d"; docs/canonical-form.md has the operators */
  uint32_t optional; /* 1: the chain may do without it. Not the first one that is required */
  uint32_t reserved;
} qplan_npu_pattern_step;

/* A chain that becomes one operator of the device. Chains are these:
 *   nn.pad? qnn.conv2d nn.bias_add? qnn.requantize clip?   -> QPLAN_NPU_OP_CONV2D
 *   qnn.dense nn.bias_add? qnn.requantize clip?            -> QPLAN_NPU_OP_DENSE
 *   qnn.conv2d_transpose nn.bias_add? qnn.requantize clip? -> QPLAN_NPU_OP_CONV2D_TRANSPOSE
 *   nn.pad? qnn.conv2d nn.bias_add?    qnn.dense nn.bias_add?    qnn.conv2d_transpose nn.bias_add?
 *                                                          -> the same under QPLAN_NPU_ACC32
 *   qnn.add clip?    qnn.mul clip?    qnn.mean clip?    nn.max_pool2d clip?    qnn.avg_pool2d clip?    clip
 * where what is optional may be left out or be made required: which variants a device wants is its choice. */
typedef struct qplan_npu_pattern {
  const char* name;    /* of the composite: "acme.conv_relu"; a name of the library's own */
  const char* summary; /* one line for people; NULL: none */
  const qplan_npu_pattern_step* steps;
  uint32_t num_steps;
  uint32_t reserved;
} qplan_npu_pattern;

/* The meaning of a reason's code: the same text for the message, the table of constraints and the JSON
 * report. */
typedef struct qplan_npu_rule {
  uint32_t code; /* qplan_npu_reason.code */
  uint32_t reserved;
  const char* id;          /* stable: "acme.conv.kernel"; letters, digits, dots, underscores */
  const char* requirement; /* "kernels of at most 7 x 7" */
  const char* hint;        /* what the user may do about it; NULL: nothing */
} qplan_npu_rule;

typedef qplan_npu_status (*qplan_npu_write_fn)(void* user, const void* bytes, uint64_t count);

/* Where a tensor at the border of a region is in the buffer of its slot: element (i, j, ...) begins at byte
 * origin + i * strides[0] + j * strides[1] + ... The packer fills in the packed tensor before it asks.
 *
 * A block other than 0 divides the last axis, the channels: channel c adds c % block * strides[last] and
 * c / block * block_stride. The last block may have fewer channels than the others. C/16 of an int8 tensor
 * [N, H, W, C], the blocks outside of height and width: block = 16, block_stride = H * W * 16, strides
 * { blocks * H * W * 16, W * 16, 16, 1 }. */
enum {
  /* What a region writes, another of the device may read where it is, if their layouts are the same. In
   * buffers with bytes beside the tensor's this takes one of these, too. */
  QPLAN_NPU_LAYOUT_ANY_FILL = 1, /* of an input: the other bytes may hold anything */
  QPLAN_NPU_LAYOUT_FILLS = 2     /* of an output: after a job the other bytes hold `fill` */
};

typedef struct qplan_npu_slot_layout {
  uint32_t struct_size;
  uint32_t usage;         /* QPLAN_NPU_USE_INPUT or QPLAN_NPU_USE_OUTPUT */
  const DLTensor* tensor; /* of the model: shape and dtype, no data */
  uint64_t bytes;         /* of the buffer */
  uint64_t origin;
  uint64_t byte_stride;                 /* between the bytes of one element: 1, except for planes */
  uint64_t strides[QPLAN_NPU_MAX_DIMS]; /* bytes, one for each axis */
  uint32_t alignment;                   /* of the buffer: a power of two up to 4096 */
  uint8_t fill;                         /* of an input: what all other bytes of the buffer hold */
  uint8_t flip;                         /* 0x80: uint8 as int8, 128 less; else 0 */
  uint8_t reserved[2];
  /* Since 1.3: */
  uint32_t block;        /* elements of the last axis in a block; 0: it is not divided */
  uint32_t flags;        /* QPLAN_NPU_LAYOUT_* */
  uint64_t block_stride; /* bytes, from each block to the next */
} qplan_npu_slot_layout;

/* Where each kind of bytes of a region should be: QPLAN_NPU_MEMORY_CLASS_*. The plan states it, in memories
 * of a session that have one class each, and the driver is asked for buffers of these classes. */
typedef struct qplan_npu_memory_classes {
  uint32_t struct_size;
  uint32_t program; /* the blob: code and constants */
  uint32_t scratch; /* neither this nor the next two: FLASH */
  uint32_t inputs;
  uint32_t outputs;
  uint32_t reserved;
} qplan_npu_memory_classes;

typedef struct qplan_npu_target {
  uint32_t struct_size;
  uint32_t abi;         /* QPLAN_NPU_TARGET_ABI of the library */
  const char* name;     /* [a-z][a-z0-9_]*: what stands in --target */
  int32_t priority;     /* 0: 500, as all NPUs; the CPU has 50 */
  uint32_t blob_format; /* FourCC of what compile writes; 0: operator lists */

  /* By the packer's names: "qplan.qconv2d" (all but depthwise), "qplan.qdepthwise", "qplan.qdense",
   * "qplan.qadd", "qplan.qmax_pool2d", "qplan.qavg_pool2d", "qplan.qclip", "qplan.qmul", "qplan.qmean",
   * "qplan.qmaximum", "qplan.qminimum", "qplan.qlookup", "qplan.qpad", "qplan.qconcat", "qplan.qreshape", and
   * since 1.2 "qplan.qconv2d_transpose", "qplan.qsoftmax", "qplan.qresize_nearest", "qplan.qresize_bilinear",
   * "qplan.qconcat_n", "qplan.qadd_broadcast", "qplan.qmul_broadcast".
   * Tried in this order, after the patterns. Layers have forms that end before qnn.requantize:
   * "qplan.qconv2d_acc32", "qplan.qdepthwise_acc32", "qplan.qdense_acc32", and since 1.3
   * "qplan.qconv2d_transpose_acc32". Where capabilities name
   * QPLAN_NPU_ACC32, the forms of those that are listed are tried last, listed or not: `supported` is asked
   * again about a layer that it refused, and the CPU requantises. */
  const char* const* composites;
  const qplan_npu_pattern* patterns; /* tried first, in their order */
  const qplan_npu_rule* rules;
  uint32_t num_composites;
  uint32_t num_patterns;
  uint32_t num_rules;
  uint32_t reserved;

  /* A variant of the device, made from the options in --target "acme,sram=512,...", but for
   * `priority` and `clock`, which every target has and qplan reads: `config` is what the functions below get;
   * it stays until the library is unloaded. QPLAN_NPU_E_ARGUMENT with a text for what is not known. NULL:
   * there are no options, and config is 0. */
  qplan_npu_status (*configure)(const char* options, uint64_t* config, qplan_npu_reason* why);
  /* As of a device of this kind; .hash goes into the blobs, .target and .hw_revision into the plan. Where
   * .contracts names any, an operator goes to the device only if contracts, zero points, pad value and
   * channel_pack allow it, whatever `supported` says; explain names what does not, and that the two differ.
   */
  qplan_npu_status (*capabilities)(uint64_t config, qplan_npu_capabilities* capabilities);
  qplan_npu_status (*costs)(uint64_t config, qplan_npu_target_costs* costs); /* NULL: the defaults */
  /* qplan_npu_driver.supported with config in the place of the device. All tensors but activations have data;
   * so have multipliers, shifts and scales. QPLAN_NPU_OK or QPLAN_NPU_E_UNSUPPORTED: another status ends the
   * packing, as a mistake of the library. */
  qplan_npu_status (*supported)(uint64_t config, const qplan_npu_op* op, qplan_npu_reason* reasons,
                                uint32_t* num_reasons);
  /* Cycles of an operator, from memory to memory. NULL: multiply-accumulates by macs_per_cycle, bytes by DMA.
   */
  uint64_t (*cycles)(uint64_t config, const qplan_npu_op* op);
  /* The region's operator list as a blob of blob_format, handed to write in any number of pieces. Slots must
   * be those of the list. A status other than QPLAN_NPU_OK ends the packing; place in why is the operator
   * that is to blame: the packer then leaves that one on the CPU and asks again. NULL: operator lists are
   * what the driver loads. Where the library is a driver too, whose first device has the hash of these
   * capabilities, its `load` is asked about the program. QPLAN_NPU_E_UNSUPPORTED makes the region smaller:
   * place in why is the operator that is to blame, or QPLAN_OPLIST_NONE. Another mistake ends the packing. */
  qplan_npu_status (*compile)(uint64_t config, const void* oplist, uint64_t bytes, qplan_npu_write_fn write,
                              void* user, qplan_npu_reason* why);
  /* Asked before `compile`, about the same list: the bytes of scratch that the program of `compile` will
   * need. The plan declares them in place of those of the list's scratch slot; 0: it binds no scratch. The
   * list that `compile` gets has a scratch slot of at least so many bytes. Status and why as of `compile`.
   * NULL: what the list's operators leave to each other is all the scratch that there is. Optional;
   * since 1.1. */
  qplan_npu_status (*scratch)(uint64_t config, const void* oplist, uint64_t bytes, uint64_t* scratch_bytes,
                              qplan_npu_reason* why);
  /* Asked about each input and output of a region, and, while operators are placed, about a tensor uint8
   * [1, 1, 1, 1]. The runtime copies tensors into the arrangement and back, which explain and the cost gate
   * count. A flip is the same for all uint8 tensors of a config, and 0 for others. Where it is 0x80 the
   * device knows int8 alone: `supported`, `cycles` and lists have int8 for uint8, with zero points, clamps,
   * pad values, tables and constants 128 less. Where the list itself is the program, nothing but the flip may
   * differ from the packed tensor. `compile` finds slots of so many bytes in its list, whose tensors have
   * the extents of the packed ones. NULL: packed tensors, as they are. Optional; since 1.2. */
  qplan_npu_status (*layout)(uint64_t config, qplan_npu_slot_layout* slot, qplan_npu_reason* why);
  /* Asked about the list that `compile` gets, or that is the program itself. All are ANY before. Status and
   * why as of `compile`. NULL: ANY. Optional; since 1.4. */
  qplan_npu_status (*memory_classes)(uint64_t config, const void* oplist, uint64_t bytes,
                                     qplan_npu_memory_classes* classes, qplan_npu_reason* why);
} qplan_npu_target;

/* The function that the library exports. abi: QPLAN_NPU_TARGET_ABI of the packer; NULL: this library cannot
 * serve that major. */
#define QPLAN_NPU_TARGET_ENTRY_NAME "qplan_npu_target_entry"
typedef const qplan_npu_target* (*qplan_npu_target_entry_fn)(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_NPU_TARGET_H_ */
