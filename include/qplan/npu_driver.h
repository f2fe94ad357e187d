/* npu_driver.h -- the ABI between the runtime and the driver of an NPU. C99, C11, C++17.
 *
 * A driver is a table of functions, qplan_npu_driver. A driver linked into the program exports a function of
 * its own name that returns the table; one in a shared library exports qplan_npu_driver_entry. Nothing is
 * registered anywhere.
 *
 * The life of a region on a device:
 *   enumerate, open          which devices there are; one of them, with options of the driver's own
 *   capabilities             what it can do; the packer holds the same struct as a target file
 *   load                     a region's blob, validated as a whole, copied: the caller's bytes may go
 *   load_in_place            the same of bytes that outlive the program, so that they may stay where they are
 *   requirements, alloc      buffers from tensor descriptors; import_memory for memory that exists
 *   submit, wait, report     a job: a program and the buffers of its regions; never blocks, completes later
 *   unload, release, close
 *
 * Versions: every struct starts with struct_size = sizeof(the struct) as its maker knows it; a field beyond
 * it counts as zero, and zero means "default". Structs only ever grow at the end. A struct that a driver
 * fills keeps the caller's struct_size; no byte beyond it is written. Elements of arrays (binds, reasons)
 * have no size and never change. Handles have 64 bits; 0 means no handle. A handle that the driver does not
 * know is QPLAN_NPU_E_ARGUMENT, never a crash. Memory: what devices use comes only from
 * qplan_device_hooks.alloc where that is set, and goes back in close. A driver for hosts may keep its
 * bookkeeping on the heap. Threads: the functions of one device may be called from several threads at a time;
 * with hooks whose mutex functions are NULL, a driver may rely on one thread. done (see qplan_npu_submit) may
 * be called on any thread. After a job failed the bytes of its outputs and scratch are undefined. Inputs,
 * weights and constants are never written. */
#ifndef QPLAN_NPU_DRIVER_H_
#define QPLAN_NPU_DRIVER_H_

#include <qplan/qplan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* major << 16 | minor. Majors must match; a minor adds fields and functions at the end. */
/* 1.1: load_in_place; 1.2: disassemble; 1.3: operators with more than two inputs; 1.4: classes of memory */
#define QPLAN_NPU_ABI 0x00010004u

typedef uint64_t qplan_npu_device;
typedef uint64_t qplan_npu_buffer;
typedef uint64_t qplan_npu_program;
typedef uint64_t qplan_npu_job;

/* ---- status: >= 0 is not an error, and equal to qplan_status. The tens decide what the runtime does; a
 * driver that knows a better number than these may use any within the tens. ---- */
typedef int32_t qplan_npu_status;
enum {
  QPLAN_NPU_OK = QPLAN_OK,
  QPLAN_NPU_PENDING = QPLAN_PENDING, /* the job has not completed */
  /* 1..9: the caller's or the packer's mistake: reported, and not tried again */
  QPLAN_NPU_E_ARGUMENT = -1,
  QPLAN_NPU_E_VERSION = -2,     /* ABI, blob version, or a blob made for other capabilities */
  QPLAN_NPU_E_UNSUPPORTED = -3, /* the device cannot do this */
  QPLAN_NPU_E_BLOB = -4,        /* the blob is damaged or breaks a rule of its format */
  /* 10..19: this region on the CPU now; the device stays in use */
  QPLAN_NPU_E_MEMORY = -10, /* no memory left */
  QPLAN_NPU_E_ONCHIP = -11, /* memory on the chip is in use by others */
  QPLAN_NPU_E_BUSY = -12,   /* the queue is full */
  QPLAN_NPU_E_CANCELLED = -13,
  QPLAN_NPU_E_OFF = -14, /* powered off */
  /* 20..29: reset the device, then the CPU */
  QPLAN_NPU_E_TIMEOUT = -20,
  QPLAN_NPU_E_BUS = -21,     /* bus, parity or ECC error */
  QPLAN_NPU_E_ILLEGAL = -22, /* an instruction that the device cannot execute */
  QPLAN_NPU_E_HAZARD = -23,  /* accesses without order between units of the device; found by simulators */
  QPLAN_NPU_E_RESET = -24,   /* the job was in the queue of a device that was reset */
  /* 30..39: the CPU from now on, until open succeeds again */
  QPLAN_NPU_E_LOST = -30,  /* the device went away */
  QPLAN_NPU_E_ABSENT = -31 /* there is no such device */
};
/* 0: no error, else 1..4, in the order above. */
#define QPLAN_NPU_CLASS(status) ((status) >= 0 ? 0 : (status) <= -30 ? 4 : 1 + -(status) / 10)
enum {
  QPLAN_NPU_CLASS_MISTAKE = 1,
  QPLAN_NPU_CLASS_CPU_NOW = 2,
  QPLAN_NPU_CLASS_RESET = 3,
  QPLAN_NPU_CLASS_GONE = 4
};

