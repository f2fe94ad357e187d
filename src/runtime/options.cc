#include "format/text.h"
#include "kernels/cpu.h"
#include "src/runtime/session.h"
#include "src/runtime/structs.h"

namespace qplan {
namespace {

using format::Quoted;

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

qplan_status read_pool(const qplan_thread_pool* pool, qplan_thread_pool* to, Error* error) {
  if (!has_size(pool, "qplan_thread_pool", error)) return error->status();
  *to = known_fields(pool);
  if (pool == nullptr) {
    to->num_threads = 1;
    return QPLAN_OK;
  }
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
  options->npu_timeout_ns = uint64_t{known.npu_timeout_us == 0 ? 1000000 : known.npu_timeout_us} * 1000;
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

}  // namespace qplan
