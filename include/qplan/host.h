/* host.h -- what only hosts have, around qplan.h: a mapped plan file, two thread pools, a trace file, a log
 * sink, drivers of NPUs.
 * C99 and C++17. Unlike the runtime these allocate, and what is created here is destroyed here. */
#ifndef QPLAN_HOST_H_
#define QPLAN_HOST_H_

#include <qplan/qplan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- files ---- */
typedef struct qplan_file {
  const void* bytes; /* page aligned */
  size_t size;
  void* opaque;
} qplan_file;
/* Maps a regular file read-only. Whoever shortens it while it is mapped makes reads fail (SIGBUS), and
 * whoever writes to it, at the same length too, changes a plan that has been verified and runs unchecked:
 * replace the file, as qplan_file_write does. error (may be NULL) states path and reason. QPLAN_FILE_ERROR.
 */
QPLAN_API qplan_status qplan_file_map(const char* path, qplan_file* file, qplan_error* error);
QPLAN_API void qplan_file_unmap(qplan_file* file);
/* Writes to a temporary name in the same directory and renames: path holds all of it or what it held before,
 * and an error leaves no temporary file. Links stay links; devices and pipes are written to.
 * QPLAN_FILE_ERROR. */
QPLAN_API qplan_status qplan_file_write(const char* path, const void* bytes, size_t size, qplan_error* error);
/* Removes the temporary files of the calls of qplan_file_write that are under way: of the first eight, and of
 * paths shorter than PATH_MAX. A child of fork() would remove its parent's. Async-signal-safe: for a handler
 * of SIGINT or SIGTERM that ends the process afterwards. The calls themselves then fail or never return. */
QPLAN_API void qplan_file_remove_temporaries(void);

/* ---- memory: what qplan_session_memory_needs asks for, from the heap ---- */
typedef struct qplan_host_session qplan_host_session;
/* Allocates the memories, zeroed, and inits a session in them. config as for qplan_session_init; besides its
 * errors QPLAN_OUT_OF_MEMORY. */
QPLAN_API qplan_status qplan_host_session_create(const qplan_plan* plan, const qplan_session_config* config,
                                                 qplan_host_session** host_session, qplan_error* error);
QPLAN_API qplan_session* qplan_host_session_get(qplan_host_session* host_session);
/* Frees the memories, except where a device that nothing stopped may still use them (qplan_session_deinit):
 * then they stay allocated until the process ends. The plan's bytes are the caller's: keep them in that case,
 * which the log tells, until the device is closed. */
QPLAN_API void qplan_host_session_destroy(qplan_host_session* host_session);

/* ---- batches ---- */
/* Runs the session once for each of count samples, one after the other: writes the sample's inputs, invokes,
 * reads its outputs. inputs and outputs: a DLTensor for each of the first num_inputs inputs and num_outputs
 * outputs of the plan; other inputs keep what they hold. Its extents are the plan's, except that the first is
 * count times as much; sample i is the i-th of count equal parts. Any strides, as for qplan_session_write and
 * qplan_session_read; an output's first axis has no stride of 0 unless count is 1. Outputs of a sample are
 * written before the inputs of the next are read: no output may overlap another, or an input of a later
 * sample. A network that keeps states goes on from sample to sample.
 * *num_done (may be NULL): samples whose outputs were read; it is count unless there is an error. Errors are
 * the session's (qplan_session_last_error), and QPLAN_INVALID_ARGUMENT for a batch that is not one. */
QPLAN_API qplan_status qplan_host_run_batch(qplan_session* session, uint32_t count, const DLTensor* inputs,
                                            uint32_t num_inputs, const DLTensor* outputs,
                                            uint32_t num_outputs, uint32_t* num_done, qplan_error* error);

