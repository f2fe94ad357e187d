// The layout of the structs of host.h, pack.h and npu_driver.h is ABI; capi/abi.cc explains.
#include <cstddef>

#include "qplan/host.h"
#include "qplan/npu_driver.h"
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

static_assert(sizeof(void*) != 8 || sizeof(qplan_pack_options) == 312, "size of qplan_pack_options is ABI");
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
QPLAN_FIELD(qplan_pack_options, begin_at, 288);
QPLAN_FIELD(qplan_pack_options, end_at, 296);
QPLAN_FIELD(qplan_pack_options, num_begin_at, 304);
QPLAN_FIELD(qplan_pack_options, num_end_at, 308);

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

// ---- npu_driver.h: drivers are compiled by others

static_assert(sizeof(void*) != 8 || sizeof(qplan_npu_reason) == 184, "size of qplan_npu_reason is ABI");
QPLAN_FIELD(qplan_npu_reason, code, 0);
QPLAN_FIELD(qplan_npu_reason, place, 4);
QPLAN_FIELD(qplan_npu_reason, limit, 8);
QPLAN_FIELD(qplan_npu_reason, actual, 16);
QPLAN_FIELD(qplan_npu_reason, text, 24);

static_assert(sizeof(void*) != 8 || sizeof(qplan_device_hooks) == 152, "size of qplan_device_hooks is ABI");
QPLAN_FIELD(qplan_device_hooks, struct_size, 0);
QPLAN_FIELD(qplan_device_hooks, reserved, 4);
QPLAN_FIELD(qplan_device_hooks, platform, 8);
QPLAN_FIELD(qplan_device_hooks, user, 16);
QPLAN_FIELD(qplan_device_hooks, alloc, 24);
QPLAN_FIELD(qplan_device_hooks, free, 32);
QPLAN_FIELD(qplan_device_hooks, cache_clean, 40);
QPLAN_FIELD(qplan_device_hooks, cache_invalidate, 48);
QPLAN_FIELD(qplan_device_hooks, device_address, 56);
QPLAN_FIELD(qplan_device_hooks, power, 64);
QPLAN_FIELD(qplan_device_hooks, mutex_create, 72);
QPLAN_FIELD(qplan_device_hooks, mutex_destroy, 80);
QPLAN_FIELD(qplan_device_hooks, mutex_lock, 88);
QPLAN_FIELD(qplan_device_hooks, mutex_unlock, 96);
QPLAN_FIELD(qplan_device_hooks, event_create, 104);
QPLAN_FIELD(qplan_device_hooks, event_destroy, 112);
QPLAN_FIELD(qplan_device_hooks, event_wait, 120);
QPLAN_FIELD(qplan_device_hooks, event_set, 128);
QPLAN_FIELD(qplan_device_hooks, alloc_class, 136);
QPLAN_FIELD(qplan_device_hooks, memory_class, 144);

static_assert(sizeof(void*) != 8 || sizeof(qplan_npu_capabilities) == 232,
              "size of qplan_npu_capabilities is ABI");
QPLAN_FIELD(qplan_npu_capabilities, struct_size, 0);
QPLAN_FIELD(qplan_npu_capabilities, abi, 4);
QPLAN_FIELD(qplan_npu_capabilities, vendor, 8);
QPLAN_FIELD(qplan_npu_capabilities, target, 24);
QPLAN_FIELD(qplan_npu_capabilities, hw_revision, 72);
QPLAN_FIELD(qplan_npu_capabilities, driver_revision, 88);
QPLAN_FIELD(qplan_npu_capabilities, hash, 104);
QPLAN_FIELD(qplan_npu_capabilities, blob_formats, 112);
QPLAN_FIELD(qplan_npu_capabilities, onchip_bytes, 128);
QPLAN_FIELD(qplan_npu_capabilities, buffer_alignment, 160);
QPLAN_FIELD(qplan_npu_capabilities, line_alignment, 164);
QPLAN_FIELD(qplan_npu_capabilities, channel_pack, 168);
QPLAN_FIELD(qplan_npu_capabilities, max_binds, 172);
QPLAN_FIELD(qplan_npu_capabilities, max_queue, 176);
QPLAN_FIELD(qplan_npu_capabilities, num_engines, 180);
QPLAN_FIELD(qplan_npu_capabilities, memory_kinds, 184);
QPLAN_FIELD(qplan_npu_capabilities, address_bits, 188);
QPLAN_FIELD(qplan_npu_capabilities, max_buffer_bytes, 192);
QPLAN_FIELD(qplan_npu_capabilities, contracts, 200);
QPLAN_FIELD(qplan_npu_capabilities, contracts_per_channel, 204);
QPLAN_FIELD(qplan_npu_capabilities, input_zero_point, 208);
QPLAN_FIELD(qplan_npu_capabilities, output_zero_point, 212);
QPLAN_FIELD(qplan_npu_capabilities, pad_value, 216);
QPLAN_FIELD(qplan_npu_capabilities, flags, 220);
QPLAN_FIELD(qplan_npu_capabilities, clock_khz, 224);
QPLAN_FIELD(qplan_npu_capabilities, memory_classes, 228);

