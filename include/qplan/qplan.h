/* qplan.h -- the runtime's C API: open a plan, give it memory, run it. C99, C11, C++17.
 *
 * The life of an inference:
 *   qplan_plan_open             bytes (flash, mmap, RAM) -> a verified view; nothing is copied
 *   qplan_session_memory_needs  how many bytes, with which alignment, the session wants
 *   qplan_session_init          the caller's memories -> a session; nothing is allocated, now or later
 *   qplan_session_write / bind  inputs in;   qplan_session_invoke;   qplan_session_read / view   outputs out
 *
 * Ownership: whatever the caller passes stays the caller's and must outlive the plan or session that uses it:
 *   plan bytes, memories, kernel set, platform, thread pool. There is nothing to free.
 * Threads: an opened plan and a kernel set are immutable and may be shared; one session is used by one thread
 *   at a time, except for qplan_session_cancel, which any thread may call. There is no global state.
 * Trust: a plan may come from anybody. What open and init accept stays within the memories; how long it runs
 * is what its work says (qplan_plan_work), which qplan_session_config.max_work limits. Names are bytes of the
 * plan and may hold anything; texts (errors, log lines) are made printable: other bytes of a plan appear in
 * them as '?'. Structs that cross the line start with struct_size = sizeof(the struct); a field beyond it
 * counts as zero, and zero means "default". They only ever grow at the end. Errors: every call returns a
 * status. Calls made before a session exists also fill an optional qplan_error. */
#ifndef QPLAN_QPLAN_H_
#define QPLAN_QPLAN_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define QPLAN_API
#else
#define QPLAN_API __attribute__((visibility("default")))
#endif

#define QPLAN_API_VERSION 1u /* grows only on an incompatible change; additions grow struct_size */
QPLAN_API uint32_t qplan_api_version(void);

/* ---- status: >= 0 is not an error. Values are grouped and never renumbered. ---- */
typedef int32_t qplan_status;
enum {
  QPLAN_OK = 0,
  QPLAN_PENDING = 1,
  /* the call is wrong */
  QPLAN_INVALID_ARGUMENT = -1,
  QPLAN_INVALID_STATE = -2,
  QPLAN_SHAPE_MISMATCH = -3,
  QPLAN_DTYPE_MISMATCH = -4,
  QPLAN_MISALIGNED = -5,
  QPLAN_MEMORY_TOO_SMALL = -6,
  QPLAN_NOT_FOUND = -7,
  QPLAN_WORK_LIMIT = -8, /* the plan computes more than qplan_session_config.max_work allows */
  /* the bytes are wrong */
  QPLAN_PLAN_CORRUPT = -16,
  QPLAN_PLAN_VERSION = -17,
  /* the build or the machine lacks something */
  QPLAN_KERNEL_MISSING = -18,
  QPLAN_DRIVER_MISSING = -19,
  /* the device */
  QPLAN_DEVICE_ERROR = -32,
  QPLAN_DEVICE_TIMEOUT = -33,
  QPLAN_CANCELLED = -34,
  QPLAN_SELF_CHECK_FAILED = -35, /* a step, or the bytes of its constants, are not as they were packed */
  /* host side: packer, files */
  QPLAN_MODEL_INVALID = -48,
  QPLAN_MODEL_UNSUPPORTED = -49,
  QPLAN_FILE_ERROR = -50,
  QPLAN_OUT_OF_MEMORY = -51,
  QPLAN_INTERNAL = -64
};
QPLAN_API const char* qplan_status_name(qplan_status status); /* "QPLAN_MISALIGNED"; static storage */

/* One error, in the caller's storage. text is one line, empty where texts are compiled out. */
typedef struct qplan_error {
  uint32_t struct_size;
  qplan_status status;
  int32_t step;   /* index of the step concerned, or -1 */
  int32_t tensor; /* index of the tensor concerned, or -1 */
  char text[240]; /* NUL-terminated UTF-8 without control characters */
} qplan_error;

/* ---- plan: a zero-copy view over flash, mmap or RAM ---- */
typedef struct qplan_plan { /* caller-owned storage; nothing to destroy */
  uint64_t opaque[8];
} qplan_plan;

