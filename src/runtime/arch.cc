// Which processor a plan was packed for. Any plan runs anywhere, with the same bytes; but layouts of weights,
// shares of work and cascades are chosen for one architecture, and cost time and memory on another.
#include "format/text.h"
#include "kernels/cpu.h"
#include "src/runtime/session.h"

namespace qplan {
namespace {

constexpr char kKey[] = "arch=";
constexpr uint32_t kMaxArchBytes = 31;

// The value of "arch" among "key=value,key=value"; "" where there is none.
struct Arch {
  char name[kMaxArchBytes + 1] = {};

  explicit Arch(const char* options) {
    while (*options != '\0') {
      uint32_t matched = 0;
      while (kKey[matched] != '\0' && options[matched] == kKey[matched]) ++matched;
      if (kKey[matched] == '\0') {
        options += matched;
        for (uint32_t i = 0; i < kMaxArchBytes && options[i] != '\0' && options[i] != ','; ++i) {
          name[i] = options[i];
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

bool differs(const Arch& arch) {
  return arch.name[0] != '\0' && !is_core_of(arch.name, cpu_arch()) &&
         !format::same_text(cpu_arch(), "unknown");
}

}  // namespace

const char* target_options(const format::PlanView& plan) {
  const auto* targets = plan.plan().targets();
  for (uint32_t i = 0; i < format::count_of(targets); ++i) {
    const format::Target& target = *targets->Get(i);
    if (target.name() == nullptr || target.options() == nullptr) continue;
    if (format::same_text(target.name()->c_str(), "cpu")) return target.options()->c_str();
  }
  return "";
}

bool is_for_other_arch(const format::PlanView& plan) { return differs(Arch(target_options(plan))); }

void warn_of_other_arch(const Session& session) {
  if (session.platform.log == nullptr || session.platform.log_level < QPLAN_LOG_WARNING) return;
  const Arch arch(target_options(session.plan));
  if (!differs(arch)) return;
  Error text;
  text << "session: the plan was packed for arch " << format::Quoted{arch.name} << ", and this is '"
       << cpu_arch()
       << "': results are the same, but it may take several times the time and memory; pack the "
       << "model again with --target cpu,arch=...";
  log_text(session.platform, QPLAN_LOG_WARNING, text.text());
}

}  // namespace qplan