/* Why something was refused: numbers for programs, one line for people. */
typedef struct qplan_npu_reason {
  uint32_t code; /* of the driver; stable */
  uint32_t
      place; /* what `code` is about: an instruction, a region, a memory; 0xffffffff: nothing in particular */
  int64_t limit;  /* what would be allowed, and */
  int64_t actual; /* what stood there; both 0 where numbers do not tell */
  char text[160]; /* NUL-terminated; "" where texts are compiled out */
} qplan_npu_reason;

/* Where bytes should be, since 1.4. It changes how fast a device is, never what it computes. */
enum {
  QPLAN_NPU_MEMORY_CLASS_ANY = 0,
  QPLAN_NPU_MEMORY_CLASS_SRAM = 1,  /* fast, and small */
  QPLAN_NPU_MEMORY_CLASS_DRAM = 2,  /* the system's ordinary memory */
  QPLAN_NPU_MEMORY_CLASS_FLASH = 3, /* read where it is, never written */
  QPLAN_NPU_NUM_MEMORY_CLASSES = 4
};

/* ---- what the platform gives a driver, beside the log and the clock of qplan_platform. Functions get
 * `user`; all may be NULL, and each says what that means. ---- */
typedef struct qplan_device_hooks {
  uint32_t struct_size;
  uint32_t reserved;
  const qplan_platform*
      platform; /* log, log_level, now_ns, with its own user; NULL: silent, and no timeouts */
  void* user;
  void* (*alloc)(void* user, size_t size,
                 size_t alignment); /* NULL: the driver has memory of its own, or fails */
  void (*free)(void* user, void* memory);
  void (*cache_clean)(void* user, const void* memory,
                      size_t size); /* NULL: the device sees what the CPU writes */
  void (*cache_invalidate)(void* user, void* memory,
                           size_t size); /* NULL: the CPU sees what the device writes */
  /* 0: the device does not reach it. NULL: the pointer's value. */
  uint64_t (*device_address)(void* user, const void* memory);
  int (*power)(void* user, int on);  /* 0: done. NULL: always on */
  void* (*mutex_create)(void* user); /* NULL: one thread calls */
  void (*mutex_destroy)(void* user, void* mutex);
  void (*mutex_lock)(void* user, void* mutex);
  void (*mutex_unlock)(void* user, void* mutex);
  void* (*event_create)(void* user); /* NULL: the driver polls */
  void (*event_destroy)(void* user, void* event);
  int (*event_wait)(void* user, void* event,
                    uint64_t timeout_ns);     /* 0: set (and now cleared), 1: time is over */
  void (*event_set)(void* user, void* event); /* may be called from interrupts */
  /* since 1.4 */
  /* As alloc, in memory of a class other than ANY and FLASH; NULL where that has no such bytes. Blocks go
   * back through free. NULL: there is no choice of memory. */
  void* (*alloc_class)(void* user, size_t size, size_t alignment, uint32_t memory_class);
  /* The class that memory is of; ANY: not known. NULL: none is known. */
  uint32_t (*memory_class)(void* user, const void* memory);
} qplan_device_hooks;

