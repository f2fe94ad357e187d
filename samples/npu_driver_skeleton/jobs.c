/* The queue, and the thread that plays the hardware. On a real device submit writes registers, and the code
 * of engine_main after `run_blob` is the interrupt's work. */
#include <stdlib.h>

#include "skeleton.h"

static struct job* find_job(struct device* device, uint64_t handle) {
  struct job* job = device->jobs;
  while (job != NULL && job->handle != handle) job = job->next;
  return job;
}

void free_job(struct job* job) {
  free(job->after);
  free(job->buffers);
  free(job->slots);
  free(job);
}

/* ---- submit ---- */
static int overlap(const uint8_t* a, uint64_t a_bytes, const uint8_t* b, uint64_t b_bytes) {
  return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

static int is_written(uint32_t usage) {
  return usage == QPLAN_NPU_USE_OUTPUT || usage == QPLAN_NPU_USE_SCRATCH;
}

/* Nothing that is written overlaps anything else. */
static const char* check_overlaps(const struct program* program, void* const* slots) {
  const struct region* regions = program->regions;
  uint32_t i, k;
  for (i = 0; i < program->num_regions; ++i) {
    for (k = 0; is_written(regions[i].usage) && k < program->num_regions; ++k) {
      if (k != i &&
          overlap((const uint8_t*)slots[i], regions[i].bytes, (const uint8_t*)slots[k], regions[k].bytes))
        return "submit: a slot that is written overlaps another one";
    }
  }
  return NULL;
}

static const char* bind_slots(struct device* device, const qplan_npu_submit* submit, struct job* job) {
  const uint32_t count = job->program->num_regions;
  uint32_t i;
  for (i = 0; i < count; ++i) job->slots[i] = job->program->regions[i].memory;
  for (i = 0; i < submit->num_binds; ++i) {
    const qplan_npu_bind* bind = &submit->binds[i];
    struct buffer* buffer = find_buffer(device, bind->buffer);
    const struct region* region;
    if (bind->slot >= count || job->slots[bind->slot] != NULL)
      return "submit: a slot is unknown, bound twice, or the program's own";
    if (buffer == NULL) return "submit: a buffer is unknown";
    region = &job->program->regions[bind->slot];
    if (bind->offset > buffer->layout.bytes || bind->bytes > buffer->layout.bytes - bind->offset ||
        bind->bytes < region->bytes) {
      return "submit: a bind lies outside its buffer, or is smaller than its slot";
    }
    if ((buffer->layout.device_address + bind->offset) % region->alignment != 0)
      return "submit: a bind is not aligned as its slot wants";
    if (is_written(region->usage) && (buffer->usage & (QPLAN_NPU_USE_OUTPUT | QPLAN_NPU_USE_SCRATCH)) == 0)
      return "submit: a slot that is written is bound to a buffer for neither outputs nor scratch";
    job->slots[bind->slot] = buffer->memory + bind->offset;
    job->buffers[job->num_buffers++] = buffer;
  }
  for (i = 0; i < count; ++i) {
    if (job->slots[i] == NULL) return "submit: a slot is not bound";
  }
  return check_overlaps(job->program, job->slots);
}

/* A job of the driver's own making; NULL: no memory. */
static struct job* new_job(const qplan_npu_submit* submit, uint32_t num_slots) {
  struct job* job = (struct job*)calloc(1, sizeof(*job));
  if (job == NULL) return NULL;
  job->after = (uint64_t*)calloc((size_t)submit->num_after + 1, sizeof(*job->after));
  job->buffers = (struct buffer**)calloc((size_t)submit->num_binds + 1, sizeof(*job->buffers));
  job->slots = (void**)calloc((size_t)num_slots + 1, sizeof(*job->slots));
  if (job->after == NULL || job->buffers == NULL || job->slots == NULL) {
    free_job(job);
    return NULL;
  }
  job->priority = submit->priority;
  job->done = submit->done;
  job->user = submit->user;
  return job;
}

/* With the lock held. *result: the job, ready to be queued. */
static qplan_npu_status make_job(struct device* device, const qplan_npu_submit* submit, struct job** result,
                                 qplan_npu_reason* why) {
  struct program* program = find_program(device, submit->program);
  struct job* job;
  const char* error;
  uint32_t i, pending = 0;
  if (program == NULL) return refuse(why, QPLAN_NPU_E_ARGUMENT, 0, 0, "submit: the program is unknown");
  if (device->power == 0) return QPLAN_NPU_E_OFF;
  for (job = device->jobs; job != NULL; job = job->next) pending += job->state != JOB_COMPLETE;
  if (pending >= SKELETON_QUEUE) return QPLAN_NPU_E_BUSY;
  for (i = 0; i < submit->num_after; ++i) {
    if (submit->after[i] == 0 || submit->after[i] >= device->next_handle)
      return refuse(why, QPLAN_NPU_E_ARGUMENT, 0, 0, "submit: a job to come after is unknown");
  }
  if (submit->num_binds > program->num_regions)
    return refuse(why, QPLAN_NPU_E_ARGUMENT, program->num_regions, submit->num_binds,
                  "submit: more binds than slots");
  job = new_job(submit, program->num_regions);
  if (job == NULL) return QPLAN_NPU_E_MEMORY;
  job->program = program;
  error = bind_slots(device, submit, job);
  if (error != NULL) {
    free_job(job);
    return refuse(why, QPLAN_NPU_E_ARGUMENT, 0, 0, error);
  }
  /* Jobs that wait has reported are over. */
  for (i = 0; i < submit->num_after; ++i) {
    if (find_job(device, submit->after[i]) != NULL) job->after[job->num_after++] = submit->after[i];
  }
  *result = job;
  return QPLAN_NPU_OK;
}

qplan_npu_status skeleton_submit(qplan_npu_device handle, const qplan_npu_submit* from, qplan_npu_job* result,
                                 qplan_npu_reason* why) {
  qplan_npu_submit submit;
  qplan_npu_status status;
  struct device* device;
  struct job *job = NULL, **end;
  uint32_t i;
  if (!copy_in(&submit, sizeof(submit), from) || result == NULL ||
      (submit.num_binds > 0 && submit.binds == NULL) || (submit.num_after > 0 && submit.after == NULL)) {
    return QPLAN_NPU_E_ARGUMENT;
  }
  lock();
  device = find_device(handle);
  status = device == NULL ? QPLAN_NPU_E_ARGUMENT : make_job(device, &submit, &job, why);
  if (status == QPLAN_NPU_OK) {
    ++job->program->users;
    for (i = 0; i < job->num_buffers; ++i) ++job->buffers[i]->users;
    job->submitted_ns = now_ns(device);
    job->handle = *result = device->next_handle++;
    for (end = &device->jobs; *end != NULL; end = &(*end)->next) continue;
    *end = job;
    changed();
  }
  unlock();
  return status;
}

/* ---- the engine ---- */
static struct job* next_job(struct device* device) {
  struct job *best = NULL, *job;
  for (job = device->jobs; job != NULL; job = job->next) {
    int may_start = job->state == JOB_QUEUED;
    uint32_t i;
    if (may_start && job->stop != 0) return job; /* ends without having run */
    for (i = 0; i < job->num_after && may_start; ++i) {
      const struct job* before = find_job(device, job->after[i]);
      may_start = before == NULL || before->state == JOB_COMPLETE;
    }
    if (may_start && (best == NULL || job->priority > best->priority)) best = job;
  }
  return best;
}

static const char* text_of(qplan_npu_status status) {
  return status == QPLAN_NPU_OK        ? ""
         : status == QPLAN_NPU_E_RESET ? "skeleton: the device was reset"
                                       : "skeleton: cancelled";
}

/* With the lock held. */
static void complete(struct device* device, struct job* job) {
  const qplan_npu_report* report = &job->report;
  uint32_t i;
  --job->program->users;
  for (i = 0; i < job->num_buffers; ++i) --job->buffers[i]->users;
  ++device->counters[QPLAN_NPU_COUNTER_JOBS];
  if (report->status != QPLAN_NPU_OK) ++device->counters[QPLAN_NPU_COUNTER_FAILED_JOBS];
  device->counters[QPLAN_NPU_COUNTER_CYCLES] += report->cycles;
  device->counters[QPLAN_NPU_COUNTER_BYTES_READ] += report->bytes_read;
  device->counters[QPLAN_NPU_COUNTER_BYTES_WRITTEN] += report->bytes_written;
  device->counters[QPLAN_NPU_COUNTER_MACS] += report->macs;
  job->state = JOB_COMPLETE;
  changed();
}

void* engine_main(void* argument) {
  struct device* device = (struct device*)argument;
  lock();
  for (;;) {
    struct job* job = next_job(device);
    uint64_t begin_ns;
    if (job == NULL) {
      if (device->is_closing) break;
      wait_for_change(UINT64_MAX);
      continue;
    }
    job->state = JOB_RUNS;
    unlock();
    begin_ns = now_ns(device);
    /* Without the lock: nobody unloads a program or releases a buffer that a job uses. */
    if (__atomic_load_n(&job->stop, __ATOMIC_RELAXED) == 0)
      run_blob(job->program, job->slots, &job->stop, &job->report);
    job->report.status = __atomic_load_n(&job->stop, __ATOMIC_RELAXED);
    job->report.fault_instruction = QPLAN_NPU_NO_INSTRUCTION;
    job->report.queued_ns = begin_ns - job->submitted_ns;
    job->report.run_ns = now_ns(device) - begin_ns;
    strcpy(job->report.text, text_of(job->report.status));
    if (job->done != NULL) job->done(job->user, job->handle, job->report.status);
    lock();
    complete(device, job);
  }
  unlock();
  return NULL;
}

/* ---- how jobs end ---- */
/* With the lock held, which is let go meanwhile: all that are there end with status. */
void stop_all(struct device* device, qplan_npu_status status) {
  const uint64_t last = device->next_handle;
  struct job* job;
  int pending;
  for (job = device->jobs; job != NULL; job = job->next) {
    if (job->state != JOB_COMPLETE) __atomic_store_n(&job->stop, status, __ATOMIC_RELAXED);
  }
  changed();
  do {
    pending = 0;
    for (job = device->jobs; job != NULL; job = job->next) {
      if (job->handle < last && job->state != JOB_COMPLETE) pending = 1;
    }
    if (pending) wait_for_change(UINT64_MAX);
  } while (pending);
}

qplan_npu_status skeleton_reset(qplan_npu_device handle) {
  struct device* device;
  lock();
  device = find_device(handle);
  if (device != NULL) {
    ++device->counters[QPLAN_NPU_COUNTER_RESETS];
    ++device->num_resets;
    stop_all(device, QPLAN_NPU_E_RESET);
    --device->num_resets;
    changed();
  }
  unlock();
  return device == NULL ? QPLAN_NPU_E_ARGUMENT : QPLAN_NPU_OK;
}

qplan_npu_status skeleton_cancel(qplan_npu_device handle, qplan_npu_job which) {
  struct device* device;
  struct job* job;
  lock();
  device = find_device(handle);
  job = device == NULL ? NULL : find_job(device, which);
  if (job != NULL && job->state != JOB_COMPLETE && job->stop == 0) {
    __atomic_store_n(&job->stop, QPLAN_NPU_E_CANCELLED, __ATOMIC_RELAXED);
    changed();
  }
  unlock();
  return job == NULL ? QPLAN_NPU_E_ARGUMENT : QPLAN_NPU_OK;
}

qplan_npu_status skeleton_wait(qplan_npu_device handle, qplan_npu_job which, uint64_t timeout_ns,
                               qplan_npu_report* report) {
  const uint64_t begin = now_ns(NULL);
  const uint64_t deadline =
      timeout_ns > UINT64_MAX - begin || timeout_ns > INT64_MAX / 4 ? UINT64_MAX : begin + timeout_ns;
  qplan_npu_status status = QPLAN_NPU_PENDING;
  if (report != NULL && !can_fill(report)) return QPLAN_NPU_E_ARGUMENT;
  lock();
  while (status == QPLAN_NPU_PENDING) {
    struct device* device = find_device(handle); /* again each time: it may have been closed */
    struct job** at = device == NULL ? NULL : &device->jobs;
    while (at != NULL && *at != NULL && (*at)->handle != which) at = &(*at)->next;
    if (at == NULL || *at == NULL) {
      status = QPLAN_NPU_E_ARGUMENT;
    } else if ((*at)->state == JOB_COMPLETE) {
      struct job* job = *at;
      status = job->report.status;
      if (report != NULL) copy_out(report, &job->report, sizeof(job->report));
      *at = job->next;
      free_job(job);
    } else if (timeout_ns == 0 || now_ns(NULL) >= deadline) {
      break;
    } else {
      wait_for_change(deadline);
    }
  }
  unlock();
  return status;
}
