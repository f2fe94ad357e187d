#include "kernels/cpu.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/runtime/session.h"
#include "src/runtime/structs.h"

namespace qplan {
namespace {

// struct_size 0 is a forgotten field, never a caller from the past.
template <typename Struct>
bool has_size(const Struct* from, const char* name, Error* error) {
  if (from == nullptr || from->struct_size != 0) return true;
  error->set(QPLAN_INVALID_ARGUMENT) << "session: struct_size of " << name << " is 0; set it to sizeof("
                                     << name << ")";
  return false;
}

qplan_status resolve_isa(uint32_t limit, uint32_t* isa, Error* error) {
  if (limit == QPLAN_ISA_AUTO) {
    *isa = cpu_best_isa();
    return QPLAN_OK;
  }
  const char* name = qplan_isa_name(limit);
  if (name == nullptr) {
    return error->set(QPLAN_INVALID_ARGUMENT)
           << "session: isa_limit " << limit << " is not a QPLAN_ISA_* value";
  }
  if (!cpu_has_isa(limit)) {
    return error->set(QPLAN_INVALID_ARGUMENT)
           << "session: isa_limit '" << name << "' is beyond this machine or this build, which have '"
           << qplan_isa_name(cpu_best_isa()) << "'";
  }
  *isa = limit;
  return QPLAN_OK;
}

qplan_status read_pool(const qplan_thread_pool* pool, WorkerPool* to, Error* error) {
  *to = {};
  if (pool == nullptr) return QPLAN_OK;
  if (!has_size(pool, "qplan_thread_pool", error)) return error->status();
  const qplan_thread_pool known = known_fields(pool);
  *to = {known.num_threads, known.is_uneven, known.user, known.parallel_for};
  if (to->num_threads < 1 || to->num_threads > format::kMaxWorkers || to->parallel_for == nullptr) {
    return error->set(QPLAN_INVALID_ARGUMENT)
           << "session: thread pool with " << to->num_threads << " threads and "
           << (to->parallel_for == nullptr ? "no parallel_for" : "a parallel_for") << ", expected 1 to "
           << format::kMaxWorkers << " and a function";
  }
  return QPLAN_OK;
}

}  // namespace

qplan_status read_options(const format::PlanView& plan, const qplan_session_config* config, bool need_kernels,
                          SessionOptions* options, Error* error) {
  if (!has_size(config, "qplan_session_config", error)) return error->status();
  const qplan_session_config known = known_fields(config);
  if (!has_size(known.platform, "qplan_platform", error)) return error->status();
  options->platform = known_fields(known.platform);
  if (read_pool(options->platform.thread_pool, &options->pool, error) != QPLAN_OK) return error->status();
  options->function = plan.find_function(known.function);
  if (options->function == nullptr) {
    error->set(QPLAN_NOT_FOUND) << "session: the plan has no function " << Quoted{known.function}
                                << "; it has";
    for (uint32_t i = 0; i < plan.num_functions(); ++i) {
      *error << (i > 0 ? ", " : " ") << Quoted{plan.function(i).name()->c_str()};
    }
    return error->status();
  }
  options->kernels = known.kernels;
  options->npu = known.npu;
  options->devices = known.devices;
  options->num_devices = known.devices == nullptr ? 0 : known.num_devices;
  options->on_npu_failure = known.on_npu_failure;
  options->npu_flags = known.npu_flags;
  options->max_work = known.max_work;
  options->npu_timeout_ns = uint64_t{known.npu_timeout_us} * 1000;
  if (known.on_npu_failure > QPLAN_NPU_FAIL ||
      (known.npu_flags & ~uint32_t{QPLAN_NPU_VERIFY | QPLAN_NPU_OFF}) != 0) {
    return error->set(QPLAN_INVALID_ARGUMENT)
           << "session: on_npu_failure " << known.on_npu_failure << " or npu_flags " << known.npu_flags
           << " has a value that is not known";
  }
  if (!need_kernels) return QPLAN_OK;
  if (known.kernels == nullptr) {
    return error->set(QPLAN_INVALID_ARGUMENT)
           << "session: config.kernels is NULL; pass qplan_kernels_all() or qplan_kernels_reference()";
  }
  return resolve_isa(known.isa_limit, &options->isa_limit, error);
}

void log_text(const qplan_platform& platform, uint32_t level, const char* text) {
  if (platform.log != nullptr && level <= platform.log_level) platform.log(platform.user, level, text);
}

// Which processor a plan was packed for. Any plan runs anywhere, with the same bytes; but layouts of weights,
// shares of work and cascades are chosen for one architecture, and cost time and memory on another.
namespace {

constexpr uint32_t kMaxValueBytes = 31;

// The value of a key among "key=value,key=value"; "" where the key is missing.
struct Value {
  char text[kMaxValueBytes + 1] = {};

