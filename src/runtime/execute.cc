#include "format/plan_view.h"
#include "src/base/error.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/layer.h"
#include "src/runtime/cascade.h"
#include "src/runtime/session.h"

namespace qplan {
namespace {

// Elementary operations (KernelFamily::work) of one call of a kernel; between calls, a worker looks whether
// the run was cancelled. With vectors that is some milliseconds, with the reference some tenths of a second;
// steps of most networks are smaller, and pay nothing.
constexpr uint64_t kWorkPerCall = uint64_t{1} << 26;

uint64_t work_per_call(const qplan_platform& platform) {
  const bool is_smaller =
      platform.yield != nullptr && platform.yield_work != 0 && platform.yield_work < kWorkPerCall;
  return is_smaller ? platform.yield_work : kWorkPerCall;
}

// A session whose steps together have less work than a call may have divides none of them.
uint32_t step_items_per_call(const Session& session, const StepRecord& step, const void* args,
                             uint32_t work_items) {
  const uint64_t limit = work_per_call(session.platform);
  if (session.work <= limit) return work_items;
  return work_items_per_call(*step.variant, step.family->work(args), limit, work_items);
}

// Lets others run between two calls. Returns whether the run goes on.
__attribute__((noinline)) bool goes_on(const Session& session) {
  if (session.platform.yield != nullptr) session.platform.yield(session.platform.user);
  return !session.is_cancelled();
}

// Computes work items [begin, end) until the run is cancelled. It is inlined, since frames are dear on small
// devices.
__attribute__((always_inline)) inline void run_work_items(const Session& session,
                                                          const KernelVariant& variant, const void* args,
                                                          uint32_t begin, uint32_t end, uint32_t per_call,
                                                          uint8_t* scratch) {
  if (session.is_cancelled()) return;
  while (begin < end) {
    const uint32_t next = end - begin > per_call ? begin + per_call : end;
    variant.run(args, begin, next, scratch);
    begin = next;
    if (!goes_on(session)) return;
  }
}

struct TaskContext {
  const Session* session;
  const KernelVariant* variant;
  const void* args;
  uint32_t work_items;
  uint32_t per_call;
  uint32_t num_tasks;
  uint32_t bad_worker;  // 1 once a task or worker number was out of range, written atomically
};

// Task `index` has the work items [work_items * index / num_tasks, work_items * (index + 1) / num_tasks).
void run_task(void* context, uint32_t index, uint32_t worker) {
  auto* task = static_cast<TaskContext*>(context);
  const Session& session = *task->session;
  if (worker >= session.pool.num_threads || index >= task->num_tasks) {
    __atomic_store_n(&task->bad_worker, 1, __ATOMIC_RELAXED);
    return;
  }
  const auto begin = static_cast<uint32_t>(uint64_t{task->work_items} * index / task->num_tasks);
  const auto end = static_cast<uint32_t>(uint64_t{task->work_items} * (index + 1) / task->num_tasks);
  run_work_items(session, *task->variant, task->args, begin, end, task->per_call,
                 session.scratch + worker * session.scratch_stride());
}

uint32_t num_tasks(const KernelVariant& variant, uint32_t work_items, uint32_t min_units_per_task,
                   const WorkerPool& pool) {
  if (pool.num_threads < 2 || min_units_per_task == 0) return 1;
  const uint32_t worthwhile = work_items / min_units_per_task;
  const uint32_t wanted = pool.num_threads * tasks_per_worker(variant, pool.is_uneven != 0);
  return worthwhile < wanted ? worthwhile : wanted;
}

// What runs steps alone has no code for threads.
enum class Workers { kOne, kPool };

// How the work of a step that init has checked is divided and, after it at work + 1, the kernel's arguments.
// room: of its view. No function here takes more than four words: on Arm, a fifth is on the stack with what
// aligns it.
template <Workers kWorkers>
__attribute__((noinline)) void fill_step(const Session& session, uint32_t i, StepWork* work, void* room) {
  void* const args = work + 1;
  StepView view = session.step_view(i);
  view.room = room;
  const StepRecord& record = session.steps[i];
  (void)record.family->bind(view, false, args, nullptr);
  work->work_items = record.variant->work_items(args);
  work->per_call = step_items_per_call(session, record, args, work->work_items);
  work->tasks =
      kWorkers == Workers::kOne || is_ordered(record.family->id, args)
          ? 1
          : num_tasks(*record.variant, work->work_items, view.step->min_units_per_task(), session.pool);
}

// A function of its own, whose stack kernels that run alone do without.
__attribute__((noinline)) qplan_status run_tasks(Session* s, uint32_t i, const StepWork& work,
                                                 const void* args) {
  const Session& session = *s;
  const KernelVariant& variant = *session.steps[i].variant;
  TaskContext context = {&session, &variant, args, work.work_items, work.per_call, work.tasks, 0};
  session.pool.parallel_for(session.pool.user, work.tasks, run_task, &context);
  if (context.bad_worker != 0) {
    return s->error.set(QPLAN_INVALID_STATE, static_cast<int32_t>(session.step_index(i)))
           << "invoke: the thread pool gave a task or worker number out of range; it has "
           << session.pool.num_threads << " threads";
  }
  return session.is_cancelled() ? cancelled_at(s, i) : qplan_status{QPLAN_OK};
}

template <Workers kWorkers>
inline qplan_status run_filled_step(Session* session, uint32_t i, const StepWork& work) {
  const void* const args = &work + 1;
  if (kWorkers == Workers::kPool && work.tasks >= 2) return run_tasks(session, i, work, args);
  run_work_items(*session, *session->steps[i].variant, args, 0, work.work_items, work.per_call,
                 session->step_scratch(i));
  return session->is_cancelled() ? cancelled_at(session, i) : qplan_status{QPLAN_OK};
}

// The arguments are on the stack: as many bytes as their family's take. kRoom: for those of a cascade's
// layer, which workers that share the cascade's would share.
template <Workers kWorkers, size_t kBytes, size_t kRoom = 0>
__attribute__((noinline)) qplan_status run_unkept_step(Session* session, uint32_t i) {
  static_assert(sizeof(StepWork) % kArgsAlignment == 0, "arguments follow the work");
  alignas(kArgsAlignment) uint8_t memory[sizeof(StepWork) + kBytes + kRoom];
  auto* work = reinterpret_cast<StepWork*>(memory);
  fill_step<kWorkers>(*session, i, work, kRoom == 0 ? nullptr : memory + sizeof(StepWork) + kBytes);
  return run_filled_step<kWorkers>(session, i, *work);
}

template <Workers kWorkers>
qplan_status run_step(Session* session, uint32_t i) {
  if constexpr (kKeepsArgs) {
    const StepWork* work = session->steps[i].work();
    return run_filled_step<kWorkers>(session, i, *work);
  } else {
    const uint16_t kernel = session->steps[i].family->id;
    if (kernel == kKernel_chain && (kWorkers == Workers::kOne || session->pool.num_threads == 1)) {
      constexpr size_t kBytes = (sizeof(CascadeArgs) + 7) / 8 * 8;
      const format::KernelStep& step = session->plan.step(session->step_index(i));
      const format::TableFields params(step.params());
      const auto keeps = params.scalar<uint8_t>(format::CascadeParams::VT_KEEPS_ARGUMENTS);
      return (keeps | params.scalar<uint8_t>(format::CascadeParams::VT_BINDS_IN_SCRATCH)) != 0
                 ? run_unkept_step<kWorkers, kBytes>(session, i)
                 : run_unkept_step<kWorkers, kBytes, kLayerArgsBytes>(session, i);
    }
    const size_t bytes = unkept_args_bytes(kernel);
    if (bytes == kSmallArgsBytes) return run_unkept_step<kWorkers, kSmallArgsBytes>(session, i);
    if (bytes == kConvolutionArgsBytes) return run_unkept_step<kWorkers, kConvolutionArgsBytes>(session, i);
    if (bytes == kSumArgsBytes) return run_unkept_step<kWorkers, kSumArgsBytes>(session, i);
    return run_unkept_step<kWorkers, kMaxArgsBytes>(session, i);
  }
}

bool has_tensor(const flatbuffers::Vector<uint32_t>* tensors, uint32_t tensor) {
  for (uint32_t i = 0; i < format::count_of(tensors); ++i) {
    if (tensors->Get(i) == tensor) return true;
  }
  return false;
}

uint64_t bytes_of(const Session& session, const flatbuffers::Vector<uint32_t>* tensors) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < format::count_of(tensors); ++i) {
    bytes += session.plan.tensor(tensors->Get(i)).size();
  }
  return bytes;
}