static_assert(sizeof(void*) != 8 || sizeof(qplan_npu_op) == 192, "size of qplan_npu_op is ABI");
QPLAN_FIELD(qplan_npu_op, struct_size, 0);
QPLAN_FIELD(qplan_npu_op, op, 4);
QPLAN_FIELD(qplan_npu_op, contract, 8);
QPLAN_FIELD(qplan_npu_op, flags, 12);
QPLAN_FIELD(qplan_npu_op, inputs, 16);
QPLAN_FIELD(qplan_npu_op, weights, 32);
QPLAN_FIELD(qplan_npu_op, bias, 40);
QPLAN_FIELD(qplan_npu_op, output, 48);
QPLAN_FIELD(qplan_npu_op, input_zero_points, 56);
QPLAN_FIELD(qplan_npu_op, output_zero_point, 64);
QPLAN_FIELD(qplan_npu_op, clamp_min, 68);
QPLAN_FIELD(qplan_npu_op, clamp_max, 72);
QPLAN_FIELD(qplan_npu_op, groups, 76);
QPLAN_FIELD(qplan_npu_op, window, 80);
QPLAN_FIELD(qplan_npu_op, strides, 88);
QPLAN_FIELD(qplan_npu_op, dilations, 96);
QPLAN_FIELD(qplan_npu_op, pads, 104);
QPLAN_FIELD(qplan_npu_op, num_scales, 120);
QPLAN_FIELD(qplan_npu_op, reserved, 124);
QPLAN_FIELD(qplan_npu_op, multipliers, 128);
QPLAN_FIELD(qplan_npu_op, shifts, 136);
QPLAN_FIELD(qplan_npu_op, scales, 144);
QPLAN_FIELD(qplan_npu_op, weights_zero_point, 152);
QPLAN_FIELD(qplan_npu_op, pad_value, 156);
QPLAN_FIELD(qplan_npu_op, left_shift, 160);
QPLAN_FIELD(qplan_npu_op, reserved2, 164);
QPLAN_FIELD(qplan_npu_op, name, 168);
QPLAN_FIELD(qplan_npu_op, more_inputs, 176);
QPLAN_FIELD(qplan_npu_op, num_inputs, 184);
QPLAN_FIELD(qplan_npu_op, axis, 188);

static_assert(sizeof(void*) != 8 || sizeof(qplan_npu_buffer_request) == 40,
              "size of qplan_npu_buffer_request is ABI");
QPLAN_FIELD(qplan_npu_buffer_request, struct_size, 0);
QPLAN_FIELD(qplan_npu_buffer_request, usage, 4);
QPLAN_FIELD(qplan_npu_buffer_request, memory_kind, 8);
QPLAN_FIELD(qplan_npu_buffer_request, alignment, 12);
QPLAN_FIELD(qplan_npu_buffer_request, tensor, 16);
QPLAN_FIELD(qplan_npu_buffer_request, min_bytes, 24);
QPLAN_FIELD(qplan_npu_buffer_request, memory_class, 32);

static_assert(sizeof(void*) != 8 || sizeof(qplan_npu_layout) == 104, "size of qplan_npu_layout is ABI");
QPLAN_FIELD(qplan_npu_layout, struct_size, 0);
QPLAN_FIELD(qplan_npu_layout, memory_kind, 4);
QPLAN_FIELD(qplan_npu_layout, bytes, 8);
QPLAN_FIELD(qplan_npu_layout, device_address, 16);
QPLAN_FIELD(qplan_npu_layout, alignment, 24);
QPLAN_FIELD(qplan_npu_layout, num_strides, 28);
QPLAN_FIELD(qplan_npu_layout, strides, 32);
QPLAN_FIELD(qplan_npu_layout, memory_class, 96);

static_assert(sizeof(void*) != 8 || sizeof(qplan_npu_program_info) == 48,
              "size of qplan_npu_program_info is ABI");
QPLAN_FIELD(qplan_npu_program_info, struct_size, 0);
QPLAN_FIELD(qplan_npu_program_info, num_regions, 4);
QPLAN_FIELD(qplan_npu_program_info, memory_bytes, 8);
QPLAN_FIELD(qplan_npu_program_info, estimated_cycles, 16);
QPLAN_FIELD(qplan_npu_program_info, instructions, 24);
QPLAN_FIELD(qplan_npu_program_info, capabilities_hash, 32);
QPLAN_FIELD(qplan_npu_program_info, memory_class, 40);

static_assert(sizeof(void*) != 8 || sizeof(qplan_npu_region_info) == 32,
              "size of qplan_npu_region_info is ABI");
