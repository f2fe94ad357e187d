/* The skeleton's device; README.md beside this file says what to keep and what to replace.
 *
 * One mutex guards all that is below; it is let go while a job computes and while `done` functions run. */
#ifndef SKELETON_H_
#define SKELETON_H_

#include <pthread.h>
#include <qplan/npu_oplist.h>
#include <qplan/npu_target.h>

enum {
  SKELETON_QUEUE = 8,        /* jobs submitted and not complete */
  SKELETON_ALIGNMENT = 64,   /* of buffers */
  SKELETON_MAX_WINDOW = 256, /* extents of kernels and pools */
  /* What compute.c does on a processor, at 100 MHz: 110 million a second were measured (x86-64, loaded,
   * 2026-11). Jobs may take 16 times as long as these figures say before the runtime cancels them. */
  SKELETON_MACS_PER_CYCLE = 1
};
#define SKELETON_MAX_BUFFER (UINT64_C(1) << 30)
#define SKELETON_CONTRACTS (QPLAN_NPU_TFL2 | QPLAN_NPU_TFL1 | QPLAN_NPU_F32E | QPLAN_NPU_ACC32)

struct buffer {
  struct buffer* next;
  uint64_t handle;
  uint8_t* memory;
  int is_imported;
  uint32_t usage;
  uint32_t users; /* jobs that are not complete */
  qplan_npu_layout layout;
};

struct region { /* of a program: a slot for binds, or memory that the program carries */
  uint32_t usage;
  uint32_t alignment;
  uint64_t bytes;
  void* memory; /* NULL where jobs bind it */
};

struct program {
  struct program* next;
  uint64_t handle;
  uint8_t* memory; /* a copy of the blob; its weights are used where they are */
  uint64_t bytes;
  uint32_t max_window; /* of the device */
  /* Filled by read_blob. */
  struct region* regions; /* on the heap */
  uint32_t num_regions;
  uint64_t macs;
  uint64_t instructions;
  qplan_oplist list; /* for run_blob: whatever the format needs */
  uint32_t users;
};

enum job_state { JOB_QUEUED, JOB_RUNS, JOB_COMPLETE };
struct job { /* in the order of submit */
  struct job* next;
  uint64_t handle;
  enum job_state state;
  qplan_npu_status
      stop; /* 0, or how it shall end: by cancel, reset or close. Read by the engine while it computes */
  uint32_t priority;
  uint32_t num_after;
  uint32_t num_buffers;
  uint64_t* after;
  struct program* program;
  struct buffer** buffers;
  void** slots;
  void (*done)(void* user, qplan_npu_job job, qplan_npu_status status);
  void* user;
  uint64_t submitted_ns;
  qplan_npu_report report;
};

struct device {
  struct device* next;
  uint64_t handle;
  qplan_device_hooks hooks;
  const qplan_platform* platform;
  struct buffer* buffers;
  struct program* programs;
  struct job* jobs; /* until wait has told their end */
  uint64_t next_handle;
  uint64_t counters[QPLAN_NPU_COUNTER_BUFFER_BYTES + 1];
  uint32_t max_window; /* by the options */
  int power;
  int num_resets; /* calls that wait for jobs to end: close waits for them */
  int is_closing;
  pthread_t engine;
};

/* ---- driver.c ---- */
void lock(void);
void unlock(void);
void changed(void); /* wakes everybody in wait_for_change */
/* Lets go of the lock until something changed or deadline_ns (of now_ns(NULL), UINT64_MAX: none) is over. */
void wait_for_change(uint64_t deadline_ns);
struct device* find_device(uint64_t handle);  /* with the lock held */
uint64_t now_ns(const struct device* device); /* NULL: of the system, monotonic */
void* device_alloc(struct device* device, uint64_t bytes, uint32_t memory_class);
void device_free(struct device* device, void* memory);
/* Copies at most as many bytes as the other side's struct has. copy_in returns 0 if there is no such struct
 * or its size is not set. */
int copy_in(void* to, uint32_t to_bytes, const void* from);
int can_fill(const void* to);
void copy_out(void* to, const void* from, uint32_t from_bytes);
qplan_npu_status refuse(qplan_npu_reason* why, qplan_npu_status status, int64_t limit, int64_t actual,
                        const char* text);

/* ---- memory.c ---- */
uint32_t memory_classes(const struct device* device); /* 1 << QPLAN_NPU_MEMORY_CLASS_* of each */
struct buffer* find_buffer(struct device* device, uint64_t handle);
void free_buffer(struct device* device, struct buffer* buffer);
qplan_npu_status skeleton_requirements(qplan_npu_device, const qplan_npu_buffer_request*, qplan_npu_layout*);
qplan_npu_status skeleton_alloc(qplan_npu_device, const qplan_npu_buffer_request*, qplan_npu_buffer*);
qplan_npu_status skeleton_import(qplan_npu_device, const qplan_npu_buffer_request*, uint32_t kind,
                                 uint64_t value, uint64_t offset, qplan_npu_buffer*);