/* ---- capabilities ---- */
/* Numeric contracts (docs/numerics.md) that a device executes bit for bit. */
enum {
  QPLAN_NPU_TFL2 = 1u,
  QPLAN_NPU_TFL1 = 2u,
  QPLAN_NPU_F32E = 4u,
  QPLAN_NPU_ACC32 = 32u /* 8 and 16 are no contracts, and stay free */
};
enum {
  QPLAN_NPU_MEMORY_COHERENT = 1u,    /* CPU and device see the same bytes */
  QPLAN_NPU_MEMORY_CACHED = 2u,      /* the CPU caches it: flush before a job, invalidate after it */
  QPLAN_NPU_MEMORY_DEVICE_LOCAL = 4u /* cannot be mapped */
};
enum {
  QPLAN_NPU_CAN_ASYNC = 1u,    /* submit returns before the job has run */
  QPLAN_NPU_CAN_CANCEL = 2u,   /* a job that runs can be stopped */
  QPLAN_NPU_CAN_COUNT = 4u,    /* reports have cycles and bytes */
  QPLAN_NPU_CAN_MULTIPLY = 8u, /* element-wise products on int32: without them TFL2 is not possible on VTA */
  QPLAN_NPU_CAN_IMPORT = 16u,  /* import_memory works */
  QPLAN_NPU_CAN_SOFT_RESET = 32u /* reset keeps the contents of buffers */
};
#define QPLAN_NPU_FOURCC(a, b, c, d) \
  ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
#define QPLAN_NPU_BLOB_VTA QPLAN_NPU_FOURCC('V', 'T', 'A', '1')
#define QPLAN_NPU_BLOB_OPLIST QPLAN_NPU_FOURCC('Q', 'O', 'P', '1') /* qplan/npu_oplist.h */

typedef struct qplan_npu_capabilities {
  uint32_t struct_size;
  uint32_t abi;
  char vendor[16];
  char target[48]; /* target and hw_revision select the blob in a plan */
  char hw_revision[16];
  char driver_revision[16];
  uint64_t hash;             /* of everything a packer assumed; a blob carries it, and load compares */
  uint32_t blob_formats[4];  /* FourCCs that load takes; 0 ends */
  uint32_t onchip_bytes[8];  /* per memory, in an order that the target defines; 0 ends */
  uint32_t buffer_alignment; /* bytes; a power of two, as all alignments */
  uint32_t line_alignment;   /* bytes between the starts of rows; 1: packed */
  uint32_t channel_pack;     /* channels come in multiples of it; of tensors in operator lists too */
  uint32_t max_binds;        /* per job */
  uint32_t max_queue;        /* jobs submitted and not complete */
  uint32_t num_engines;
  uint32_t memory_kinds; /* QPLAN_NPU_MEMORY_* */
  uint32_t address_bits;
  uint64_t max_buffer_bytes;
  uint32_t contracts;             /* QPLAN_NPU_TFL2 ...; 0: only `supported` knows */
  uint32_t contracts_per_channel; /* those that take a scale per output channel */
  uint32_t input_zero_point;      /* 1: any value; 0: zero only. So are the next two */
  uint32_t output_zero_point;
  uint32_t pad_value; /* of convolutions: what is outside the input */
  uint32_t flags;     /* QPLAN_NPU_CAN_* */
  uint32_t clock_khz;
  /* 1 << QPLAN_NPU_MEMORY_CLASS_* of each class in which alloc and import_memory have buffers. 0: not stated,
   * as before 1.4: the class of a request means nothing. */
  uint32_t memory_classes;
} qplan_npu_capabilities;

