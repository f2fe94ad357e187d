// The layout of the structs of npu_driver.h is ABI: drivers are compiled by others. Structs grow at the end
// only, which adds lines here and changes none but sizes.
#include <cstddef>

#include "qplan/npu_driver.h"

#define QPLAN_FIELD(type, field, offset)                                 \
  static_assert(sizeof(void*) != 8 || offsetof(type, field) == (offset), \
                "offset of " #type "." #field " is ABI")

// The numbers are those of 64-bit hosts.

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