// The figure that qplan_plan_work sums, for steps that init has checked.
uint64_t work_of(const Session& session, uint32_t i) {
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  const KernelFamily& family = *session.steps[i].family;
  return family.bind(session.step_view(i), false, args, nullptr) < 0 ? 0 : family.work(args);
}

}  // namespace

void keep_args([[maybe_unused]] Session* session, [[maybe_unused]] uint32_t tensor) {
  if constexpr (kKeepsArgs) {
    for (uint32_t i = 0; i < session->num_steps(); ++i) {
      if (session->plan.npu_step(session->step_index(i)) != nullptr) continue;
      const format::KernelStep& step = session->plan.step(session->step_index(i));
      if (tensor != kAllTensors && !has_tensor(step.inputs(), tensor) &&
          !has_tensor(step.outputs(), tensor)) {
        continue;
      }
      StepWork* work = session->steps[i].work();
      fill_step<Workers::kPool>(*session, i, work, nullptr);
    }
  }
}

qplan_status cancelled_at(Session* session, uint32_t i) {
  const uint32_t index = session->step_index(i);
  return session->error.set(QPLAN_CANCELLED, static_cast<int32_t>(index))
         << "the run was cancelled at step " << index << Named{session->plan.step_name(index)};
}

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
    event.work = region_work(session.plan, *npu);
    return event;
  }
  const format::KernelStep& step = session.plan.step(index);
  event.op = session.steps[i].family->name;
  event.kernel = session.steps[i].variant->name;
  event.macs = step.macs();
  event.bytes = bytes_of(session, step.inputs()) + bytes_of(session, step.outputs());
  event.work = work_of(session, i);
  return event;
}