/* One fused operator, as the packer asks about it. Tensors have shape and dtype; data may be NULL. */
enum {
  QPLAN_NPU_OP_CONV2D = 1, /* input NHWC, weights OHWI; depthwise where groups == input channels */
  QPLAN_NPU_OP_DENSE = 2,
  QPLAN_NPU_OP_ADD = 3,
  QPLAN_NPU_OP_MAX_POOL2D = 4,
  QPLAN_NPU_OP_AVG_POOL2D = 5,
  QPLAN_NPU_OP_CLIP = 6,
  /* since 1.2; activations NHWC, 8 bits */
  QPLAN_NPU_OP_MUL = 7,
  QPLAN_NPU_OP_MEAN = 8,    /* over height and width, rescaled */
  QPLAN_NPU_OP_MAXIMUM = 9, /* of two tensors, element by element; so is MINIMUM */
  QPLAN_NPU_OP_MINIMUM = 10,
  QPLAN_NPU_OP_LOOKUP = 11,  /* weights[256]: the output of each input byte */
  QPLAN_NPU_OP_PAD = 12,     /* pad_value around height and width */
  QPLAN_NPU_OP_CONCAT = 13,  /* of two tensors, along the last axis */
  QPLAN_NPU_OP_RESHAPE = 14, /* the same bytes under another shape */
  /* since 1.3 */
  QPLAN_NPU_OP_SOFTMAX = 15,          /* along the last axis */
  QPLAN_NPU_OP_RESIZE_NEAREST = 16,   /* of height and width: qplan_npu_op_nearest */
  QPLAN_NPU_OP_RESIZE_BILINEAR = 17,  /* of height and width */
  QPLAN_NPU_OP_CONV2D_TRANSPOSE = 18, /* as CONV2D; the first two pads are cut off the output */
  QPLAN_NPU_OP_CONCAT_N = 19,         /* of num_inputs tensors, along axis */
  QPLAN_NPU_OP_ADD_BROADCAST = 20,    /* ADD and MUL of shapes that broadcast as NumPy's do */
  QPLAN_NPU_OP_MUL_BROADCAST = 21,
  QPLAN_NPU_OP_LAST = QPLAN_NPU_OP_MUL_BROADCAST
};
/* Flags of an operator. */
enum {
  QPLAN_NPU_OP_PAD_VALUE = 1u, /* pad_value is given; else a convolution's border is the input's zero point */
  QPLAN_NPU_OP_COUNT_INCLUDE_PAD = 2u, /* average under F32E: divide by the whole window everywhere */
  /* Resizes, since 1.3: where outputs are in the input. Not both of these. */
  QPLAN_NPU_OP_ALIGN_CORNERS = 4u,
  QPLAN_NPU_OP_HALF_PIXEL_CENTERS = 8u,
  QPLAN_NPU_OP_RESIZE_FLOAT = 16u /* bilinear, uint8: by the rule TFL_FLOAT; else TFL_INTEGER */
};
#define QPLAN_NPU_MAX_INPUTS 8u /* of an operator */
typedef struct qplan_npu_op {
  uint32_t struct_size;
  uint32_t op;       /* QPLAN_NPU_OP_* */
  uint32_t contract; /* one of QPLAN_NPU_TFL2 ...; ACC32: no scales and no clamp, zero point 0, int32 */
  uint32_t flags;    /* QPLAN_NPU_OP_PAD_VALUE ... */
  const DLTensor* inputs[2];
  const DLTensor* weights; /* NULL where there are none; so is bias */
  const DLTensor* bias;
  const DLTensor* output;
  int32_t input_zero_points[2];
  int32_t output_zero_point;
  int32_t clamp_min;
  int32_t clamp_max;
  uint32_t groups;
  uint32_t window[2]; /* pools: height, width */
  uint32_t strides[2];
  uint32_t dilations[2];
  uint32_t pads[4]; /* top, left, bottom, right */
  uint32_t num_scales;
  uint32_t reserved;
  const int32_t* multipliers; /* num_scales of each: one, or one per output channel */
  const int32_t* shifts;      /* positive to the left */
  const float* scales;        /* contract F32E: in the place of multipliers and shifts */
  /* ADD: three of each, of the first input, the second and the output; so has MUL under F32E, under TFL2 it
   * has one. ADD_BROADCAST and MUL_BROADCAST are as ADD and MUL. MEAN: one. AVG_POOL2D under F32E: the scales
   * of input and output. SOFTMAX under TFL2: input_multiplier and input_left_shift, diff_min follows from the
   * shift; under F32E 257 scales, output_scale and then the table. All others, and AVG_POOL2D under TFL2:
   * none. docs/numerics.md has the formulas. */
  int32_t weights_zero_point;
  int32_t pad_value;  /* CONV2D, PAD: what stands outside the input, where flags say so */
  int32_t left_shift; /* ADD under TFL2 */
  int32_t reserved2;
  const char* name; /* of the source model, for messages; may be NULL */
  /* since 1.3: CONCAT_N; of all others 0 */
  const DLTensor* const* more_inputs; /* after the first two */
  uint32_t num_inputs;                /* all: 2 to QPLAN_NPU_MAX_INPUTS */
  uint32_t axis;
} qplan_npu_op;

