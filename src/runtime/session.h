// A session: one function of a plan, bound to the caller's memories and to kernels. Everything it needs lies
// in those memories (format/memory_layout.h); it is written by init and only its tensors change afterwards.
//
//   options.cc    the caller's config, made whole; which processor the plan was packed for
//   session.cc    memory needs, init, what inputs, outputs and states share, states from run to run
//   prepare.cc    init's check of every step, choice of variants
//   execute.cc    the loop over steps
//   bindings.cc   inputs and outputs: view, bind, write, read
//   bind/         steps, their kernel families and how much they compute (bind/family.h)
//   regions.cc    steps that run on devices: their records, and when they run where (npu.h)
#ifndef QPLAN_SRC_RUNTIME_SESSION_H_
#define QPLAN_SRC_RUNTIME_SESSION_H_

#include <stddef.h>
#include <stdint.h>

#include "format/memory_layout.h"
#include "format/plan_view.h"
#include "qplan/qplan.h"
#include "src/base/error.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/npu.h"

namespace qplan {

// What is kept of the caller's qplan_thread_pool.
struct WorkerPool {
  uint32_t num_threads = 1;
  uint32_t is_uneven = 0;
  void* user = nullptr;
  void (*parallel_for)(void* user, uint32_t count, void (*task)(void* ctx, uint32_t index, uint32_t worker),
                       void* ctx) = nullptr;  // null: one thread
};

// The caller's config with defaults in place; every pointer and count in it is usable.
struct SessionOptions {
  uint32_t isa_limit = QPLAN_ISA_REFERENCE;  // resolved: the machine has it
  const format::Function* function = nullptr;
  const qplan_kernel_set* kernels = nullptr;
  qplan_platform platform = {};
  WorkerPool pool;
  const qplan_npu_client* npu = nullptr;
  const qplan_npu_device_config* devices = nullptr;  // of the caller's struct_size each
  uint32_t num_devices = 0;
  uint32_t on_npu_failure = QPLAN_NPU_FALLBACK;
  uint32_t npu_flags = 0;
  uint64_t npu_timeout_ns = 0;  // 0: by the estimate of the region
  uint64_t max_work = 0;        // 0: no limit
};

inline constexpr bool kKeepsArgs = format::keeps_args(sizeof(void*));

// How the work of a kernel's step is divided.
struct alignas(kArgsAlignment) StepWork {
  uint32_t work_items;
  uint32_t per_call;  // work items that a worker does in one call of the kernel
  uint32_t tasks;     // for the thread pool; 0 or 1: none
};
static_assert(sizeof(StepWork) == format::kKeptStepBytes, "memory_layout.h counts these");

// What is kept of a step from init on.
template <bool keeps_args>
struct KeptStep {
  // The kernel's arguments follow; of a region without meaning.
  StepWork* work() const { return work_; }
  void keep_at(StepWork* work) { work_ = work; }

 private:
  StepWork* work_;
};
template <>
struct KeptStep<false> {
  StepWork* work() const { return nullptr; }
  void keep_at(StepWork*) {}
};

struct StepRecord : KeptStep<kKeepsArgs> {
  const KernelFamily* family;  // null: a region
  union {
    const KernelVariant* variant;
    NpuRegion* region;
  };
};
static_assert(sizeof(StepRecord) == format::step_record_bytes(sizeof(void*)), "memory_layout.h counts these");

// kWaiting: a run goes on, outside of any call: a job is in flight.
enum class SessionState : uint16_t { kReady, kRunning, kWaiting, kDone };

struct Session {
  static constexpr uint32_t kLive = 0x51534553;

  uint32_t tag = kLive;  // cleared by deinit
  SessionState state = SessionState::kReady;
  uint16_t isa = QPLAN_ISA_REFERENCE;  // the highest among the chosen variants
  format::PlanView plan;
  const format::Function* function = nullptr;
  const qplan_kernel_set* kernels = nullptr;
  StepRecord* steps = nullptr;  // of the function, in order
  void** data = nullptr;        // address of each tensor of the plan; null where the function never has it
  uint32_t num_data = 0;        // entries of `data`; tensors from there on are constants
  uint8_t* scratch = nullptr;   // worker w's begins at scratch + w * scratch_stride()
  size_t main_bytes = 0;        // of memory 0, all included
  uint8_t* arenas[format::kMaxBanks] = {};  // where the activations of each bank begin; null for constants
  uint64_t memory_bytes = 0;                // of all memories
  uint64_t macs = 0;                        // of one invoke
  uint64_t work = 0;                        // of all steps, those of regions' fallback too
  static constexpr uint32_t kNoStep = UINT32_MAX;
  // On small devices, no session has room for both.
  union {
    qplan_status last_run = QPLAN_INVALID_STATE;  // of the last submit; not in kRunning
    uint32_t ended_step;  // in kRunning: the step that step_end is about, of the function, or kNoStep
  };
  qplan_platform platform = {};
  WorkerPool pool;
  NpuState* npu = nullptr;  // null where no step runs on a device
  // Written by any thread (qplan_session_cancel), so only through the two functions below; 32 bits, which
  // every device loads and stores at once. Cleared where a run begins.
  uint32_t cancel_request = 0;
  Error error;

