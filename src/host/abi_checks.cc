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

static_assert(sizeof(void*) != 8 || sizeof(qplan_host_device) == 40, "size of qplan_host_device is ABI");
QPLAN_FIELD(qplan_host_device, struct_size, 0);
QPLAN_FIELD(qplan_host_device, status, 4);
QPLAN_FIELD(qplan_host_device, driver, 8);
QPLAN_FIELD(qplan_host_device, device, 16);
QPLAN_FIELD(qplan_host_device, hooks, 24);
QPLAN_FIELD(qplan_host_device, opaque, 32);

static_assert(sizeof(void*) != 8 || sizeof(qplan_pool_config) == 24, "size of qplan_pool_config is ABI");
QPLAN_FIELD(qplan_pool_config, struct_size, 0);
QPLAN_FIELD(qplan_pool_config, num_threads, 4);
QPLAN_FIELD(qplan_pool_config, processors, 8);
QPLAN_FIELD(qplan_pool_config, num_processors, 16);
QPLAN_FIELD(qplan_pool_config, speeds, 20);

static_assert(sizeof(qplan_step_time) == 40, "size of qplan_step_time is ABI");
QPLAN_FIELD(qplan_step_time, struct_size, 0);
QPLAN_FIELD(qplan_step_time, step, 4);
QPLAN_FIELD(qplan_step_time, runs, 8);
QPLAN_FIELD(qplan_step_time, least_ns, 16);
QPLAN_FIELD(qplan_step_time, total_ns, 24);
QPLAN_FIELD(qplan_step_time, last_ns, 32);

static_assert(sizeof(void*) != 8 || sizeof(qplan_pack_options) == 288, "size of qplan_pack_options is ABI");
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
QPLAN_FIELD(qplan_pack_options, contract, 72);
QPLAN_FIELD(qplan_pack_options, io, 80);
QPLAN_FIELD(qplan_pack_options, io_layout, 88);
QPLAN_FIELD(qplan_pack_options, keep_float, 96);
QPLAN_FIELD(qplan_pack_options, num_skip, 100);
QPLAN_FIELD(qplan_pack_options, skip, 104);
QPLAN_FIELD(qplan_pack_options, bindings, 112);
QPLAN_FIELD(qplan_pack_options, num_bindings, 120);
QPLAN_FIELD(qplan_pack_options, num_input_types, 124);
QPLAN_FIELD(qplan_pack_options, input_types, 128);
QPLAN_FIELD(qplan_pack_options, synthesize_constants, 136);
QPLAN_FIELD(qplan_pack_options, canonical_body, 140);
QPLAN_FIELD(qplan_pack_options, synthesize_seed, 144);
QPLAN_FIELD(qplan_pack_options, why_not, 152);
QPLAN_FIELD(qplan_pack_options, passes, 160);
QPLAN_FIELD(qplan_pack_options, num_passes, 168);
QPLAN_FIELD(qplan_pack_options, placement, 172);
QPLAN_FIELD(qplan_pack_options, pins, 176);
QPLAN_FIELD(qplan_pack_options, num_pins, 184);
QPLAN_FIELD(qplan_pack_options, no_cost_gate, 188);
QPLAN_FIELD(qplan_pack_options, no_fallback, 192);
QPLAN_FIELD(qplan_pack_options, target_file, 200);
QPLAN_FIELD(qplan_pack_options, target_libs, 208);
QPLAN_FIELD(qplan_pack_options, num_target_libs, 216);
QPLAN_FIELD(qplan_pack_options, summary, 224);
QPLAN_FIELD(qplan_pack_options, tuning_file, 232);
QPLAN_FIELD(qplan_pack_options, tuning_threads, 240);
QPLAN_FIELD(qplan_pack_options, fuse, 244);
QPLAN_FIELD(qplan_pack_options, cancelled, 248);
QPLAN_FIELD(qplan_pack_options, prefer, 256);
QPLAN_FIELD(qplan_pack_options, num_custom_operators, 260);
QPLAN_FIELD(qplan_pack_options, custom_operators, 264);
QPLAN_FIELD(qplan_pack_options, max_ram, 272);
QPLAN_FIELD(qplan_pack_options, self_checks, 280);
QPLAN_FIELD(qplan_pack_options, reserved3, 284);

static_assert(sizeof(void*) != 8 || sizeof(qplan_emit_options) == 24, "size of qplan_emit_options is ABI");
QPLAN_FIELD(qplan_emit_options, struct_size, 0);
QPLAN_FIELD(qplan_emit_options, aot, 4);
QPLAN_FIELD(qplan_emit_options, name, 8);
QPLAN_FIELD(qplan_emit_options, isa, 16);

static_assert(sizeof(void*) != 8 || sizeof(qplan_linked_plan) == 32, "size of qplan_linked_plan is ABI");
QPLAN_FIELD(qplan_linked_plan, struct_size, 0);
QPLAN_FIELD(qplan_linked_plan, plan, 8);
QPLAN_FIELD(qplan_linked_plan, size, 16);
QPLAN_FIELD(qplan_linked_plan, name, 24);