/* ---- times of steps ---- */
/* Collects how long each step of a session's runs took, without a record of every event. */
typedef struct qplan_step_times qplan_step_times;
typedef struct qplan_step_time {
  uint32_t struct_size;
  uint32_t step;     /* its position in the plan: qplan_event.step */
  uint64_t runs;     /* 0: it has not run */
  uint64_t least_ns; /* of these runs */
  uint64_t total_ns;
  uint64_t last_ns;
} qplan_step_time;
QPLAN_API qplan_step_times* qplan_step_times_create(void);
/* Puts the collector into platform (user, step_begin, step_end, now_ns), which must then be given to one
 * session; functions that were there before are still called, with their own user, and a now_ns among them
 * stays the session's clock: times are qplan_host_now_ns. It outlives the session.
 * QPLAN_INVALID_ARGUMENT, QPLAN_INVALID_STATE when it is attached already. */
QPLAN_API qplan_status qplan_step_times_attach(qplan_step_times* times, qplan_platform* platform);
/* Not while the session runs. *count in: room in rows; out: number of steps up to the last that has run. rows
 * may be NULL to ask for it. Each row's struct_size is set by the caller. QPLAN_INVALID_ARGUMENT. */
QPLAN_API qplan_status qplan_step_times_read(const qplan_step_times* times, qplan_step_time* rows,
                                             uint32_t* count);
QPLAN_API void qplan_step_times_reset(qplan_step_times* times); /* forgets all runs */
QPLAN_API void qplan_step_times_destroy(qplan_step_times* times);

/* ---- thread pools: the caller takes part as worker 0; a pool may be shared by several threads.
 * Tasks must not call parallel_for of the pool that runs them. Neither pool takes a number of threads from
 * the environment. NULL when threads or memory run out. fork(): the child has none of the threads of pools
 * that were made before. Such a pool still works there: parallel_for runs all tasks on the calling thread,
 * with the same bytes, and destroying the pool frees what can be freed safely; a few hundred bytes stay
 * allocated. A pool that is made in the child has threads of its own. fork() must not be called inside a
 * task. Devices of NPUs do not survive fork(): open them in the process that uses them. ---- */
/* Threads that look out for the next call for about 50 microseconds after the last one, since the steps of a
 * run follow each other that fast, and then sleep on a condition variable: an idle pool takes no processor
 * time. Calls from several threads take turns. num_threads 0: as many as there are processors for this
 * process. The threads count as equal in speed (qplan_pool_create_with asks the system): struct_size ends
 * before is_uneven, so that programs that were built without that field may copy the struct. */
QPLAN_API const qplan_thread_pool* qplan_pool_create(uint32_t num_threads);
QPLAN_API void qplan_pool_destroy(const qplan_thread_pool* pool);
enum {
  QPLAN_POOL_SPEEDS_SYSTEM = 0, /* as Linux says of the processors (cpu_capacity); equal where it does not */
  QPLAN_POOL_SPEEDS_EQUAL = 1,
  QPLAN_POOL_SPEEDS_UNEVEN = 2 /* qplan_thread_pool.is_uneven */
};
typedef struct qplan_pool_config {
  uint32_t struct_size;
  uint32_t num_threads;       /* 0: num_processors, or where that is 0, too, as for qplan_pool_create */
  const uint32_t* processors; /* by Linux's numbers: thread i runs on processors[i] alone. processors[0] is
                                 meant for the calling thread, which the pool leaves as it is */
  uint32_t num_processors;    /* 0: all run where the system puts them; else num_threads */
  uint32_t speeds;            /* QPLAN_POOL_SPEEDS_* */
} qplan_pool_config;
/* The same pool, to be destroyed by the same function; on big.LITTLE, for example, on the large cores alone.
 * *pool is NULL after an error. QPLAN_INVALID_ARGUMENT, with the processor that the system refuses;
 * QPLAN_OUT_OF_MEMORY. */
QPLAN_API qplan_status qplan_pool_create_with(const qplan_pool_config* config, const qplan_thread_pool** pool,
                                              qplan_error* error);