qplan_npu_status skeleton_release(qplan_npu_device, qplan_npu_buffer);
qplan_npu_status skeleton_layout(qplan_npu_device, qplan_npu_buffer, qplan_npu_layout*);
qplan_npu_status skeleton_map(qplan_npu_device, qplan_npu_buffer, uint32_t access, void** memory);
qplan_npu_status skeleton_unmap(qplan_npu_device, qplan_npu_buffer, uint32_t access);
qplan_npu_status skeleton_flush(qplan_npu_device, qplan_npu_buffer, uint64_t offset, uint64_t bytes);

/* ---- blob.c ---- */
/* program->memory as a blob of the format: checks all of it, and fills in the rest. An error refuses it. */
qplan_npu_status read_blob(struct program* program, uint32_t format, qplan_npu_reason* why);
/* Runs a program that read_blob took, on the memory of each region. Ends early once *stop is not 0. Fills in
 * the counts of the report. */
void run_blob(const struct program* program, void* const* slots, const qplan_npu_status* stop,
              qplan_npu_report* report);

/* ---- programs.c ---- */
struct program* find_program(struct device* device, uint64_t handle);
void free_program(struct device* device, struct program* program);
qplan_npu_status skeleton_load(qplan_npu_device, uint32_t format, const void* blob, uint64_t bytes,
                               qplan_npu_program*, qplan_npu_reason*);
qplan_npu_status skeleton_program_info(qplan_npu_device, qplan_npu_program, qplan_npu_program_info*);
qplan_npu_status skeleton_region_info(qplan_npu_device, qplan_npu_program, uint32_t slot,
                                      qplan_npu_region_info*);
qplan_npu_status skeleton_unload(qplan_npu_device, qplan_npu_program);

/* ---- jobs.c ---- */
void* engine_main(void* device); /* the thread that plays the hardware */
void stop_all(struct device* device, qplan_npu_status status);
void free_job(struct job* job);
qplan_npu_status skeleton_submit(qplan_npu_device, const qplan_npu_submit*, qplan_npu_job*,
                                 qplan_npu_reason*);
qplan_npu_status skeleton_wait(qplan_npu_device, qplan_npu_job, uint64_t timeout_ns, qplan_npu_report*);
qplan_npu_status skeleton_cancel(qplan_npu_device, qplan_npu_job);
qplan_npu_status skeleton_reset(qplan_npu_device);

/* ---- compute.c ---- */
/* An operator that check_op took, all of whose tensors have data. Ends early once *stop is not 0. */
void compute(const qplan_npu_op* op, const qplan_npu_status* stop);
uint64_t op_macs(const qplan_npu_op* op);
/* For the two files below. floor_shift: floor(value / 2^shift). */
int64_t floor_shift(int64_t value, int shift);
/* A real result: zero point, half to even, clamp. */
int32_t quantized(float real, const qplan_npu_op* op);
int32_t get(const DLTensor* t, int64_t i); /* an element of 8 bits */
void put(const DLTensor* t, int64_t i, int32_t value);
int stopped(const qplan_npu_status* stop);

/* ---- movement.c, softmax.c: some of compute's operators ---- */
void pad(const qplan_npu_op* op, const qplan_npu_status* stop);
void concat(const qplan_npu_op* op, const qplan_npu_status* stop);
void resize(const qplan_npu_op* op, const qplan_npu_status* stop);
void softmax(const qplan_npu_op* op, const qplan_npu_status* stop);

/* ---- supported.c: what the device can do, for driver and target ---- */
enum { SKELETON_NUM_RULES = 4 };
extern const qplan_npu_rule skeleton_rules[SKELETON_NUM_RULES];
/* "" or "window=N": kernels and pools of at most N x N. The driver's open and the target's configure. */
qplan_npu_status read_options(const char* options, uint32_t* max_window, qplan_npu_reason* why);
/* A hash of everything that a packer assumes. */
uint64_t hash_of(uint32_t max_window);
void fill_capabilities(uint32_t max_window, qplan_npu_capabilities* all);
qplan_npu_status check_op(uint32_t max_window, const qplan_npu_op*, qplan_npu_reason*, uint32_t* num_reasons);

/* ---- driver.c: check_op for a device; 0 is the device without options ---- */
qplan_npu_status skeleton_supported(qplan_npu_device, const qplan_npu_op*, qplan_npu_reason*,
                                    uint32_t* num_reasons);

#endif /* SKELETON_H_ */