enum {
  QPLAN_PLAN_DIGEST = 1u /* also check the SHA-256 of the file; memory safety never relies on it */
};
/* bytes: 64-byte aligned, size bytes long (the file may be followed by anything). Verifies the whole plan in
 * linear time; session init checks the rest, once: what both accept, execution can run blindly. So nobody may
 * change the bytes as long as the plan or a session of it is used: a mapped file is neither shortened nor
 * written to, not even at the same length, but replaced by another file (rename). error may be NULL.
 * QPLAN_PLAN_CORRUPT, QPLAN_PLAN_VERSION, QPLAN_MISALIGNED, QPLAN_INVALID_ARGUMENT. */
QPLAN_API qplan_status qplan_plan_open(qplan_plan* plan, const void* bytes, size_t size, uint32_t flags,
                                       qplan_error* error);

enum { QPLAN_INPUT = 0, QPLAN_OUTPUT = 1 };

typedef struct qplan_tensor_info {
  uint32_t struct_size;
  int32_t ndim;
  const char* name;     /* "" where names are stripped; this and all pointers below point into the plan */
  const int64_t* shape; /* ndim extents, outermost first; a packed row-major tensor */
  DLDataType dtype;
  uint32_t alignment;         /* bytes, for qplan_session_bind */
  uint64_t size_bytes;        /* of the packed tensor */
  const float* scales;        /* real = scale * (q - zero_point); num_scales of them */
  const int32_t* zero_points; /* num_scales of them */
  uint32_t num_scales;        /* 0: not quantised, 1: per tensor, n: along quant_axis */
  int32_t quant_axis;
} qplan_tensor_info;
/* Facts that a plan states. */
typedef struct qplan_plan_info {
  uint32_t struct_size;
  uint32_t is_for_other_arch; /* 1: packed for another processor architecture than runtime_arch. It runs with
                                 the same bytes, but may take several times the time and memory: its layouts
                                 and sizes are for kernels that are not here. init logs a warning. 0 where the
                                 plan does not say */
  const char* target_options; /* of the CPU that the plan was packed for: "arch=x86_64,isa=avx512vnni"; ""
                                 where the plan does not say; points into the plan */
  const char* runtime_arch;   /* of this build: "x86_64", "cortex-m", ... or "unknown"; static storage */
  uint32_t version_major;     /* of the file's format */
  uint32_t version_minor;
} qplan_plan_info;
/* QPLAN_INVALID_ARGUMENT: a plan or info that is NULL, or a struct_size that no version of this struct
 * has. */
QPLAN_API qplan_status qplan_plan_get_info(const qplan_plan* plan, qplan_plan_info* info);

/* function: an entry point of the plan, NULL for "main". QPLAN_NOT_FOUND: the plan has no such function;
 * QPLAN_INVALID_ARGUMENT: it has no input or output `index`. */
QPLAN_API uint32_t qplan_plan_io_count(const qplan_plan* plan, const char* function, int direction);
QPLAN_API qplan_status qplan_plan_io_info(const qplan_plan* plan, const char* function, int direction,
                                          uint32_t index, qplan_tensor_info* info);

/* ---- platform hooks: all optional, all the caller's ---- */
/* Runs task(ctx, index, worker) for each index in [0, count) and returns when all are done. worker <
 * num_threads; two tasks running at the same time have different workers. Results never depend on num_threads
 * or on the order. */
typedef struct qplan_thread_pool {
  uint32_t struct_size; /* of a copy of somebody else's pool: sizeof(qplan_thread_pool) of whoever copies,
                           since the other may have been built with more or fewer fields */
  uint32_t num_threads; /* >= 1, constant while a session uses the pool */
  void* user;
  void (*parallel_for)(void* user, uint32_t count, void (*task)(void* ctx, uint32_t index, uint32_t worker),
                       void* ctx);
  uint32_t
      is_uneven; /* 1: its threads differ in speed (big.LITTLE): steps that are dear to divide are divided
                    further, too, so that a fast thread takes from a slow one. Constant as num_threads */
  uint32_t reserved;
} qplan_thread_pool;