  Value(const char* options, const char* key) {
    while (*options != '\0') {
      uint32_t matched = 0;
      while (key[matched] != '\0' && options[matched] == key[matched]) ++matched;
      if (key[matched] == '\0' && options[matched] == '=') {
        options += matched + 1;
        for (uint32_t i = 0; i < kMaxValueBytes && options[i] != '\0' && options[i] != ','; ++i) {
          text[i] = options[i];
        }
        return;
      }
      while (*options != '\0' && *options != ',') ++options;
      if (*options == ',') ++options;
    }
  }
};

// Whether `name` is `arch` or, as "cortex-m4" is of "cortex-m", one of its cores.
bool is_core_of(const char* name, const char* arch) {
  while (*arch != '\0' && *name == *arch) ++name, ++arch;
  return *arch == '\0' && (*name == '\0' || (*name >= '0' && *name <= '9'));
}

bool is_other_arch(const Value& arch) {
  return arch.text[0] != '\0' && !is_core_of(arch.text, cpu_arch()) &&
         !(same_text(arch.text, "rv32imc") && same_text(cpu_arch(), "riscv32")) &&
         !same_text(cpu_arch(), "unknown");
}

// Whether it is an instruction set of microcontrollers that this processor lacks: the reference, which then
// computes, finds each weight in the layout of the others by a formula.
bool is_lacking(const Value& isa) {
  enum class Vectors { own, dot, none };
#define QPLAN_ISA(arch, name, NAME, id, base, vectors, macs_per_cycle, features, flags) \
  if (Vectors::vectors == Vectors::none && same_text(isa.text, #name)) {                \
    return !cpu_has_isa(QPLAN_ISA_##NAME);                                              \
  }
#include "kernels/isa.def"
#undef QPLAN_ISA
  return false;
}

}  // namespace

const char* target_options(const format::PlanView& plan) {
  const auto* targets = plan.plan().targets();
  for (uint32_t i = 0; i < format::count_of(targets); ++i) {
    const format::Target& target = *targets->Get(i);
    if (target.name() == nullptr || target.options() == nullptr) continue;
    if (same_text(target.name()->c_str(), "cpu")) return target.options()->c_str();
  }
  return "";
}

bool is_for_other_arch(const format::PlanView& plan) {
  const char* options = target_options(plan);
  return is_other_arch(Value(options, "arch")) || is_lacking(Value(options, "isa"));
}

void warn_of_other_arch(const Session& session) {
  if (session.platform.log == nullptr || session.platform.log_level < QPLAN_LOG_WARNING) return;
  if (!is_for_other_arch(session.plan)) return;
  const char* options = target_options(session.plan);
  const Value arch(options, "arch");
  Error text;
  text << "session: the plan was packed for arch " << Quoted{arch.text};
  if (!is_other_arch(arch)) text << " with isa " << Quoted{Value(options, "isa").text};
  text << ", and this is '" << cpu_arch() << (is_other_arch(arch) ? "'" : "' without it")
       << ": results are the same, but it may take several times the time and memory; pack the "
       << "model again with --target cpu,arch=...";
  log_text(session.platform, QPLAN_LOG_WARNING, text.text());
}

}  // namespace qplan
