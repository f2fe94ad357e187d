#include "src/runtime/session.h"

namespace qplan {
namespace {

struct TaskContext {
  const KernelVariant* variant;
  const void* args;
  uint8_t* scratch;
  size_t scratch_stride;
  uint32_t units;
  uint32_t num_tasks;
  uint32_t num_workers;
  uint32_t bad_worker;  // 1 once a task or worker number was out of range, written atomically
};

// Task `index` has the units [units * index / num_tasks, units * (index + 1) / num_tasks).
void run_task(void* context, uint32_t index, uint32_t worker) {
  auto* task = static_cast<TaskContext*>(context);
  if (worker >= task->num_workers || index >= task->num_tasks) {
    __atomic_store_n(&task->bad_worker, 1, __ATOMIC_RELAXED);
    return;
  }
  const auto begin = static_cast<uint32_t>(uint64_t{task->units} * index / task->num_tasks);
  const auto end = static_cast<uint32_t>(uint64_t{task->units} * (index + 1) / task->num_tasks);
  task->variant->run(task->args, begin, end, task->scratch + worker * task->scratch_stride);
}

uint32_t num_tasks(const KernelVariant& variant, uint32_t units, uint32_t min_units_per_task,
                   uint32_t num_workers) {
  if (num_workers < 2 || min_units_per_task == 0) return 1;
  const uint32_t worthwhile = units / min_units_per_task;
  const uint32_t wanted = num_workers * tasks_per_worker(variant);
  return worthwhile < wanted ? worthwhile : wanted;
}

qplan_status run_step(const Session& session, uint32_t i, Error* error) {
  const StepView view = session.step_view(i);
  const StepRecord& record = session.steps[i];
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  const qplan_status bound = record.family->bind(view, false, args, error);
  if (bound < 0) return bound;
  const KernelVariant& variant = *record.variant;
  const uint32_t units = variant.units(args);
  const uint32_t tasks = num_tasks(variant, units, view.step->min_units_per_task(), session.pool.num_threads);
  if (tasks < 2) {
    variant.run(args, 0, units, session.scratch);
    return QPLAN_OK;
  }
  TaskContext context = {&variant, args,  session.scratch,          session.scratch_stride,
                         units,    tasks, session.pool.num_threads, 0};
  session.pool.parallel_for(session.pool.user, tasks, run_task, &context);
  if (context.bad_worker != 0) {
    return error->set(QPLAN_INVALID_STATE, static_cast<int32_t>(session.step_index(i)))
           << "invoke: the thread pool gave a task or worker number out of range; it has "
           << session.pool.num_threads << " threads";
  }
  return QPLAN_OK;
}

uint64_t bytes_of(const Session& session, const flatbuffers::Vector<uint32_t>* tensors) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < format::count_of(tensors); ++i) {
    bytes += session.plan.tensor(tensors->Get(i)).size();
  }
  return bytes;
}

}  // namespace

qplan_event step_event(const Session& session, uint32_t i) {
  const uint32_t index = session.step_index(i);
  const format::NpuStep* npu = session.plan.npu_step(index);
  qplan_event event;
  event.struct_size = sizeof(event);
  event.step = index;
  event.name = session.plan.step_name(index);
  if (npu != nullptr) {
    const NpuRegion& region = *session.steps[i].region;
    event.op = "npu";
    event.kernel = region.is_on_device() ? region.device->driver->name : "cpu";
    event.macs = npu->macs();
    event.bytes = bytes_of(session, npu->inputs()) + bytes_of(session, npu->outputs());
    return event;
  }
  const format::KernelStep& step = session.plan.step(index);
  event.op = session.steps[i].family->name;
  event.kernel = session.steps[i].variant->name;
  event.macs = step.macs();
  event.bytes = bytes_of(session, step.inputs()) + bytes_of(session, step.outputs());
  return event;
}

void step_begins(const Session& session, uint32_t i) {
  const qplan_platform& platform = session.platform;
  if (platform.step_begin == nullptr) return;
  const qplan_event event = step_event(session, i);
  platform.step_begin(platform.user, &event);
}

void step_ends(const Session& session, uint32_t i, qplan_status status) {
  const qplan_platform& platform = session.platform;
  if (platform.step_end == nullptr) return;
  qplan_event event = step_event(session, i);
  // What failed there ran there.
  if (session.steps[i].family == nullptr) event.kernel = session.steps[i].region->device->driver->name;
  platform.step_end(platform.user, &event, status);
}

qplan_status run_kernel_step(Session* session, uint32_t i) {
  step_begins(*session, i);
  const qplan_status status = run_step(*session, i, &session->error);
  step_ends(*session, i, status);
  return status < 0 ? status : qplan_status{QPLAN_OK};
}

qplan_status begin_run(Session* session, NpuWait* wait) {
  if (session->npu != nullptr) {
    session->npu->next_step = 0;
    return run_regions(session, wait);
  }
  for (uint32_t i = 0; i < session->num_steps(); ++i) {
    const qplan_status status = run_kernel_step(session, i);
    if (status < 0) return status;
  }
  return QPLAN_OK;
}

qplan_status continue_run(Session* session, NpuWait* wait) { return run_regions(session, wait); }

}  // namespace qplan