static_assert(sizeof(void*) != 8 || sizeof(qplan_named_tensor) == 16, "size of qplan_named_tensor is ABI");
QPLAN_FIELD(qplan_named_tensor, name, 0);
QPLAN_FIELD(qplan_named_tensor, tensor, 8);

static_assert(sizeof(void*) != 8 || sizeof(qplan_named_type) == 24, "size of qplan_named_type is ABI");
QPLAN_FIELD(qplan_named_type, name, 0);
QPLAN_FIELD(qplan_named_type, dtype, 8);
QPLAN_FIELD(qplan_named_type, ndim, 12);
QPLAN_FIELD(qplan_named_type, shape, 16);

static_assert(sizeof(void*) != 8 || sizeof(qplan_pre_value) == 4, "size of qplan_pre_value is ABI");

static_assert(sizeof(void*) != 8 || sizeof(qplan_pre_node) == 4, "size of qplan_pre_node is ABI");

static_assert(sizeof(void*) != 8 || sizeof(qplan_post_value) == 4, "size of qplan_post_value is ABI");

static_assert(sizeof(void*) != 8 || sizeof(qplan_attr) == 56, "size of qplan_attr is ABI");
QPLAN_FIELD(qplan_attr, name, 0);
QPLAN_FIELD(qplan_attr, kind, 8);
QPLAN_FIELD(qplan_attr, count, 12);
QPLAN_FIELD(qplan_attr, integer, 16);
QPLAN_FIELD(qplan_attr, number, 24);
QPLAN_FIELD(qplan_attr, text, 32);
QPLAN_FIELD(qplan_attr, ints, 40);
QPLAN_FIELD(qplan_attr, list_sizes, 48);

static_assert(sizeof(void*) != 8 || sizeof(qplan_function_info) == 24, "size of qplan_function_info is ABI");
QPLAN_FIELD(qplan_function_info, struct_size, 0);
QPLAN_FIELD(qplan_function_info, num_params, 4);
QPLAN_FIELD(qplan_function_info, num_outputs, 8);
QPLAN_FIELD(qplan_function_info, num_nodes, 12);
QPLAN_FIELD(qplan_function_info, name, 16);

static_assert(sizeof(void*) != 8 || sizeof(qplan_value_info) == 56, "size of qplan_value_info is ABI");
QPLAN_FIELD(qplan_value_info, struct_size, 0);
QPLAN_FIELD(qplan_value_info, kind, 4);
QPLAN_FIELD(qplan_value_info, dtype, 8);
QPLAN_FIELD(qplan_value_info, ndim, 12);
QPLAN_FIELD(qplan_value_info, shape, 16);
QPLAN_FIELD(qplan_value_info, name, 24);
QPLAN_FIELD(qplan_value_info, data, 32);
QPLAN_FIELD(qplan_value_info, size_bytes, 40);
QPLAN_FIELD(qplan_value_info, num_uses, 48);
QPLAN_FIELD(qplan_value_info, reserved, 52);

static_assert(sizeof(void*) != 8 || sizeof(qplan_node_info) == 40, "size of qplan_node_info is ABI");
QPLAN_FIELD(qplan_node_info, struct_size, 0);
QPLAN_FIELD(qplan_node_info, num_operands, 4);
QPLAN_FIELD(qplan_node_info, num_results, 8);
QPLAN_FIELD(qplan_node_info, num_attrs, 12);
QPLAN_FIELD(qplan_node_info, op, 16);
QPLAN_FIELD(qplan_node_info, callee, 24);
QPLAN_FIELD(qplan_node_info, name, 32);

static_assert(sizeof(void*) != 8 || sizeof(qplan_user_rewrite) == 40, "size of qplan_user_rewrite is ABI");
QPLAN_FIELD(qplan_user_rewrite, struct_size, 0);
QPLAN_FIELD(qplan_user_rewrite, benefit, 4);
QPLAN_FIELD(qplan_user_rewrite, name, 8);
QPLAN_FIELD(qplan_user_rewrite, pattern, 16);
QPLAN_FIELD(qplan_user_rewrite, user, 24);
QPLAN_FIELD(qplan_user_rewrite, build, 32);

static_assert(sizeof(void*) != 8 || sizeof(qplan_user_pass) == 48, "size of qplan_user_pass is ABI");
QPLAN_FIELD(qplan_user_pass, struct_size, 0);
QPLAN_FIELD(qplan_user_pass, num_rewrites, 4);
QPLAN_FIELD(qplan_user_pass, name, 8);
QPLAN_FIELD(qplan_user_pass, after, 16);
QPLAN_FIELD(qplan_user_pass, rewrites, 24);
QPLAN_FIELD(qplan_user_pass, user, 32);
QPLAN_FIELD(qplan_user_pass, run, 40);