/* ---- buffers ---- */
enum {
  QPLAN_NPU_USE_INPUT = 1u,
  QPLAN_NPU_USE_OUTPUT = 2u,
  QPLAN_NPU_USE_WEIGHTS = 4u,
  QPLAN_NPU_USE_SCRATCH = 8u
};
typedef struct qplan_npu_buffer_request {
  uint32_t struct_size;
  uint32_t usage;         /* QPLAN_NPU_USE_* */
  uint32_t memory_kind;   /* one of QPLAN_NPU_MEMORY_*; 0: the driver chooses */
  uint32_t alignment;     /* bytes, at least; 0: the driver's */
  const DLTensor* tensor; /* shape and dtype from which strides and bytes follow; NULL: bytes alone */
  uint64_t min_bytes;
  /* Since 1.4: QPLAN_NPU_MEMORY_CLASS_*. QPLAN_NPU_E_UNSUPPORTED where capabilities do not name the class, or
   * memory to import is of another; QPLAN_NPU_E_ONCHIP where fast memory has too few bytes left. The runtime
   * then asks for ANY. */
  uint32_t memory_class;
  uint32_t reserved;
} qplan_npu_buffer_request;

#define QPLAN_NPU_MAX_DIMS 8
typedef struct qplan_npu_layout {
  uint32_t struct_size;
  uint32_t memory_kind;
  uint64_t bytes;
  uint64_t device_address; /* 0 before there is a buffer */
  uint32_t alignment;
  uint32_t num_strides;                /* as many as the tensor has dimensions; 0: there was no tensor */
  int64_t strides[QPLAN_NPU_MAX_DIMS]; /* in elements, outermost first; rows and channels may be padded */
  uint32_t memory_class;               /* since 1.4: that the buffer is in; ANY: not known */
  uint32_t reserved;
} qplan_npu_layout;

enum { QPLAN_NPU_IMPORT_POINTER = 1u, QPLAN_NPU_IMPORT_DMABUF = 2u };
enum { QPLAN_NPU_READ = 1u, QPLAN_NPU_WRITE = 2u }; /* what the CPU does between map and unmap */

/* ---- programs ---- */
typedef struct qplan_npu_program_info {
  uint32_t struct_size;
  uint32_t num_regions; /* slots for binds */
  uint64_t
      memory_bytes; /* that the driver holds for the program: code, and constants that the blob carries */
  uint64_t estimated_cycles; /* 0: unknown */
  uint64_t instructions;
  uint64_t capabilities_hash;
  uint32_t memory_class; /* since 1.4: where code and constants should be; a driver copies them there if the
                            platform has such memory, and leaves them where they are if it has not */
  uint32_t reserved;
} qplan_npu_program_info;

typedef struct qplan_npu_region_info {
  uint32_t struct_size;
  uint32_t usage;     /* QPLAN_NPU_USE_* */
  uint32_t is_bound;  /* 1: a bind must name a buffer for it; 0: the program carries it */
  uint32_t alignment; /* of device address plus offset */
  uint64_t bytes;
  uint32_t memory_class; /* since 1.4: where it should be */
  uint32_t reserved;
} qplan_npu_region_info;

/* ---- jobs ---- */
typedef struct qplan_npu_bind { /* bytes [offset, offset + bytes) of the buffer are region `slot` of the
                                   program */
  uint32_t slot;
  uint32_t flags; /* 0 */
  qplan_npu_buffer buffer;
  uint64_t offset;
  uint64_t bytes;
} qplan_npu_bind;

typedef struct qplan_npu_submit {
  uint32_t struct_size;
  uint32_t num_binds;
  qplan_npu_program program;
  const qplan_npu_bind* binds; /* each slot that is bound, once; copied by submit */
  const qplan_npu_job* after;  /* jobs of this device that complete first */
  uint32_t num_after;
  uint32_t priority; /* higher first, among those that may start; 0 is normal */
  void (*done)(void* user, qplan_npu_job job,
               qplan_npu_status status); /* NULL: wait tells. Must not call the driver */
  void* user;
} qplan_npu_submit;

