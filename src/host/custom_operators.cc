// Custom operators: those of a library, and those that come with qplan.
#include <dlfcn.h>

#include <algorithm>
#include <forward_list>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "qplan/custom_operator.h"
#include "src/host/shared_library.h"
#include "src/host/system.h"

extern "C" {
extern const qplan_custom_operator qplan_host_detection_postprocess, qplan_host_posenet_decoder;
}

namespace {

using qplan::host::load_library;
using qplan::host::quoted_path;
using qplan::host::report;
using qplan::host::SharedLibrary;

using Operators = std::vector<const qplan_custom_operator*>;

constexpr const qplan_custom_operator* kOwn[] = {&qplan_host_detection_postprocess,
                                                 &qplan_host_posenet_decoder};

// The operators, then qplan's own: of two of one name the first counts. Lists live until the process ends, as
// libraries do; equal ones are the same.
std::span<const qplan_custom_operator* const> with_own(const qplan_custom_operator* const* first,
                                                       uint32_t count) {
  static std::mutex mutex;
  static auto& lists = *new std::forward_list<Operators>;  // never destroyed
  Operators all(first, first + count);
  all.insert(all.end(), std::begin(kOwn), std::end(kOwn));
  const std::scoped_lock lock(mutex);
  const auto known = std::ranges::find(lists, all);
  return known != lists.end() ? *known : lists.emplace_front(std::move(all));
}

}  // namespace

qplan_status qplan_host_custom_operators_load(const char* path,
                                              const qplan_custom_operator* const** operators,
                                              uint32_t* num_operators, qplan_error* error) {
  if (operators == nullptr || num_operators == nullptr)
    return report(error, QPLAN_INVALID_ARGUMENT, "custom operators: operators or num_operators is NULL");
  *operators = nullptr;
  *num_operators = 0;
  const auto give = [&](const qplan_custom_operator* const* found, uint32_t count) {
    const auto all = with_own(found, count);
    *operators = all.data();
    *num_operators = static_cast<uint32_t>(all.size());
    return qplan_status{QPLAN_OK};
  };
  try {
    if (path == nullptr) return give(nullptr, 0);
    const std::string where = "custom operators " + quoted_path(path) + ": ";
    SharedLibrary handle = load_library(path, where, error);
    if (handle == nullptr) return QPLAN_FILE_ERROR;
    const auto entry = reinterpret_cast<qplan_custom_operators_entry_fn>(
        dlsym(handle.get(), QPLAN_CUSTOM_OPERATORS_ENTRY_NAME));
    if (entry == nullptr) {
      return report(error, QPLAN_INVALID_ARGUMENT,
                    where + "exports no '" QPLAN_CUSTOM_OPERATORS_ENTRY_NAME "' (qplan/custom_operator.h)");
    }
    uint32_t count = 0;
    const qplan_custom_operator* const* found = entry(&count);
    qplan_kernel_set_storage storage;
    if (found == nullptr || count == 0 ||
        qplan_kernels_with_custom(&storage, qplan_kernels_reference(), found, count) == nullptr) {
      return report(error, QPLAN_INVALID_ARGUMENT,
                    where + "has no operators, or one that lacks its struct_size, name, prepare or run");
    }
    const qplan_status status = give(found, count);
    (void)handle.release();
    return status;
  } catch (const std::bad_alloc&) {
    return report(error, QPLAN_OUT_OF_MEMORY, "");
  }
}
