// Sessions in the caller's memories: their needs, init, and the bytes that inputs, outputs and states may
// share and that are kept from run to run.
#include "src/runtime/session.h"

#include <string.h>

#include <new>

#include "kernels/cpu.h"
#include "src/base/checked.h"
#include "src/base/error.h"

namespace qplan {
namespace {

using format::PlanView;
using format::State;
using format::Tensor;

// place_regions, or null where the plan has no regions.
using PlaceRegions = void (*)(const SessionOptions& options, uint8_t* memory, Session* session);

// One need per ARENA and DEVICE bank; the first ARENA bank is the session's own.
struct Needs {
  uint32_t count = 0;
  uint32_t num_leading_tensors = 0;
  qplan_memory_need need[format::kMaxBanks];
  format::MemoryLayout layout;  // of need[0]
};

qplan_status needs_of(const PlanView& plan, const SessionOptions& options, Needs* needs, Error* error) {
  const format::MemoryCounts counts = plan.memory_counts(*options.function, sizeof(void*));
  needs->num_leading_tensors = static_cast<uint32_t>(counts.num_leading_tensors);
  if (!format::memory_layout(counts, sizeof(void*), options.pool.num_threads, &needs->layout)) {
    return error->set(QPLAN_PLAN_CORRUPT) << "session: the plan's memory does not fit into 64 bits";
  }
  for (uint32_t i = 0; i < plan.num_banks(); ++i) {
    const format::Bank& bank = plan.bank(i);
    if (bank.kind() == format::BankKind_CONSTANT) continue;
    const bool is_main = i == plan.main_bank();
    needs->need[needs->count++] = {i, is_main ? uint32_t{format::kArenaAlignment} : bank.alignment(),
                                   is_main ? needs->layout.total : bank.size()};
  }
  return QPLAN_OK;
}

// Nothing overlaps no bytes.
bool overlap(const void* a, uint64_t a_size, const void* b, uint64_t b_size) {
  if (a_size == 0 || b_size == 0) return false;
  const auto begin_a = reinterpret_cast<uintptr_t>(a), begin_b = reinterpret_cast<uintptr_t>(b);
  return begin_a < begin_b ? begin_b - begin_a < a_size : begin_a - begin_b < b_size;
}

qplan_status check_memories(const PlanView& plan, const Needs& needs, const qplan_memory* memories,
                            uint32_t num_memories, Error* error) {
  if (num_memories != needs.count || memories == nullptr) {
    return error->set(QPLAN_INVALID_ARGUMENT) << "session: " << (memories == nullptr ? 0 : num_memories)
                                              << " memories, expected " << needs.count;
  }
  for (uint32_t i = 0; i < num_memories; ++i) {
    const qplan_memory& memory = memories[i];
    const qplan_memory_need& need = needs.need[i];
    if (memory.size < need.size) {
      return error->set(QPLAN_MEMORY_TOO_SMALL)
             << "session: memory " << i << " has " << static_cast<uint64_t>(memory.size)
             << " bytes, expected " << need.size;
    }
    if (need.size == 0) continue;
    if (memory.base == nullptr) {
      return error->set(QPLAN_INVALID_ARGUMENT) << "session: memory " << i << " is NULL";
    }
    if (reinterpret_cast<uintptr_t>(memory.base) % need.alignment != 0) {
      return error->set(QPLAN_MISALIGNED)
             << "session: memory " << i << " does not begin at a multiple of " << need.alignment;
    }
    if (overlap(memory.base, need.size, plan.bytes(), plan.header().file_size)) {
      return error->set(QPLAN_INVALID_ARGUMENT) << "session: memory " << i << " overlaps the plan";
    }
    for (uint32_t j = 0; j < i; ++j) {
      if (overlap(memory.base, need.size, memories[j].base, needs.need[j].size)) {
        return error->set(QPLAN_INVALID_ARGUMENT) << "session: memories " << j << " and " << i << " overlap";
      }
    }
  }
  return QPLAN_OK;
}

void place_kept_steps([[maybe_unused]] uint8_t* at, [[maybe_unused]] Session* session) {
  if constexpr (kKeepsArgs) {
    for (uint32_t i = 0; i < session->num_steps(); ++i) {
      const uint32_t index = session->step_index(i);
      if (session->plan.npu_step(index) != nullptr) continue;
      session->steps[i].keep_at(reinterpret_cast<StepWork*>(at));
      at += format::kKeptStepBytes + format::kept_args_bytes(session->plan.step(index).kernel());
    }
  }
}

// All sizes fit size_t: check_memories compared them with real memories. activations: of the main bank, with
// the scratch after them.
Session* place_session(const PlanView& plan, const SessionOptions& options, const Needs& needs,
                       const qplan_memory* memories, uint8_t* activations, PlaceRegions place_npu) {
  auto* base = static_cast<uint8_t*>(memories[0].base);
  const format::MemoryLayout& layout = needs.layout;
  Session* session = new (base) qplan_session();
  session->plan = plan;
  session->function = options.function;
  session->kernels = options.kernels;
  session->steps = reinterpret_cast<StepRecord*>(base + layout.steps);
  place_kept_steps(base + layout.kept, session);
  session->data = reinterpret_cast<void**>(base + layout.tensors);
  session->num_data = kKeepsArgs ? plan.num_tensors() : needs.num_leading_tensors;
  session->scratch = activations + (layout.scratch - layout.arena);
  session->main_bytes = static_cast<size_t>(layout.total);
  for (uint32_t i = 0; i < needs.count; ++i) {
    const uint32_t bank = needs.need[i].bank;
    session->arenas[bank] = bank == plan.main_bank() ? activations : static_cast<uint8_t*>(memories[i].base);
    session->memory_bytes += needs.need[i].size;
  }
  session->platform = options.platform;
  session->pool = options.pool;
  if (place_npu != nullptr && layout.npu != layout.arena) place_npu(options, base + layout.npu, session);
  return session;
}

// A function of its own, whose stack is free while steps are prepared.
__attribute__((noinline)) qplan_status place(const PlanView& plan, const SessionOptions& options,
                                             const qplan_memory* memories, uint32_t num_memories,
                                             PlaceRegions place_npu, Session** placed, Error* error) {
  Needs needs;
  if (needs_of(plan, options, &needs, error) != QPLAN_OK ||
      check_memories(plan, needs, memories, num_memories, error) != QPLAN_OK) {
    return error->status();
  }
  auto* const activations = static_cast<uint8_t*>(memories[0].base) + needs.layout.arena;
  *placed = place_session(plan, options, needs, memories, activations, place_npu);
  return QPLAN_OK;
}

// In two memories: what the session keeps from run to run, and an arena. states: where the former has room
// for them.
__attribute__((noinline)) qplan_status place_in_arena(const PlanView& plan, const SessionOptions& options,
                                                      const qplan_memory& own, const qplan_memory& arena,
                                                      Session** placed, uint8_t** states, Error* error) {
  Needs needs;
  if (needs_of(plan, options, &needs, error) != QPLAN_OK) return error->status();
  const uint32_t bank = needs.need[0].bank;
  if (needs.count != 1) {
    return error->set(QPLAN_INVALID_ARGUMENT)
           << "session: the plan has " << needs.count
           << " memories, expected 1 where an arena is shared; pack it for a single memory";
  }
  const format::MemoryLayout& layout = needs.layout;
  const format::SharedLayout shared =
      format::shared_layout(layout, plan.state_bytes(*options.function, sizeof(void*)));
  needs.count = 2;
  needs.need[0].size = shared.own;
  needs.need[1] = {bank, uint32_t{format::kArenaAlignment}, shared.arena};
  const qplan_memory memories[] = {own, arena};
  if (check_memories(plan, needs, memories, 2, error) != QPLAN_OK) return error->status();
  auto* const activations = static_cast<uint8_t*>(arena.base);
  Session* session = place_session(plan, options, needs, memories, activations, nullptr);
  session->main_bytes = static_cast<size_t>(shared.own);
  *states = static_cast<uint8_t*>(own.base) + shared.states;
  *placed = session;
  return QPLAN_OK;
}

// From their planned places into memory that no other session writes to. A next value that is written over
// the state goes with it: no step writes to these bytes but the one of the next value
// (check_function_ranges, prepare.cc).
void move_states(uint8_t* to, Session* session) {
  for (uint32_t i = 0; i < format::count_of(session->function->states()); ++i) {
    const State& state = *session->function->states()->Get(i);
    if (is_state_in_place(session->plan, state)) session->data[state.output()] = to;
    session->data[state.input()] = to;
    to += round_up(session->plan.tensor(state.input()).size(), format::part_alignment(sizeof(void*)));
  }
}

__attribute__((noinline)) void log_session(const Session& session) {
  if (session.platform.log == nullptr || session.platform.log_level < QPLAN_LOG_INFO) return;
  Error text;
  text << "session: function " << Quoted{session.function->name()->c_str()} << ", " << session.num_steps()
       << " steps, isa '" << qplan_isa_name(session.isa) << "', " << session.pool.num_threads << " threads, "
       << session.memory_bytes << " bytes";
  log_text(session.platform, QPLAN_LOG_INFO, text.text());
}

qplan_status settle(const SessionOptions& options, Session* session, Error* error) {
  if (session->npu == nullptr) return QPLAN_OK;
  const qplan_npu_client* const client = session->npu->client;
  qplan_status status = client != nullptr ? client->init(session, options, error) : qplan_status{QPLAN_OK};
  if (status == QPLAN_OK) status = settle_regions(session, error);
  if (status != QPLAN_OK && client != nullptr) (void)client->deinit(session);
  return status;
}

// What has been prepared is whole, or is no session.
qplan_status finish(qplan_status status, Session* placed, Session** session) {
  if (status != QPLAN_OK) {
    placed->tag = 0;
    return status;
  }
  keep_args(placed, kAllTensors);
  reset_states(placed);
  *session = placed;
  return QPLAN_OK;
}

}  // namespace

qplan_status memory_needs(const PlanView& plan, const qplan_session_config* config, qplan_memory_need* needs,
                          uint32_t* count, Error* error) {
  SessionOptions options;
  Needs found;
  if (read_options(plan, config, false, &options, error) != QPLAN_OK ||
      needs_of(plan, options, &found, error) != QPLAN_OK) {
    return error->status();
  }
  const uint32_t room = *count;
  *count = found.count;
  if (needs == nullptr) return QPLAN_OK;
  if (room < found.count) {
    return error->set(QPLAN_INVALID_ARGUMENT)
           << "session: room for " << room << " memory needs, expected " << found.count;
  }
  for (uint32_t i = 0; i < found.count; ++i) needs[i] = found.need[i];
  return QPLAN_OK;
}

qplan_status session_init(const PlanView& plan, const qplan_session_config* config,
                          const qplan_memory* memories, uint32_t num_memories, Session** session,
                          Error* error) {
  SessionOptions options;
  Session* placed = nullptr;
  qplan_status status = read_options(plan, config, true, &options, error);
  if (status == QPLAN_OK)
    status = place(plan, options, memories, num_memories, place_regions, &placed, error);
  if (status == QPLAN_OK) {
    status = prepare(options, placed, error);
    if (status == QPLAN_OK) status = settle(options, placed, error);
    if (status == QPLAN_OK) copy_constants(placed);
    status = finish(status, placed, session);
  }
  if (status != QPLAN_OK) {
    log_text(options.platform, QPLAN_LOG_ERROR, error->text());
    return status;
  }
  log_session(*placed);
  warn_of_other_arch(*placed);
  return QPLAN_OK;
}

namespace {

SessionOptions options_for_cpu(const PlanView& plan, const qplan_kernel_set* kernels) {
  SessionOptions options;
  options.isa_limit = cpu_best_isa();
  options.function = plan.find_function(nullptr);
  options.kernels = kernels;
  options.pool.num_threads = 1;
  return options;
}

}  // namespace

qplan_status session_init_for_cpu(const PlanView& plan, const qplan_kernel_set* kernels,
                                  const qplan_memory* memories, uint32_t num_memories, Session** session,
                                  Error* error) {
  const SessionOptions options = options_for_cpu(plan, kernels);
  Session* placed = nullptr;
  const qplan_status status = place(plan, options, memories, num_memories, nullptr, &placed, error);
  if (status != QPLAN_OK) return status;
  return finish(prepare_for_cpu(options, placed, error), placed, session);
}

qplan_status session_init_in_arena(const PlanView& plan, const qplan_kernel_set* kernels,
                                   const qplan_memory& own, const qplan_memory& arena, Session** session,
                                   Error* error) {
  const SessionOptions options = options_for_cpu(plan, kernels);
  Session* placed = nullptr;
  uint8_t* states = nullptr;
  qplan_status status = place_in_arena(plan, options, own, arena, &placed, &states, error);
  if (status != QPLAN_OK) return status;
  status = prepare_for_cpu(options, placed, error);
  if (status == QPLAN_OK) move_states(states, placed);
  return finish(status, placed, session);
}

// ---- which bytes the inputs, outputs and states of a function may share

namespace {

Error& fail(uint32_t tensor, Error* error) {
  return error->set(QPLAN_PLAN_CORRUPT, -1, static_cast<int32_t>(tensor));
}

// Different inputs and outputs have different bytes: each can be written, bound and read on its own.
bool check_io(const PlanView& plan, const FunctionTensors& function, Error* error) {
  const auto *inputs = function.inputs, *outputs = function.outputs;
  const uint32_t num_inputs = format::count_of(inputs);
  const uint32_t count = num_inputs + format::count_of(outputs);
  const auto at = [&](uint32_t i) { return i < num_inputs ? inputs->Get(i) : outputs->Get(i - num_inputs); };
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t j = 0; j < i; ++j) {
      const uint32_t a = at(i), b = at(j);
      if (a == b || !format::ranges_overlap(plan.tensor(a), plan.tensor(b))) continue;
      if (function.overwrites_inputs && (i < num_inputs) != (j < num_inputs)) continue;
      fail(a, error) << "session: inputs or outputs of the function overlap: tensors " << b << " and " << a;
      return false;
    }
  }
  return true;
}