QPLAN_FIELD(qplan_npu_region_info, struct_size, 0);
QPLAN_FIELD(qplan_npu_region_info, usage, 4);
QPLAN_FIELD(qplan_npu_region_info, is_bound, 8);
QPLAN_FIELD(qplan_npu_region_info, alignment, 12);
QPLAN_FIELD(qplan_npu_region_info, bytes, 16);
QPLAN_FIELD(qplan_npu_region_info, memory_class, 24);

static_assert(sizeof(void*) != 8 || sizeof(qplan_npu_bind) == 32, "size of qplan_npu_bind is ABI");
QPLAN_FIELD(qplan_npu_bind, slot, 0);
QPLAN_FIELD(qplan_npu_bind, flags, 4);
QPLAN_FIELD(qplan_npu_bind, buffer, 8);
QPLAN_FIELD(qplan_npu_bind, offset, 16);
QPLAN_FIELD(qplan_npu_bind, bytes, 24);

static_assert(sizeof(void*) != 8 || sizeof(qplan_npu_submit) == 56, "size of qplan_npu_submit is ABI");
QPLAN_FIELD(qplan_npu_submit, struct_size, 0);
QPLAN_FIELD(qplan_npu_submit, num_binds, 4);
QPLAN_FIELD(qplan_npu_submit, program, 8);
QPLAN_FIELD(qplan_npu_submit, binds, 16);
QPLAN_FIELD(qplan_npu_submit, after, 24);
QPLAN_FIELD(qplan_npu_submit, num_after, 32);
QPLAN_FIELD(qplan_npu_submit, priority, 36);
QPLAN_FIELD(qplan_npu_submit, done, 40);
QPLAN_FIELD(qplan_npu_submit, user, 48);

static_assert(sizeof(void*) != 8 || sizeof(qplan_npu_report) == 304, "size of qplan_npu_report is ABI");
QPLAN_FIELD(qplan_npu_report, struct_size, 0);
QPLAN_FIELD(qplan_npu_report, status, 4);
QPLAN_FIELD(qplan_npu_report, fault_address, 8);
QPLAN_FIELD(qplan_npu_report, fault_instruction, 16);
QPLAN_FIELD(qplan_npu_report, cycles, 24);
QPLAN_FIELD(qplan_npu_report, busy_cycles, 32);
QPLAN_FIELD(qplan_npu_report, bytes_read, 40);
QPLAN_FIELD(qplan_npu_report, bytes_written, 48);
QPLAN_FIELD(qplan_npu_report, macs, 56);
QPLAN_FIELD(qplan_npu_report, queued_ns, 64);
QPLAN_FIELD(qplan_npu_report, run_ns, 72);
QPLAN_FIELD(qplan_npu_report, vendor, 80);
QPLAN_FIELD(qplan_npu_report, text, 144);

static_assert(sizeof(void*) != 8 || sizeof(qplan_npu_driver) == 224, "size of qplan_npu_driver is ABI");
QPLAN_FIELD(qplan_npu_driver, struct_size, 0);
QPLAN_FIELD(qplan_npu_driver, abi, 4);
QPLAN_FIELD(qplan_npu_driver, name, 8);
QPLAN_FIELD(qplan_npu_driver, enumerate, 16);
QPLAN_FIELD(qplan_npu_driver, open, 24);
QPLAN_FIELD(qplan_npu_driver, close, 32);
QPLAN_FIELD(qplan_npu_driver, capabilities, 40);
QPLAN_FIELD(qplan_npu_driver, supported, 48);
QPLAN_FIELD(qplan_npu_driver, power, 56);
QPLAN_FIELD(qplan_npu_driver, reset, 64);
QPLAN_FIELD(qplan_npu_driver, requirements, 72);
QPLAN_FIELD(qplan_npu_driver, alloc, 80);
QPLAN_FIELD(qplan_npu_driver, import_memory, 88);
QPLAN_FIELD(qplan_npu_driver, release, 96);
QPLAN_FIELD(qplan_npu_driver, layout, 104);
QPLAN_FIELD(qplan_npu_driver, map, 112);
QPLAN_FIELD(qplan_npu_driver, unmap, 120);
QPLAN_FIELD(qplan_npu_driver, flush, 128);
QPLAN_FIELD(qplan_npu_driver, invalidate, 136);
QPLAN_FIELD(qplan_npu_driver, load, 144);
QPLAN_FIELD(qplan_npu_driver, program_info, 152);
QPLAN_FIELD(qplan_npu_driver, region_info, 160);
QPLAN_FIELD(qplan_npu_driver, unload, 168);
QPLAN_FIELD(qplan_npu_driver, submit, 176);
QPLAN_FIELD(qplan_npu_driver, wait, 184);
QPLAN_FIELD(qplan_npu_driver, cancel, 192);
QPLAN_FIELD(qplan_npu_driver, counters, 200);
QPLAN_FIELD(qplan_npu_driver, load_in_place, 208);
QPLAN_FIELD(qplan_npu_driver, disassemble, 216);
