/* The packer's side: the same library, given to `qplan pack --target-lib`, describes the device. */
#include "skeleton.h"

/* Tried in this order: a clip alone comes after the operators that may end in one. */
static const char* const kComposites[] = {
    "qplan.qconv2d",           "qplan.qdepthwise",     "qplan.qdense",
    "qplan.qconv2d_transpose", "qplan.qadd",           "qplan.qmul",
    "qplan.qadd_broadcast",    "qplan.qmul_broadcast", "qplan.qmax_pool2d",
    "qplan.qavg_pool2d",       "qplan.qclip",          "qplan.qmean",
    "qplan.qsoftmax",          "qplan.qmaximum",       "qplan.qminimum",
    "qplan.qlookup",           "qplan.qpad",           "qplan.qconcat",
    "qplan.qconcat_n",         "qplan.qreshape",       "qplan.qresize_nearest",
    "qplan.qresize_bilinear"};

/* A number says all about a variant of this device. Where it takes more, let config be a pointer to a struct
 * that stays until the library is unloaded. */
static qplan_npu_status configure(const char* options, uint64_t* config, qplan_npu_reason* why) {
  uint32_t max_window;
  const qplan_npu_status status = read_options(options, &max_window, why);
  *config = max_window;
  return status;
}

static qplan_npu_status capabilities(uint64_t config, qplan_npu_capabilities* to) {
  qplan_npu_capabilities all;
  if (!can_fill(to)) return QPLAN_NPU_E_ARGUMENT;
  fill_capabilities((uint32_t)config, &all);
  copy_out(to, &all, sizeof(all));
  return QPLAN_NPU_OK;
}

static qplan_npu_status costs(uint64_t config, qplan_npu_target_costs* to) {
  qplan_npu_target_costs all;
  (void)config;
  if (!can_fill(to)) return QPLAN_NPU_E_ARGUMENT;
  memset(&all, 0, sizeof(all));
  all.clock_mhz = 100;
  all.macs_per_cycle = SKELETON_MACS_PER_CYCLE;
  all.dma_bytes_per_cycle = 8;
  all.dma_latency_cycles = 64;
  copy_out(to, &all, sizeof(all));
  return QPLAN_NPU_OK;
}

/* config is no device of the driver: the packer may ask where there is none. */
static qplan_npu_status supported(uint64_t config, const qplan_npu_op* op, qplan_npu_reason* reasons,
                                  uint32_t* num_reasons) {
  return check_op((uint32_t)config, op, reasons, num_reasons);
}

/* Without `compile` the plan holds operator lists. */
static const qplan_npu_target kTarget = {
    .struct_size = sizeof(qplan_npu_target),
    .abi = QPLAN_NPU_TARGET_ABI,
    .name = "skeleton",
    .composites = kComposites,
    .num_composites = sizeof(kComposites) / sizeof(kComposites[0]),
    .rules = skeleton_rules,
    .num_rules = SKELETON_NUM_RULES,
    .configure = configure,
    .capabilities = capabilities,
    .costs = costs,
    .supported = supported,
};

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const qplan_npu_target*
qplan_npu_target_entry(uint32_t abi);
const qplan_npu_target* qplan_npu_target_entry(uint32_t abi) {
  return abi >> 16 == QPLAN_NPU_TARGET_ABI >> 16 ? &kTarget : NULL;
}