typedef struct qplan_event { /* one plan step */
  uint32_t struct_size;
  uint32_t step;      /* its position in the plan */
  const char* op;     /* kernel family: "conv2d"; "npu" for a region */
  const char* kernel; /* the variant that runs: "conv2d_avx512vnni"; of a region the driver's name, or "cpu"
                         where the CPU's steps after it run instead */
  const char* name;   /* the source operator's name, "" where stripped */
  uint64_t macs;      /* multiply-accumulates of the step, as the plan states them */
  uint64_t bytes;     /* bytes of its operands: inputs, constants, outputs */
  uint64_t work; /* elementary operations of the step, as qplan_plan_work counts them; of a region the bytes
                    that the CPU copies for it */
} qplan_event;

enum {
  QPLAN_LOG_OFF = 0,
  QPLAN_LOG_ERROR = 1,
  QPLAN_LOG_WARNING = 2,
  QPLAN_LOG_INFO = 3,
  QPLAN_LOG_DEBUG = 4
};
typedef struct qplan_platform {
  uint32_t struct_size;
  uint32_t log_level; /* QPLAN_LOG_*: texts above it are not made */
  void* user;
  void (*log)(void* user, uint32_t level, const char* text); /* text is valid during the call */
  void (*step_begin)(void* user, const qplan_event* event);
  void (*step_end)(void* user, const qplan_event* event, qplan_status status);
  uint64_t (*now_ns)(void* user);
  const qplan_thread_pool* thread_pool; /* NULL: everything on the calling thread */
  /* Called after each piece of a step's work, to let other tasks run or to feed a watchdog; it may cancel the
   * session, and call no other function on it. Each step that the CPU runs has at least one piece; nothing is
   * called while a device works. It is called on the thread that did the piece: with a thread pool, on any of
   * its threads and on several at once. Its time counts into the step's. NULL: nothing is called, and pieces
   * have 2^26 operations, after which a run can be cancelled. */
  void (*yield)(void* user);
  uint32_t yield_work; /* elementary operations (qplan_plan_work) of a piece, which may have up to twice as
                          many; 0, or more than 2^26: 2^26. A piece is at least one work item of its kernel:
                          a row of outputs of most, a whole image of some, a whole cascade that works in
                          place. A step has at most 16 pieces a thread where pieces compute rows at their
                          borders again or pack weights: cascades, products of two activations, transposed
                          convolutions. Pieces of some other kernels prepare a little, such as a table of
                          256 entries: some thousand operations are the least that is sensible. */
} qplan_platform;

/* ---- kernels: passed in, never registered in a global, so that the linker drops what is not used ---- */
typedef struct qplan_kernel_set qplan_kernel_set;
QPLAN_API const qplan_kernel_set* qplan_kernels_all(void); /* every family, every ISA of this build */
QPLAN_API const qplan_kernel_set* qplan_kernels_reference(
    void); /* every family, reference kernels only: small */
/* As qplan_kernels_all, without the families that compute on float32: for firmware of quantised networks. */
QPLAN_API const qplan_kernel_set* qplan_kernels_integer(void);

/* How much the CPU computes in one run of a function at most, before there is a session: a plan is untrusted,
 * and 1.3 kB of it may mean hours. *work is the number of elementary operations of all steps:
 * multiply-accumulates, elements of pooling windows, elements that an operator computes, bytes that it moves;
 * docs/work.md has the formula of each kernel family. It follows from shapes and parameters, which are
 * verified here, and never from figures that the plan states. The fallback steps of regions count, since the
 * CPU runs them when a device fails; the work of devices does not. UINT64_MAX: that many or more. The units
 * of a cascade are cut into at most 16 shares a thread, and rows at the borders of shares are computed again,
 * as weights are packed again for products of two activations and transposed convolutions: at most 16 times
 * as much for each thread. function: NULL for "main". kernels: those that the session is going to have. error
 * may be NULL. QPLAN_NOT_FOUND, QPLAN_KERNEL_MISSING, QPLAN_PLAN_CORRUPT, QPLAN_INVALID_ARGUMENT. */