#define QPLAN_NPU_NO_INSTRUCTION UINT64_MAX
typedef struct qplan_npu_report {
  uint32_t struct_size;
  qplan_npu_status status;    /* of the job: what wait returns */
  uint64_t fault_address;     /* device address, 0: none */
  uint64_t fault_instruction; /* index into the blob's instructions, or QPLAN_NPU_NO_INSTRUCTION */
  uint64_t cycles;            /* from first to last instruction */
  uint64_t busy_cycles;       /* of the busiest unit */
  uint64_t bytes_read;
  uint64_t bytes_written;
  uint64_t macs;
  uint64_t queued_ns;
  uint64_t run_ns;
  uint64_t vendor[8];
  char text[160]; /* why it failed: one line; "" when it did not */
} qplan_npu_report;

/* Counters of a device since open. Counters from QPLAN_NPU_COUNTER_VENDOR on are the driver's own. */
enum {
  QPLAN_NPU_COUNTER_JOBS = 0,
  QPLAN_NPU_COUNTER_FAILED_JOBS = 1,
  QPLAN_NPU_COUNTER_RESETS = 2,
  QPLAN_NPU_COUNTER_CYCLES = 3,
  QPLAN_NPU_COUNTER_BYTES_READ = 4,
  QPLAN_NPU_COUNTER_BYTES_WRITTEN = 5,
  QPLAN_NPU_COUNTER_MACS = 6,
  QPLAN_NPU_COUNTER_BUFFER_BYTES = 7, /* allocated now */
  QPLAN_NPU_COUNTER_VENDOR = 1024
};

/* Functions are required unless their comment says "optional" (may be NULL). Output parameters named `why`
 * may be NULL; they are filled on errors only. */