/* OpenMP's threads, made at the first call; where they cannot be, OpenMP ends the process. How they wait
 * between steps follows OMP_WAIT_POLICY. Calls from several threads have a team each. num_threads and
 * struct_size as of qplan_pool_create. OpenMP's threads belong to the process, not to the pool, and others
 * may have made them: once a pool of this kind has been created, those in a child of fork() run their tasks
 * on the calling thread, the new ones too. */
QPLAN_API const qplan_thread_pool* qplan_openmp_pool_create(uint32_t num_threads);
QPLAN_API void qplan_openmp_pool_destroy(const qplan_thread_pool* pool);

/* ---- trace: every step as an event, in the JSON that Perfetto and chrome://tracing open ---- */
typedef struct qplan_trace qplan_trace;
QPLAN_API qplan_trace* qplan_trace_create(void);
/* Puts the trace into platform (user, step_begin, step_end, now_ns). Functions that were there before are
 * still called, with their own user; a now_ns among them stays the sessions' clock: times of the trace are
 * qplan_host_now_ns. A step that begins on one thread and ends on another, as in asynchronous sessions, is
 * shown on the second. The trace must outlive the sessions that use platform.
 * QPLAN_INVALID_ARGUMENT. */
QPLAN_API qplan_status qplan_trace_attach(qplan_trace* trace, qplan_platform* platform);
/* Writes all events so far. The trace holds copies of all names: plan and session may be gone. */
QPLAN_API qplan_status qplan_trace_write(qplan_trace* trace, const char* path, qplan_error* error);
QPLAN_API void qplan_trace_destroy(qplan_trace* trace);

/* ---- drivers of NPUs (qplan/npu_driver.h), with the hooks of a host: aligned memory, mutexes, events ----
 */
struct qplan_npu_driver;
struct qplan_device_hooks;
typedef struct qplan_host_device { /* an open device; the fields that qplan_npu_device_config wants */
  uint32_t struct_size;
  int32_t status;                        /* qplan_npu_status of the attempt to open it */
  const struct qplan_npu_driver* driver; /* NULL: the device is absent */
  uint64_t device;
  const struct qplan_device_hooks* hooks; /* that it was opened with */
  void* opaque;
} qplan_host_device;
/* The driver that a shared library exports as qplan_npu_driver_entry, checked: its major is ours, its table
 * whole. library: for qplan_host_driver_unload, when all devices of the driver are closed. QPLAN_FILE_ERROR
 * where path cannot be loaded, QPLAN_DRIVER_MISSING where it holds no driver, or one of another major. */
QPLAN_API qplan_status qplan_host_driver_load(const char* path, const struct qplan_npu_driver** driver,
                                              void** library, qplan_error* error);
QPLAN_API void qplan_host_driver_unload(void* library); /* NULL is fine */
/* Opens device `index` of a driver. options: text of the driver's own, may be NULL; platform (log and clock,
 * may be NULL) outlives the device. After an error device->driver is NULL and device->status has the driver's
 * reason, as qplan_npu_device_config wants it. QPLAN_DRIVER_MISSING where there is no such device now,
 * QPLAN_INVALID_ARGUMENT where the options are wrong, else QPLAN_DEVICE_ERROR. */
QPLAN_API qplan_status qplan_host_device_open(const struct qplan_npu_driver* driver, uint32_t index,
                                              const char* options, const qplan_platform* platform,
                                              qplan_host_device* device, qplan_error* error);
QPLAN_API void qplan_host_device_close(qplan_host_device* device); /* after the sessions that use it */

/* Nanoseconds of a steady clock: qplan_platform.now_ns. */
QPLAN_API uint64_t qplan_host_now_ns(void* user);
/* A qplan_platform.log that writes to stderr, "[warning] text"; through spdlog in builds with
 * QPLAN_WITH_SPDLOG. */
QPLAN_API void qplan_host_log(void* user, uint32_t level, const char* text);

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_HOST_H_ */