QPLAN_API qplan_status qplan_plan_work(const qplan_plan* plan, const char* function,
                                       const qplan_kernel_set* kernels, uint64_t* work, qplan_error* error);

/* ---- session ---- */
typedef struct qplan_session qplan_session; /* lives inside memories[0] */
typedef struct qplan_memory {
  void* base;
  size_t size; /* bytes */
} qplan_memory;

/* Upper bound for the instruction set of kernels. AUTO is the best this machine has. A limit that the machine
 * lacks is QPLAN_INVALID_ARGUMENT. The outputs are the same bits for every value. AVXVNNI is the 256-bit VNNI
 * of processors without AVX-512; DSP the extension of Cortex-M4, M7, M33 and above, MVE the vectors of M55
 * and M85; I8MM the products of matrices of 64-bit Arm; RVV version 1.0 of RISC-V's vector extension. */
enum {
  QPLAN_ISA_AUTO = 0,
  QPLAN_ISA_REFERENCE = 1,
  QPLAN_ISA_DSP = 8,
  QPLAN_ISA_MVE = 12,
  QPLAN_ISA_SSE41 = 16,
  QPLAN_ISA_AVX2 = 32,
  QPLAN_ISA_AVXVNNI = 40,
  QPLAN_ISA_AVX512VNNI = 48,
  QPLAN_ISA_NEON = 64,
  QPLAN_ISA_DOTPROD = 72,
  QPLAN_ISA_I8MM = 80,
  QPLAN_ISA_RVV = 96
};
/* ---- NPU regions: steps of a plan that a device runs, each with the CPU steps that compute the same bits
 * ---- The session submits a region's job to the driver of the region's target, copies tensors between the
 * CPU's and the device's arrangement where they differ, and maintains caches. A region without a device that
 * takes it runs on its CPU steps from init on; what becomes of one whose job fails is a matter of policy. All
 * of this is reported: each region states where it runs and why (qplan_session_region_info), each device its
 * state and counters, and the log has a line. */
struct qplan_npu_driver; /* qplan/npu_driver.h */
/* The code that talks to drivers, passed in so that programs without an NPU do not link it. */
typedef struct qplan_npu_client qplan_npu_client;
QPLAN_API const qplan_npu_client* qplan_npu_client_default(void);

typedef struct qplan_npu_device_config {
  uint32_t struct_size;
  uint32_t reserved;
  const char* target; /* of the plan: "vta" */
  const struct qplan_npu_driver*
      driver;            /* both outlive the session; NULL: the device is absent, status tells why */
  uint64_t device;       /* qplan_npu_device, opened by the caller with the driver */
  int32_t status;        /* driver NULL: the qplan_npu_status of the attempt to open, for the report */
  uint32_t max_failures; /* jobs in a row that failed with an error that asks for a reset, until
                            quarantine; 0: 3 */
} qplan_npu_device_config;

/* What happens when a region cannot run on its device. After a job that neither cancel nor reset ends, this
 * run and all later ones of the session fail with QPLAN_DEVICE_ERROR under every policy, unless the job
 * writes only to memory of the device's own: in memory that it may still write, the CPU computes nothing. */
enum {
  QPLAN_NPU_FALLBACK = 0, /* on the CPU, with the same bits */
  QPLAN_NPU_RETRY =
      1, /* once more on the device, after a reset where the error asks for one; then as FALLBACK */
  QPLAN_NPU_FAIL =
      2 /* init or invoke fails with QPLAN_DRIVER_MISSING, QPLAN_DEVICE_ERROR, QPLAN_DEVICE_TIMEOUT */
};
enum {
  QPLAN_NPU_VERIFY = 1u, /* every region on its device and on the CPU; a difference is counted and logged, and
                            the CPU's bytes stand */
  QPLAN_NPU_OFF = 2u     /* every region on the CPU */
};