// The bytes of a state are its own, except that its next value may be an output of the function or in place.
bool check_states(const PlanView& plan, const FunctionTensors& function, Error* error) {
  const auto *inputs = function.inputs, *outputs = function.outputs;
  const auto* states = function.states;
  for (uint32_t i = 0; i < format::count_of(states); ++i) {
    const State& state = *states->Get(i);
    const bool is_in_place = is_state_in_place(plan, state);
    for (const uint32_t t : {state.input(), state.output()}) {
      const bool is_next = t == state.output();
      const auto collides = [&](uint32_t other, bool may_be_same) {
        return other == t ? !may_be_same : format::ranges_overlap(plan.tensor(other), plan.tensor(t));
      };
      const auto fails = [&](uint32_t other) {
        fail(t, error) << "session: tensor " << t << " of state " << i << " shares bytes with tensor "
                       << other << ", which the function reads or returns, too";
        return false;
      };
      for (uint32_t k = 0; k < format::count_of(inputs); ++k) {
        const uint32_t input = inputs->Get(k);
        // A next value that is copied is not needed once the caller writes the inputs of the next run.
        if (is_next && function.overwrites_inputs && input != t && !is_in_place) continue;
        if (collides(input, false)) return fails(input);
      }
      for (uint32_t k = 0; k < format::count_of(outputs); ++k) {
        if (collides(outputs->Get(k), is_next)) return fails(outputs->Get(k));
      }
      for (uint32_t k = 0; k < i; ++k) {
        if (collides(states->Get(k)->input(), false)) return fails(states->Get(k)->input());
        if (collides(states->Get(k)->output(), false)) return fails(states->Get(k)->output());
      }
    }
    const Tensor &input = plan.tensor(state.input()), &output = plan.tensor(state.output());
    if (is_in_place || !format::ranges_overlap(input, output)) continue;
    fail(state.input(), error) << "session: the two tensors of state " << i
                               << " overlap without being the same bytes";
    return false;
  }
  return true;
}

}  // namespace

