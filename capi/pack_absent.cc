// The part of the packer's C API that reads models, in a build without the packer (QPLAN_BUILD_PACKER=OFF):
// each function says so. The command has the same subcommands everywhere.
#include <string>

#include "capi/pack_guard.h"
#include "src/runtime/structs.h"

namespace qplan {
namespace {

qplan_status refuse(const char* what, const qplan_pack_options* options, qplan_error* error) {
  return guarded(known_fields(options), error, [what] {
    fail(QPLAN_MODEL_UNSUPPORTED,
         std::string(what) +
             ": this build of qplan has no packer (QPLAN_BUILD_PACKER=OFF) and reads plans, not models; run "
             "it on "
             "a development machine: qplan pack MODEL -o PLAN --target cpu,arch=" QPLAN_ARCH);
  });
}

}  // namespace
}  // namespace qplan

qplan_status qplan_pack_file(const char*, const qplan_pack_options* options, qplan_write_fn, void*,
                             qplan_error* error) {
  return qplan::refuse("pack", options, error);
}

qplan_status qplan_pack_bytes(const void*, size_t, const char*, const qplan_pack_options* options,
                              qplan_write_fn, void*, qplan_error* error) {
  return qplan::refuse("pack", options, error);
}

qplan_status qplan_import_text(const char*, const qplan_pack_options* options, int, qplan_write_fn, void*,
                               qplan_error* error) {
  return qplan::refuse("import", options, error);
}

qplan_status qplan_compare_models(const char*, const char*, const qplan_pack_options* options, qplan_write_fn,
                                  void*, int*, qplan_error* error) {
  return qplan::refuse("import", options, error);
}

qplan_status qplan_explain(const char*, const qplan_pack_options* options, int, qplan_write_fn, void*,
                           qplan_error* error) {
  return qplan::refuse("explain", options, error);
}

qplan_status qplan_emit_c(const void*, size_t, const qplan_emit_options*, qplan_write_file_fn, void*,
                          qplan_error* error) {
  return qplan::refuse("emit-c", nullptr, error);
}

qplan_status qplan_link_c(const qplan_linked_plan*, uint32_t, const qplan_emit_options*, qplan_write_file_fn,
                          void*, qplan_error* error) {
  return qplan::refuse("link", nullptr, error);
}