typedef struct qplan_session_config {
  uint32_t struct_size;
  uint32_t isa_limit;                     /* QPLAN_ISA_* */
  const char* function;                   /* entry point of the plan; NULL: "main" */
  const qplan_kernel_set* kernels;        /* required */
  const qplan_platform* platform;         /* may be NULL */
  const qplan_npu_client* npu;            /* qplan_npu_client_default(); NULL: no devices */
  const qplan_npu_device_config* devices; /* at most one for each target, targets that the plan lacks are
                                             ignored; read during init only */
  uint32_t num_devices;
  uint32_t on_npu_failure; /* QPLAN_NPU_FALLBACK, ... */
  uint32_t npu_flags;      /* QPLAN_NPU_VERIFY, ... */
  uint32_t npu_timeout_us; /* a job may take so long, in the queue of its device too, then it is cancelled; a
                              job that has not ended so long after the cancel makes its device be reset, and
                              so long after the reset it is lost. 0: a job may take one second, or 16 times
                              its estimate if that is more, at most ten minutes; cancel and reset one second
                              each. Time is platform.now_ns, without it that in waits */
  uint64_t max_work;       /* init refuses a function of more work (qplan_plan_work) with QPLAN_WORK_LIMIT;
                              0: no limit */
} qplan_session_config;

typedef struct qplan_memory_need {
  uint32_t bank;      /* the plan's memory bank, in the order of qplan_memory in init */
  uint32_t alignment; /* bytes */
  uint64_t size;      /* bytes; usage equals it to the byte, for bank 0 runtime structures included */
} qplan_memory_need;
/* *count in: room in needs; out: number of banks. needs may be NULL to ask for the count. error may be NULL.
 */
QPLAN_API qplan_status qplan_session_memory_needs(const qplan_plan* plan, const qplan_session_config* config,
                                                  qplan_memory_need* needs, uint32_t* count,
                                                  qplan_error* error);
/* Where the memory of a need's bank should be: QPLAN_NPU_MEMORY_CLASS_* of qplan/npu_driver.h, 0: anywhere.
 * It changes how fast a device is, never what it computes. 0 where there is no such bank. */
QPLAN_API uint32_t qplan_plan_memory_class(const qplan_plan* plan, uint32_t bank);
/* One memory per need, in the same order. Writes nothing unless all memories suffice. error may be NULL. A
 * region that has neither device nor CPU steps, and under QPLAN_NPU_FAIL one that has no device, is an error.
 * QPLAN_WORK_LIMIT (error->step is where the limit is passed), QPLAN_DRIVER_MISSING, QPLAN_DEVICE_ERROR,
 * QPLAN_MEMORY_TOO_SMALL, QPLAN_MISALIGNED, QPLAN_KERNEL_MISSING, QPLAN_PLAN_CORRUPT, QPLAN_INVALID_ARGUMENT.
 */
QPLAN_API qplan_status qplan_session_init(const qplan_plan* plan, const qplan_session_config* config,
                                          const qplan_memory* memories, uint32_t num_memories,
                                          qplan_session** session, qplan_error* error);
/* The memories are the caller's again; frees nothing. A job in flight is cancelled; devices get back what
 * init took. QPLAN_DEVICE_ERROR, and a line with QPLAN_LOG_ERROR, where neither cancel nor reset has stopped
 * a device, now or in a run: it may still use the memories and the plan, so keep them until the device is
 * closed. QPLAN_INVALID_ARGUMENT: there is no such session. */
QPLAN_API qplan_status qplan_session_deinit(qplan_session* session);

/* Inputs and outputs by index: QPLAN_INVALID_ARGUMENT where the function has no such one. */
/* A DLTensor over the session's own buffer (or the bound one): zero copy. Shape points into the plan. */
QPLAN_API qplan_status qplan_session_view(qplan_session* session, int direction, uint32_t index,
                                          DLTensor* view);
/* The session uses the caller's buffer from now on: packed row-major, aligned as qplan_tensor_info says, on
 * the CPU. byte_offset is honoured. NULL unbinds. A buffer bound as an input is only read; what a buffer held
 * when it was bound as an output does not matter. It may overlap neither the session's memories nor, where
 * one of the two is an output, another bound buffer. A tensor that the function lists several times is bound
 * through its first mention. */