bool is_state_in_place(const PlanView& plan, const State& state) {
  return format::same_range(plan.tensor(state.input()), plan.tensor(state.output()));
}

bool check_function_ranges(const PlanView& plan, const FunctionTensors& function, Error* error) {
  return check_io(plan, function, error) && check_states(plan, function, error);
}

// ---- constants and states in the session's memory

void* Session::planned_address(uint32_t tensor) const {
  const Tensor& t = plan.tensor(tensor);
  return arenas[t.bank()] + static_cast<size_t>(t.offset());
}

void copy_constants(Session* session) {
  const auto* copies = session->plan.plan().copies();
  for (uint32_t i = 0; i < format::count_of(copies); ++i) {
    const format::ConstantCopy& copy = *copies->Get(i);
    uint8_t* const to = session->arenas[copy.bank()] + static_cast<size_t>(copy.offset());
    memcpy(to, session->plan.constant_data(copy.tensor()),
           static_cast<size_t>(session->plan.tensor(copy.tensor()).size()));
    session->data[copy.tensor()] = to;
  }
}

void reset_states(Session* session) {
  const format::PlanView& plan = session->plan;
  for (uint32_t i = 0; i < format::count_of(session->function->states()); ++i) {
    const State& state = *session->function->states()->Get(i);
    void* to = session->data[state.input()];
    const auto size = static_cast<size_t>(plan.tensor(state.input()).size());
    if (state.initial() == format::kNoTensorIndex) {
      memset(to, state.fill(), size);
    } else {
      memcpy(to, plan.constant_data(state.initial()), size);
    }
  }
}

void commit_states(Session* session) {
  for (uint32_t i = 0; i < format::count_of(session->function->states()); ++i) {
    const State& state = *session->function->states()->Get(i);
    void* to = session->data[state.input()];
    // Where an output of the function is a state too, a caller may have bound it elsewhere.
    const void* from = session->data[state.output()];
    if (from != to) memcpy(to, from, static_cast<size_t>(session->plan.tensor(state.input()).size()));
  }
}

}  // namespace qplan