  void set_cancelled(bool is_cancelled) {
    __atomic_store_n(&cancel_request, is_cancelled ? 1 : 0, __ATOMIC_RELAXED);
  }
  bool is_cancelled() const { return __atomic_load_n(&cancel_request, __ATOMIC_RELAXED) != 0; }

  void begin_running() {
    state = SessionState::kRunning;
    ended_step = kNoStep;
  }
  bool is_running() const { return state == SessionState::kRunning || state == SessionState::kWaiting; }
  size_t scratch_stride() const { return static_cast<size_t>(function->scratch_per_worker()); }
  uint32_t num_steps() const { return function->num_steps(); }
  // Position in the plan of the function's step i.
  uint32_t step_index(uint32_t i) const { return function->first_step() + i; }
  StepView step_view(uint32_t i) const { return step_view(plan.step(step_index(i))); }
  StepView step_view(const format::KernelStep& step) const {
    StepView view = {&plan.plan(), &step, data};
    view.file = plan.bytes();
    view.num_data = num_data;
    view.kernels = kernels;
    return view;
  }
  // Null for what has not been written yet.
  void* address(uint32_t tensor) const {
    return tensor < num_data ? data[tensor]
                             : const_cast<void*>(plan.constant_data(tensor));  // NOLINT: not written
  }
  // The scratch of the only worker of step i, and how much there is.
  bool has_scratch_in_arena() const {
    return !kKeepsArgs && pool.num_threads == 1 && format::count_of(function->scratch_sizes()) > 0;
  }
  uint8_t* step_scratch(uint32_t i) const {
    return has_scratch_in_arena() ? arenas[plan.main_bank()] + function->scratch_offsets()->Get(i) : scratch;
  }
  size_t step_scratch_bytes(uint32_t i) const {
    return has_scratch_in_arena() ? function->scratch_sizes()->Get(i) : scratch_stride();
  }
  // Where the memory planner put a tensor; binding may have moved it since.
  void* planned_address(uint32_t tensor) const;
};
static_assert(sizeof(Session) <= format::session_bytes(sizeof(void*)), "memory_layout.h promises this much");
static_assert(alignof(Session) <= format::kArenaAlignment, "memory 0 is aligned to it");

// ---- options.cc ----
[[nodiscard]] qplan_status read_options(const format::PlanView& plan, const qplan_session_config* config,
                                        bool need_kernels, SessionOptions* options, Error* error);
// Hands text to the platform's log if it asks for that level.
void log_text(const qplan_platform& platform, uint32_t level, const char* text);

// ---- session.cc ----
[[nodiscard]] qplan_status memory_needs(const format::PlanView& plan, const qplan_session_config* config,
                                        qplan_memory_need* needs, uint32_t* count, Error* error);
[[nodiscard]] qplan_status session_init(const format::PlanView& plan, const qplan_session_config* config,
                                        const qplan_memory* memories, uint32_t num_memories,
                                        Session** session, Error* error);
// The same of the function "main" of a plan without steps of devices, for one thread and without a platform:
// what calls only this links neither regions nor logs.
[[nodiscard]] qplan_status session_init_for_cpu(const format::PlanView& plan, const qplan_kernel_set* kernels,
                                                const qplan_memory* memories, uint32_t num_memories,
                                                Session** session, Error* error);
// The same in two memories: what the session keeps from run to run, states included, and an arena that other
// sessions may use between runs (format/memory_layout.h, SharedLayout). Who uses it when is the caller's
// affair.
[[nodiscard]] qplan_status session_init_in_arena(const format::PlanView& plan,
                                                 const qplan_kernel_set* kernels, const qplan_memory& own,
                                                 const qplan_memory& arena, Session** session, Error* error);

// Constants into the session's memory, where the plan says so, and their addresses there: once, after init
// has checked every step against the plan's own bytes. The plan's copies have been verified
// (PlanView::open_copies), and no arguments are kept yet (keep_args).
void copy_constants(Session* session);

// What the function keeps between runs: to its initial value; to what the run that ended well has written.
void reset_states(Session* session);
void commit_states(Session* session);

// Whether the state's next value is written over its value.
bool is_state_in_place(const format::PlanView& plan, const format::State& state);
// What init asks a function for again and again, read from it once.
struct FunctionTensors {
  explicit FunctionTensors(const format::Function& function)
      : inputs(function.inputs()),
        outputs(function.outputs()),
        states(function.states()),
        overwrites_inputs(function.overwrites_inputs()) {}