QPLAN_API qplan_status qplan_session_bind(qplan_session* session, int direction, uint32_t index,
                                          const DLTensor* tensor);
/* Copies in and out; any strides (in elements, may be negative, on write also zero), byte_offset honoured. A
 * bound input is not written: QPLAN_INVALID_STATE. */
QPLAN_API qplan_status qplan_session_write(qplan_session* session, uint32_t input, const DLTensor* tensor);
QPLAN_API qplan_status qplan_session_read(qplan_session* session, uint32_t output, const DLTensor* tensor);

QPLAN_API qplan_status qplan_session_invoke(qplan_session* session); /* submit, then wait without limit */
/* Runs up to the first job of a device that works by itself, and returns QPLAN_PENDING; QPLAN_OK when it ran
 * to the end. Steps of the CPU run inside these calls: poll and wait go on where a job has completed. */
QPLAN_API qplan_status qplan_session_submit(qplan_session* session);
QPLAN_API qplan_status
qplan_session_poll(qplan_session* session); /* never waits; QPLAN_PENDING while a job runs */
/* timeout_us bounds the waiting for jobs, not the steps of the CPU; UINT32_MAX: without limit. */
QPLAN_API qplan_status qplan_session_wait(qplan_session* session, uint32_t timeout_us);
/* Ends the run in progress. Any thread may call it, and hooks of the session may; it only asks, and returns
 * at once. The call that runs the session (invoke, submit, poll, wait) returns QPLAN_CANCELLED at the next
 * work item of each thread: between steps, and within a step after about 67 million elementary operations or,
 * where that is more, one work item of its kernel, such as a row of outputs. max_work bounds the longest.
 * After QPLAN_PENDING the next poll or wait returns it. A job in flight is cancelled on its device, and the
 * run ends when the job has; a driver that works inside its submit function is not interrupted. A device that
 * fails meanwhile is reset and counted as in other runs. The outputs then hold anything; inputs, bound
 * buffers and the session stay usable, and the next invoke or submit begins anew. A run that is just ending
 * may end with QPLAN_OK. Without a run in progress nothing happens: the next run is not cancelled. The
 * session must not be taken down meanwhile. QPLAN_INVALID_ARGUMENT. */
QPLAN_API qplan_status qplan_session_cancel(qplan_session* session);
/* A function may keep tensors from one run to the next (its states): init and this function give them their
 * initial values, and a run that returns QPLAN_OK leaves the next ones. After a run that failed or was
 * cancelled some states may be of the run before and others not: call this before the next. It does nothing
 * for functions without states. QPLAN_INVALID_STATE while the session runs. */
QPLAN_API qplan_status qplan_session_reset_state(qplan_session* session);

typedef struct qplan_session_info {
  uint32_t struct_size;
  uint32_t num_steps; /* the CPU's steps of regions included */
  uint32_t num_threads;
  uint32_t isa;          /* the highest QPLAN_ISA_* among the chosen kernels */
  const char* isa_name;  /* "avx512vnni"; static storage */
  uint64_t macs;         /* of one invoke, as the plan states them; CPU steps of regions do not count */
  uint64_t memory_bytes; /* of all banks, as qplan_session_memory_needs says */
  uint64_t work;         /* of one invoke at most, as qplan_plan_work counts it; CPU steps of regions count */
} qplan_session_info;
QPLAN_API qplan_status qplan_session_get_info(const qplan_session* session, qplan_session_info* info);
/* Describes step `index` of the session's function as events do. QPLAN_INVALID_ARGUMENT beyond the last. */
QPLAN_API qplan_status qplan_session_step_info(const qplan_session* session, uint32_t index,
                                               qplan_event* event);

