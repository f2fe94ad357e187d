/* Devices, the rules of struct sizes, the lock, and the table of functions. */
#define _POSIX_C_SOURCE 200809L /* monotonic clock */
#include <stdlib.h>
#include <time.h>

#include "skeleton.h"

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t the_change;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct device* devices;
static uint64_t next_device = 1; /* numbers are not used again: a closed device is known as such */

static void init_once(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&the_change, &attributes);
  pthread_condattr_destroy(&attributes);
}

void lock(void) {
  pthread_once(&once, init_once);
  pthread_mutex_lock(&the_lock);
}
void unlock(void) { pthread_mutex_unlock(&the_lock); }
void changed(void) { pthread_cond_broadcast(&the_change); }

void wait_for_change(uint64_t deadline_ns) {
  struct timespec until;
  if (deadline_ns == UINT64_MAX) {
    pthread_cond_wait(&the_change, &the_lock);
    return;
  }
  until.tv_sec = (time_t)(deadline_ns / 1000000000u);
  until.tv_nsec = (long)(deadline_ns % 1000000000u);
  pthread_cond_timedwait(&the_change, &the_lock, &until);
}

uint64_t now_ns(const struct device* device) {
  struct timespec now;
  if (device != NULL && device->platform != NULL && device->platform->now_ns != NULL)
    return device->platform->now_ns(device->platform->user);
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct device* find_device(uint64_t handle) {
  struct device* device = devices;
  while (device != NULL && device->handle != handle) device = device->next;
  return device;
}

/* Memory that the device uses comes only from the hooks, if there are some. */
void* device_alloc(struct device* device, uint64_t bytes, uint32_t memory_class) {
  void* memory = NULL;
  if (memory_class != QPLAN_NPU_MEMORY_CLASS_ANY && device->hooks.alloc_class != NULL)
    return device->hooks.alloc_class(device->hooks.user, (size_t)bytes, SKELETON_ALIGNMENT, memory_class);
  if (device->hooks.alloc != NULL)
    return device->hooks.alloc(device->hooks.user, (size_t)bytes, SKELETON_ALIGNMENT);
  return posix_memalign(&memory, SKELETON_ALIGNMENT, (size_t)bytes) == 0 ? memory : NULL;
}
void device_free(struct device* device, void* memory) {
  if (memory == NULL) return;
  if (device->hooks.alloc == NULL) {
    free(memory);
  } else if (device->hooks.free != NULL) {
    device->hooks.free(device->hooks.user, memory);
  }
}

/* Every struct begins with its size as its maker knows it. Fields beyond it are zero when read, and are not
 * written. */
int copy_in(void* to, uint32_t to_bytes, const void* from) {
  uint32_t size;
  memset(to, 0, to_bytes);
  if (from == NULL) return 0;
  memcpy(&size, from, sizeof(size));
  if (size < sizeof(size)) return 0;
  memcpy(to, from, size < to_bytes ? size : to_bytes);
  return 1;
}
int can_fill(const void* to) {
  uint32_t size;
  if (to == NULL) return 0;
  memcpy(&size, to, sizeof(size));
  return size >= sizeof(size);
}
void copy_out(void* to, const void* from, uint32_t from_bytes) {
  uint32_t size;
  memcpy(&size, to, sizeof(size));
  if (size > from_bytes) size = from_bytes;
  if (size > sizeof(size))
    memcpy((char*)to + sizeof(size), (const char*)from + sizeof(size), size - sizeof(size));
}

qplan_npu_status refuse(qplan_npu_reason* why, qplan_npu_status status, int64_t limit, int64_t actual,
                        const char* text) {
  return qplan_oplist_refuse(why, status, 0, QPLAN_OPLIST_NONE, limit, actual, text);
}

static qplan_npu_status enumerate(const qplan_device_hooks* hooks, uint32_t* count) {
  (void)hooks;
  if (count == NULL) return QPLAN_NPU_E_ARGUMENT;
  *count = 1;
  return QPLAN_NPU_OK;
}

static qplan_npu_status open_device(const qplan_device_hooks* hooks, uint32_t index, const char* options,
                                    qplan_npu_device* handle, qplan_npu_reason* why) {
  struct device* device;
  uint32_t max_window;
  if (handle == NULL || (hooks != NULL && !can_fill(hooks))) return QPLAN_NPU_E_ARGUMENT;
  if (index > 0) return refuse(why, QPLAN_NPU_E_ABSENT, 1, index, "skeleton: there is one device, 0");
  if (read_options(options, &max_window, why) != QPLAN_NPU_OK) return QPLAN_NPU_E_ARGUMENT;
  device = (struct device*)calloc(1, sizeof(*device));
  if (device == NULL) return QPLAN_NPU_E_MEMORY;
  if (hooks != NULL) (void)copy_in(&device->hooks, sizeof(device->hooks), hooks);
  /* An older platform ends before the clock; this driver writes no log. */
  if (device->hooks.platform != NULL && device->hooks.platform->struct_size >= sizeof(qplan_platform))
    device->platform = device->hooks.platform;
  device->max_window = max_window;
  device->next_handle = 1;
  device->power = 1;
  lock();
  if (pthread_create(&device->engine, NULL, engine_main, device) != 0) {
    unlock();
    free(device);
    return refuse(why, QPLAN_NPU_E_MEMORY, 0, 0, "skeleton: no thread to compute with");
  }
  device->handle = *handle = next_device++;
  device->next = devices;
  devices = device;
  unlock();
  return QPLAN_NPU_OK;
}

static qplan_npu_status close_device(qplan_npu_device handle) {
  struct device **at = &devices, *device;
  lock();
  while (*at != NULL && (*at)->handle != handle) at = &(*at)->next;
  device = *at;
  if (device == NULL) {
    unlock();
    return QPLAN_NPU_E_ARGUMENT;
  }
  *at = device->next; /* from here on the handle is unknown */
  stop_all(device, QPLAN_NPU_E_CANCELLED);
  while (device->num_resets > 0) wait_for_change(UINT64_MAX);
  device->is_closing = 1;
  changed();
  unlock();
  pthread_join(device->engine, NULL);
  while (device->jobs != NULL) {
    struct job* job = device->jobs;
    device->jobs = job->next;
    free_job(job);
  }
  while (device->programs != NULL) {
    struct program* program = device->programs;
    device->programs = program->next;
    free_program(device, program);
  }
  while (device->buffers != NULL) {
    struct buffer* buffer = device->buffers;
    device->buffers = buffer->next;
    free_buffer(device, buffer);
  }
  free(device);
  return QPLAN_NPU_OK;
}

/* 0: there is no such device. */
static int find_window(uint64_t handle, uint32_t* max_window) {
  const struct device* device;
  lock();
  device = find_device(handle);
  if (device != NULL) *max_window = device->max_window;
  unlock();
  return device != NULL;
}

static qplan_npu_status capabilities(qplan_npu_device handle, qplan_npu_capabilities* to) {
  qplan_npu_capabilities all;
  const struct device* device;
  uint32_t max_window;
  if (!can_fill(to) || !find_window(handle, &max_window)) return QPLAN_NPU_E_ARGUMENT;
  fill_capabilities(max_window, &all);
  lock();
  device = find_device(handle);
  if (device != NULL) all.memory_classes = memory_classes(device);
  unlock();
  copy_out(to, &all, sizeof(all));
  return QPLAN_NPU_OK;
}

qplan_npu_status skeleton_supported(qplan_npu_device handle, const qplan_npu_op* op,
                                    qplan_npu_reason* reasons, uint32_t* num_reasons) {
  uint32_t max_window = SKELETON_MAX_WINDOW;
  if (handle != 0 && !find_window(handle, &max_window)) return QPLAN_NPU_E_ARGUMENT;
  return check_op(max_window, op, reasons, num_reasons);
}

static qplan_npu_status power(qplan_npu_device handle, int on) {
  struct device* device;
  struct job* job;
  qplan_npu_status status = QPLAN_NPU_OK;
  lock();
  device = find_device(handle);
  if (device == NULL || (!on && device->power == 0)) status = QPLAN_NPU_E_ARGUMENT;
  if (status == QPLAN_NPU_OK && !on && device->power == 1) {
    for (job = device->jobs; job != NULL; job = job->next) {
      if (job->state != JOB_COMPLETE) status = QPLAN_NPU_E_BUSY;
    }
  }
  if (status == QPLAN_NPU_OK && device->hooks.power != NULL && device->power == (on ? 0 : 1) &&
      device->hooks.power(device->hooks.user, on) != 0) {
    status = QPLAN_NPU_E_OFF;
  }
  if (status == QPLAN_NPU_OK) device->power += on ? 1 : -1;
  unlock();
  return status;
}

static qplan_npu_status counters(qplan_npu_device handle, const uint32_t* ids, uint64_t* values,
                                 uint32_t count) {
  struct device* device;
  qplan_npu_status status = QPLAN_NPU_OK;
  uint32_t i;
  if (count > 0 && (ids == NULL || values == NULL)) return QPLAN_NPU_E_ARGUMENT;
  lock();
  device = find_device(handle);
  if (device == NULL) status = QPLAN_NPU_E_ARGUMENT;
  for (i = 0; device != NULL && i < count; ++i) {
    values[i] = 0;
    if (ids[i] <= QPLAN_NPU_COUNTER_BUFFER_BYTES) {
      values[i] = device->counters[ids[i]];
    } else {
      status = QPLAN_NPU_E_UNSUPPORTED;
    }
  }
  unlock();
  return status;
}

static const qplan_npu_driver kDriver = {
    .struct_size = sizeof(qplan_npu_driver),
    .abi = QPLAN_NPU_ABI,
    .name = "skeleton",
    .enumerate = enumerate,
    .open = open_device,
    .close = close_device,
    .capabilities = capabilities,
    .supported = skeleton_supported,
    .power = power,
    .reset = skeleton_reset,
    .requirements = skeleton_requirements,
    .alloc = skeleton_alloc,
    .import_memory = skeleton_import,
    .release = skeleton_release,
    .layout = skeleton_layout,
    .map = skeleton_map,
    .unmap = skeleton_unmap,
    .flush = skeleton_flush,
    .invalidate = skeleton_flush,
    .load = skeleton_load,
    .program_info = skeleton_program_info,
    .region_info = skeleton_region_info,
    .unload = skeleton_unload,
    .submit = skeleton_submit,
    .wait = skeleton_wait,
    .cancel = skeleton_cancel,
    .counters = counters,
};

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const qplan_npu_driver*
qplan_npu_driver_entry(uint32_t abi);
const qplan_npu_driver* qplan_npu_driver_entry(uint32_t abi) {
  return abi >> 16 == QPLAN_NPU_ABI >> 16 ? &kDriver : NULL;
}