  const flatbuffers::Vector<uint32_t>*inputs, *outputs;
  const flatbuffers::Vector<flatbuffers::Offset<format::State>>* states;
  bool overwrites_inputs;
};
// Whether the function's inputs, outputs and states share no bytes but those that they may.
[[nodiscard]] bool check_function_ranges(const format::PlanView& plan, const FunctionTensors& function,
                                         Error* error);

// ---- prepare.cc ----
// Checks every step of the function, fills steps and data. What it accepts, execute() runs blindly.
[[nodiscard]] qplan_status prepare(const SessionOptions& options, Session* session, Error* error);
// The same of a function without regions.
[[nodiscard]] qplan_status prepare_for_cpu(const SessionOptions& options, Session* session, Error* error);

// ---- execute.cc ----
// Where arguments are kept: fills those of all steps of kernels, or of those that have the tensor.
inline constexpr uint32_t kAllTensors = ~0u;
void keep_args(Session* session, uint32_t tensor);
// All steps of a function without devices, without events; and what is kept for the next run.
[[nodiscard]] qplan_status run_steps(Session* session);
// Begins a run, and goes on with it after QPLAN_PENDING.
[[nodiscard]] qplan_status begin_run(Session* session, NpuWait* wait);
[[nodiscard]] qplan_status continue_run(Session* session, NpuWait* wait);
// Step i, a kernel's, with its events.
[[nodiscard]] qplan_status run_kernel_step(Session* session, uint32_t i);
// The error of a run that was cancelled at step i.
qplan_status cancelled_at(Session* session, uint32_t i);
// The events of step i, a region's on its device.
void step_begins(const Session& session, uint32_t i);
void step_ends(Session* session, uint32_t i, qplan_status status);
// What step i of the function is, for events.
qplan_event step_event(const Session& session, uint32_t i);

// ---- regions.cc ----
// Makes the records, all of regions without a device. memory: where memory_layout puts them.
void place_regions(const SessionOptions& options, uint8_t* memory, Session* session);
// After the client's init: an error where a region has nowhere to run, a line for the log for each of the
// others.
[[nodiscard]] qplan_status settle_regions(Session* session, Error* error);
// The function's steps from npu.next_step on.
[[nodiscard]] qplan_status run_regions(Session* session, NpuWait* wait);
// Why it is not on a device; "" where it is.
const char* region_reason(const Session& session, const NpuRegion& region);
// Why a device takes no jobs.
const char* device_reason(const Session& session, const NpuDevice& device);
bool may_run_on_cpu(const Session& session, const NpuRegion& region);

// ---- options.cc: the plan's processor ----
// The options of the CPU that the plan was packed for, "" where it does not say.
const char* target_options(const format::PlanView& plan);
// Whether the plan says that it is for another processor architecture than this build.
bool is_for_other_arch(const format::PlanView& plan);
// A line for the log where it is.
void warn_of_other_arch(const Session& session);

// ---- bindings.cc ----
// All record their error in the session.
[[nodiscard]] qplan_status view_tensor(Session* session, int direction, uint32_t index, DLTensor* view);
[[nodiscard]] qplan_status bind_tensor(Session* session, int direction, uint32_t index,
                                       const DLTensor* tensor);
[[nodiscard]] qplan_status write_input(Session* session, uint32_t index, const DLTensor* tensor);
[[nodiscard]] qplan_status read_output(Session* session, uint32_t index, const DLTensor* tensor);

}  // namespace qplan

struct qplan_session final : qplan::Session {};
static_assert(sizeof(qplan_session) == sizeof(qplan::Session), "adds nothing");

#endif  // QPLAN_SRC_RUNTIME_SESSION_H_