/* Inside step_end of a step that has succeeded: what the step wrote. Output `index` of the step, as a view of
 * the session's memory that may be read until step_end returns: later steps write their outputs there. info
 * (may be NULL) has its name and shape, and its quantisation where the plan states it (`pack --strip-names`
 * removes it). Tensors inside a cascade are never whole, and those inside a region exist on its device alone:
 * the step or region is one step, with its own outputs. QPLAN_NOT_FOUND beyond the last output.
 * QPLAN_INVALID_STATE elsewhere, and where the step has failed; QPLAN_INVALID_ARGUMENT. */
QPLAN_API qplan_status qplan_session_step_output(qplan_session* session, uint32_t index,
                                                 qplan_tensor_info* info, DLTensor* view);

/* Whether the function computes here what it computed when it was packed: for the self-check at power-on, and
 * after a suspected fault of memory. For plans of `qplan pack --self-check N` (QPLAN_NOT_FOUND for others).
 * First it compares the checksums of all constants, then N times writes inputs that a seed makes, runs the
 * function, and compares the checksum of what each step wrote: on the kernels, threads and devices of this
 * session, with tensors as the plan has them (steps in place too; layers inside a cascade or a region are not
 * whole anywhere, and count as one step). QPLAN_SELF_CHECK_FAILED: the last error has the first step that is
 * wrong and says whether its constants (of a state: its initial value) are damaged. A device that fails does
 * not fail the check where on_npu_failure lets the CPU compute the region: then the steps of the fallback are
 * compared, and qplan_session_region_info counts the failure. A device that succeeds with other bytes fails
 * the check. Afterwards the states are those after init, and the inputs and outputs hold anything. step_begin
 * and step_end are not called. qplan_session_cancel ends it with QPLAN_CANCELLED, also between its runs.
 * It takes the time of N runs, and less than 20 operations for each byte of constants and outputs.
 * QPLAN_INVALID_STATE while the session runs, and where an input is bound: unbind it first. */
QPLAN_API qplan_status qplan_session_self_check(qplan_session* session);

/* The last error of this session; status QPLAN_OK when there was none. */
QPLAN_API void qplan_session_last_error(const qplan_session* session, qplan_error* error);

/* ---- what runs on devices ---- */
typedef struct qplan_region_info {
  uint32_t struct_size;
  uint32_t step;       /* its position in the plan */
  const char* name;    /* of the region's function, "" where stripped; points into the plan, as target does */
  const char* target;  /* "vta" */
  uint32_t on_device;  /* 1: the next invoke runs it there */
  qplan_status status; /* QPLAN_OK, or why it is not there */
  uint32_t num_operators;   /* of the model */
  uint32_t has_alternative; /* 0: packed without CPU steps */
  uint64_t macs;
  uint64_t device_runs; /* jobs that completed, since init */
  uint64_t cpu_runs;
  uint64_t failures;   /* jobs that did not */
  uint64_t mismatches; /* QPLAN_NPU_VERIFY: runs whose bytes differed */
  uint64_t copies;     /* of tensors between the CPU's and the device's arrangement or memory, since init */
  uint64_t copy_bytes;
  uint64_t last_cycles; /* of the last job, as the driver counts */
  char text[160];       /* why it is not on the device, or of the last failure; "" when there was none */
} qplan_region_info;
/* Regions of the session's function, in the order of its steps. QPLAN_NOT_FOUND beyond the last. */
QPLAN_API uint32_t qplan_session_num_regions(const qplan_session* session);
QPLAN_API qplan_status qplan_session_region_info(const qplan_session* session, uint32_t index,
                                                 qplan_region_info* info);