typedef struct qplan_npu_driver {
  uint32_t struct_size;
  uint32_t abi;     /* QPLAN_NPU_ABI of the driver */
  const char* name; /* "sim": for logs, and for `--driver` */

  /* -- device -- */
  qplan_npu_status (*enumerate)(const qplan_device_hooks* hooks, uint32_t* count);
  /* hooks (and what they point to) outlive the device. options: text of the driver's own, NULL is "". Devices
   * that one driver opened know nothing of each other. */
  qplan_npu_status (*open)(const qplan_device_hooks* hooks, uint32_t index, const char* options,
                           qplan_npu_device* device, qplan_npu_reason* why);
  /* Cancels what is queued and what runs, in bounded time as reset does; releases everything. */
  qplan_npu_status (*close)(qplan_npu_device device);
  qplan_npu_status (*capabilities)(qplan_npu_device device, qplan_npu_capabilities* capabilities);
  /* QPLAN_NPU_OK, or QPLAN_NPU_E_UNSUPPORTED with all reasons. device 0: what the driver's usual device can
   * do. *num_reasons in: room in reasons; out: how many there are. */
  qplan_npu_status (*supported)(qplan_npu_device device, const qplan_npu_op* op, qplan_npu_reason* reasons,
                                uint32_t* num_reasons);
  /* Counted: the device is on while there are more on than off; open leaves it on. Off loses on-chip state,
   * not buffers. Optional. */
  qplan_npu_status (*power)(qplan_npu_device device, int on);
  /* Stops everything in bounded time, a job that runs too: jobs end with QPLAN_NPU_E_RESET. Buffers, programs
   * stay. */
  qplan_npu_status (*reset)(qplan_npu_device device);

  /* -- memory -- */
  /* What a buffer would look like, without making it. */
  qplan_npu_status (*requirements)(qplan_npu_device device, const qplan_npu_buffer_request* request,
                                   qplan_npu_layout* layout);
  qplan_npu_status (*alloc)(qplan_npu_device device, const qplan_npu_buffer_request* request,
                            qplan_npu_buffer* buffer);
  /* Memory of the caller, from value (a pointer or a file descriptor, as kind says) plus offset on; it
   * outlives the buffer. QPLAN_NPU_E_UNSUPPORTED where the device cannot reach it, then the caller copies. */
  qplan_npu_status (*import_memory)(qplan_npu_device device, const qplan_npu_buffer_request* request,
                                    uint32_t kind, uint64_t value, uint64_t offset, qplan_npu_buffer* buffer);
  /* QPLAN_NPU_E_BUSY while a job uses it. */
  qplan_npu_status (*release)(qplan_npu_device device, qplan_npu_buffer buffer);
  qplan_npu_status (*layout)(qplan_npu_device device, qplan_npu_buffer buffer, qplan_npu_layout* layout);
  /* Begin of access by the CPU (QPLAN_NPU_READ invalidates), and its end (QPLAN_NPU_WRITE cleans). The
   * pointer stays the same as long as the buffer lives; whoever keeps it must flush and invalidate. */
  qplan_npu_status (*map)(qplan_npu_device device, qplan_npu_buffer buffer, uint32_t access, void** memory);
  qplan_npu_status (*unmap)(qplan_npu_device device, qplan_npu_buffer buffer, uint32_t access);
  /* Ranges, for those who keep pointers. Widened to cache lines. */
  qplan_npu_status (*flush)(qplan_npu_device device, qplan_npu_buffer buffer, uint64_t offset,
                            uint64_t bytes);
  qplan_npu_status (*invalidate)(qplan_npu_device device, qplan_npu_buffer buffer, uint64_t offset,
                                 uint64_t bytes);

  /* -- programs -- */
  /* Validates the whole blob: what load takes, submit cannot refuse for the blob's sake. format: a FourCC. */
  qplan_npu_status (*load)(qplan_npu_device device, uint32_t format, const void* blob, uint64_t bytes,
                           qplan_npu_program* program, qplan_npu_reason* why);
  qplan_npu_status (*program_info)(qplan_npu_device device, qplan_npu_program program,
                                   qplan_npu_program_info* info);
  qplan_npu_status (*region_info)(qplan_npu_device device, qplan_npu_program program, uint32_t slot,
                                  qplan_npu_region_info* info);
  /* QPLAN_NPU_E_BUSY while a job uses it. */
  qplan_npu_status (*unload)(qplan_npu_device device, qplan_npu_program program);

  /* -- jobs -- */
  /* Never blocks. QPLAN_NPU_E_BUSY when the queue is full. */
  qplan_npu_status (*submit)(qplan_npu_device device, const qplan_npu_submit* submit, qplan_npu_job* job,
                             qplan_npu_reason* why);
  /* The job's status, or QPLAN_NPU_PENDING when timeout_ns are over: it goes on. 0 polls, UINT64_MAX waits
   * for ever. The first call that does not return QPLAN_NPU_PENDING ends the handle. report may be NULL. */
  qplan_npu_status (*wait)(qplan_npu_device device, qplan_npu_job job, uint64_t timeout_ns,
                           qplan_npu_report* report);
  /* Asks; the job completes with QPLAN_NPU_E_CANCELLED, or as if nothing had been asked. */
  qplan_npu_status (*cancel)(qplan_npu_device device, qplan_npu_job job);
  /* values[i] of counter ids[i]; QPLAN_NPU_E_UNSUPPORTED where one is unknown (its value is 0). Optional. */
  qplan_npu_status (*counters)(qplan_npu_device device, const uint32_t* ids, uint64_t* values,
                               uint32_t count);

  /* -- since 1.1 -- */
  /* As load, of bytes that stay as they are until unload: the driver may use them where they are, in flash
   * for example, instead of a copy. It copies what the device cannot reach or read there. Optional. */
  qplan_npu_status (*load_in_place)(qplan_npu_device device, uint32_t format, const void* blob,
                                    uint64_t bytes, qplan_npu_program* program, qplan_npu_reason* why);

  /* -- since 1.2 -- */
  /* The listing of a blob of one of the driver's formats, handed to line() line by line; for
   * `qplan npu disasm --driver`. It needs no device. options: as of open. Optional. */
  qplan_npu_status (*disassemble)(uint32_t format, const void* blob, uint64_t bytes, const char* options,
                                  void (*line)(void* user, const char* text), void* user,
                                  qplan_npu_reason* why);
} qplan_npu_driver;

/* The function that a shared library exports. abi: QPLAN_NPU_ABI of the caller; NULL: this library cannot
 * serve that major. */
#define QPLAN_NPU_DRIVER_ENTRY_NAME "qplan_npu_driver_entry"
typedef const qplan_npu_driver* (*qplan_npu_driver_entry_fn)(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_NPU_DRIVER_H_ */