void step_begins(const Session& session, uint32_t i) {
  const qplan_platform& platform = session.platform;
  if (platform.step_begin == nullptr) return;
  const qplan_event event = step_event(session, i);
  platform.step_begin(platform.user, &event);
}

namespace {

// Only what has succeeded has outputs.
void call_step_end(Session* session, uint32_t i, const qplan_event& event, qplan_status status) {
  const qplan_platform& platform = session->platform;
  session->ended_step = status == QPLAN_OK ? i : Session::kNoStep;
  platform.step_end(platform.user, &event, status);
  session->ended_step = Session::kNoStep;
}

}  // namespace

void step_ends(Session* session, uint32_t i, qplan_status status) {
  if (session->platform.step_end == nullptr) return;
  qplan_event event = step_event(*session, i);
  // What failed there ran there.
  event.kernel = session->steps[i].region->device->driver->name;
  call_step_end(session, i, event, status);
}

namespace {

// The event is made once, and before the step begins: making it takes time that is not the step's.
__attribute__((noinline)) qplan_status run_with_events(Session* session, uint32_t i) {
  const qplan_platform& platform = session->platform;
  const qplan_event event = step_event(*session, i);
  if (platform.step_begin != nullptr) platform.step_begin(platform.user, &event);
  const qplan_status status = run_step<Workers::kPool>(session, i);
  if (platform.step_end != nullptr) call_step_end(session, i, event, status);
  return status;
}

}  // namespace

qplan_status run_kernel_step(Session* session, uint32_t i) {
  const qplan_platform& platform = session->platform;
  if (platform.step_begin == nullptr && platform.step_end == nullptr)
    return run_step<Workers::kPool>(session, i);
  return run_with_events(session, i);
}

qplan_status run_steps(Session* session) {
  session->set_cancelled(false);
  for (uint32_t i = 0; i < session->num_steps(); ++i) {
    const qplan_status status = run_step<Workers::kOne>(session, i);
    if (status < 0) return status;
  }
  commit_states(session);
  return QPLAN_OK;
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