enum {
  QPLAN_DEVICE_PRESENT = 0,
  QPLAN_DEVICE_DEGRADED = 1,    /* its last job failed */
  QPLAN_DEVICE_QUARANTINED = 2, /* max_failures, or a reset that failed: gets no jobs until
                                   qplan_session_recover_device */
  QPLAN_DEVICE_ABSENT = 3       /* never there, or gone */
};
typedef struct qplan_device_info {
  uint32_t struct_size;
  uint32_t state;       /* QPLAN_DEVICE_* */
  const char* target;   /* of the plan */
  const char* driver;   /* its name; "" when absent from the start */
  int32_t last_status;  /* qplan_npu_status of the last failure, 0 when there was none */
  uint32_t num_regions; /* that it runs at the next invoke */
  uint64_t jobs;        /* since init, those that the driver did not take included */
  uint64_t failed_jobs;
  uint64_t timeouts; /* among them */
  uint64_t retries;
  uint64_t fallbacks; /* runs of a region on the CPU after its job failed */
  uint64_t resets;
  uint64_t cycles;          /* of all jobs, as the driver counts */
  uint64_t program_bytes;   /* that the driver holds for the session's regions */
  char text[160];           /* of the last failure */
  uint64_t misplaced_bytes; /* of the plan's banks that are in another class of memory than the plan asks
                               for; the log says why */
} qplan_device_info;
/* One for each target of the plan that has regions, in the order of its targets. */
QPLAN_API uint32_t qplan_session_num_devices(const qplan_session* session);
QPLAN_API qplan_status qplan_session_device_info(const qplan_session* session, uint32_t index,
                                                 qplan_device_info* info);
/* Resets a quarantined device, loads its regions again and gives it jobs from the next invoke on. Not while
 * the session runs. QPLAN_DEVICE_ERROR where a region that was on the device does not load again; the others
 * are loaded all the same. QPLAN_INVALID_STATE, QPLAN_DEVICE_ERROR. */
QPLAN_API qplan_status qplan_session_recover_device(qplan_session* session, uint32_t index);

/* An application's tensor in memory that the session's devices and the CPU both reach, for
 * qplan_session_bind. */
typedef struct qplan_buffer { /* caller-owned storage, which stays where it is until the buffer is destroyed
                               */
  uint64_t opaque[16];
} qplan_buffer;
/* Allocates through the driver of device `index`, as qplan_session_device_info counts them, what holds tensor
 * (shape and dtype; data is ignored), with the alignment of the plan's bank. Where that device is absent:
 * QPLAN_DRIVER_MISSING, and any memory of the application's will do. The session's regions then read or write
 * the buffer without a copy where their arrangement is the packed tensor's. A run that cannot flush an output
 * that is bound to it fails with QPLAN_DEVICE_ERROR, unless the device is gone. The buffer must be destroyed
 * before the session is taken down, and before its storage is used for another one (QPLAN_INVALID_STATE).
 * flags: 0. QPLAN_DRIVER_MISSING, QPLAN_DEVICE_ERROR, QPLAN_NOT_FOUND, QPLAN_INVALID_STATE,
 * QPLAN_INVALID_ARGUMENT. */
QPLAN_API qplan_status qplan_buffer_create(qplan_session* session, uint32_t index, const DLTensor* tensor,
                                           uint32_t flags, qplan_buffer* buffer);
/* The buffer as a packed tensor on the CPU: shape points into the buffer. QPLAN_BUFFER_READ: the CPU is going
 * to read it, QPLAN_BUFFER_WRITE: to write it; end_access when it has. Between, the session must not run. */
enum { QPLAN_BUFFER_READ = 1u, QPLAN_BUFFER_WRITE = 2u };
QPLAN_API qplan_status qplan_buffer_begin_access(qplan_buffer* buffer, uint32_t access, DLTensor* view);
QPLAN_API qplan_status qplan_buffer_end_access(qplan_buffer* buffer);
/* Not while it is bound. QPLAN_DEVICE_ERROR: the driver did not take its memory back, as while a job uses it;
 * the buffer stays, to be destroyed later. QPLAN_INVALID_STATE, QPLAN_INVALID_ARGUMENT. */
QPLAN_API qplan_status qplan_buffer_destroy(qplan_buffer* buffer);

/* "reference", "avx2", ...: the name of a QPLAN_ISA_* value, NULL when unknown; and back: 0 and
 * QPLAN_NOT_FOUND. */
QPLAN_API const char* qplan_isa_name(uint32_t isa);
QPLAN_API qplan_status qplan_isa_from_name(const char* name, uint32_t* isa);
/* Whether this machine and this build can run kernels of that ISA. */
QPLAN_API int qplan_isa_available(uint32_t isa);

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_QPLAN_H_ */
