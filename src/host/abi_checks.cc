// The layout of the structs of host.h and pack.h is ABI; capi/abi_checks.cc explains.
#include <cstddef>

#include "qplan/host.h"
#include "qplan/pack.h"

#define QPLAN_FIELD(type, field, offset)                                 \
  static_assert(sizeof(void*) != 8 || offsetof(type, field) == (offset), \
                "offset of " #type "." #field " is ABI")

// The numbers are those of 64-bit hosts.

static_assert(sizeof(void*) != 8 || sizeof(qplan_file) == 24, "size of qplan_file is ABI");
QPLAN_FIELD(qplan_file, bytes, 0);
QPLAN_FIELD(qplan_file, size, 8);
QPLAN_FIELD(qplan_file, opaque, 16);

QPLAN_FIELD(qplan_pack_options, struct_size, 0);
QPLAN_FIELD(qplan_pack_options, strip_names, 4);
QPLAN_FIELD(qplan_pack_options, target, 8);
QPLAN_FIELD(qplan_pack_options, dump_after, 16);
QPLAN_FIELD(qplan_pack_options, planner_budget, 24);
QPLAN_FIELD(qplan_pack_options, log_level, 28);
QPLAN_FIELD(qplan_pack_options, user, 32);
QPLAN_FIELD(qplan_pack_options, log, 40);
QPLAN_FIELD(qplan_pack_options, dump, 48);
QPLAN_FIELD(qplan_pack_options, error_text, 56);
QPLAN_FIELD(qplan_pack_options, progress, 64);
