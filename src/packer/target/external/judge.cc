// Collects the reasons against a candidate: operator lists cannot express it, the library's capabilities lack
// something that it needs, or the library's `supported` refuses it.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/target/external/external.h"
#include "src/runtime/npu/driver_answers.h"

namespace qplan::target::external {
namespace {

// ---- capabilities

std::string contract_names(uint32_t contracts) {
  std::string names;
  for (const uint32_t contract : {QPLAN_NPU_TFL2, QPLAN_NPU_TFL1, QPLAN_NPU_F32E, QPLAN_NPU_ACC32}) {
    if ((contracts & contract) != 0)
      names += cat(names.empty() ? "" : ", ", qplan_npu_contract_name(contract));
  }
  return names.empty() ? "none" : names;
}

std::string contracts_violation(const qplan_npu_op& op, const qplan_npu_capabilities& c) {
  if (!qplan_npu_op_has_contract(op.op)) return "";
  if ((c.contracts & op.contract) == 0) {
    return cat("the contract is ", contract_names(op.contract), ", the device's capabilities have ",
               contract_names(c.contracts));
  }
  if (qplan_npu_op_is_layer(op.op) && op.num_scales > 1 && (c.contracts_per_channel & op.contract) == 0) {
    return cat("there is a scale for each of ", op.num_scales, " channels under ",
               contract_names(op.contract), ", which the device's capabilities have for ",
               contract_names(c.contracts_per_channel));
  }
  return "";
}

std::string zero_points_violation(const qplan_npu_op& op, const qplan_npu_capabilities& c) {
  for (const int32_t zero_point : op.input_zero_points) {
    if (c.input_zero_point == 0 && zero_point != 0)
      return cat("the input's zero point is ", zero_point, ", the device's capabilities have 0 only");
  }
  if (c.output_zero_point == 0 && op.output_zero_point != 0)
    return cat("the output's zero point is ", op.output_zero_point,
               ", the device's capabilities have 0 only");
  return "";
}

std::string pad_value_violation(const qplan_npu_op& op, const qplan_npu_capabilities& c) {
  const bool pads = std::ranges::any_of(op.pads, [](uint32_t pad) { return pad != 0; });
  if (op.op != QPLAN_NPU_OP_CONV2D || !pads || c.pad_value != 0) return "";
  const bool is_given = (op.flags & QPLAN_NPU_OP_PAD_VALUE) != 0;
  const int32_t value = is_given ? op.pad_value : op.input_zero_points[0];
  return value == 0 ? "" : cat("the border has the value ", value, ", the device's capabilities have 0 only");
}

std::string channels_violation(const qplan_npu_op& op, const qplan_npu_capabilities& c) {
  if (c.channel_pack <= 1) return "";
  const uint32_t inputs = qplan_npu_op_num_inputs(&op);
  for (uint32_t i = 0; i <= inputs; ++i) {
    const DLTensor& tensor = i < inputs ? *qplan_npu_op_input(&op, i) : *op.output;
    if (tensor.ndim == 0) continue;
    const int64_t channels = tensor.shape[tensor.ndim - 1];
    if (channels % c.channel_pack != 0)
      return cat(channels, " channels, the device's capabilities have multiples of ", c.channel_pack);
  }
  return "";
}

struct Capability {
  const char* id;
  const char* requirement;
  std::string (*violation)(const qplan_npu_op& op, const qplan_npu_capabilities& capabilities);
};
constexpr Capability kCapabilities[] = {
    {".capabilities.contracts", "contracts that the capabilities name, per channel too", contracts_violation},
    {".capabilities.zero_points", "zero points that the capabilities allow", zero_points_violation},
    {".capabilities.pad_value", "borders of a value that the capabilities allow", pad_value_violation},
    {".capabilities.channels", "channels in multiples of channel_pack of the capabilities",
     channels_violation},
};

// ---- supported

constexpr uint32_t kMostReasons = 16;
constexpr uint32_t kNoCode = UINT32_MAX;  // of a reason that the library did not write

std::string operator_label(const qplan_npu_op& op) {
  return cat(qplan_npu_op_kind_name(op.op), " '", op.name, "'");
}

// Empty: the library takes the operator.
std::vector<qplan_npu_reason> ask_supported(const qplan_npu_target& library, uint64_t config,
                                            const qplan_npu_op& op) {
  std::vector<qplan_npu_reason> reasons(kMostReasons);
  for (qplan_npu_reason& reason : reasons) reason.code = kNoCode;
  uint32_t count = kMostReasons;
  const qplan_npu_status status = library.supported(config, &op, reasons.data(), &count);
  if (status == QPLAN_NPU_OK) return {};
  if (status != QPLAN_NPU_E_UNSUPPORTED) {
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    cat("target library: target '", library.name, "': supported returned ",
                        status_text(status), " for ", operator_label(op),
                        ", expected OK or E_UNSUPPORTED; its first argument is what configure gave, not a "
                        "device of the driver"));
  }
  reasons.resize(std::min(count, kMostReasons));
  std::erase_if(reasons, [](const qplan_npu_reason& reason) {
    return reason.code == kNoCode && reason.text[0] == '\0';
  });
  if (reasons.empty()) {
    reasons.push_back({});  // of a library that refuses without saying why
    reasons.back().code = kNoCode;
    std::strcpy(reasons.back().text, "refused without a reason");
  }
  return reasons;
}

}  // namespace

std::string reason_text(const qplan_npu_reason& reason) {
  std::string text(reason.text, strnlen(reason.text, sizeof(reason.text)));
  if (text.empty()) text = cat("reason ", reason.code);
  if (reason.limit != 0 || reason.actual != 0) text += cat(": ", reason.actual, ", limit ", reason.limit);
  return text;
}

std::string status_text(qplan_npu_status status) {
  const std::string name = npu_status_name(status);
  return name.empty() ? cat(status) : cat(status, " (", name, ")");
}

std::vector<std::string> capability_violations(const qplan_npu_capabilities& capabilities,
                                               const qplan_npu_op& op) {
  std::vector<std::string> texts(std::size(kCapabilities));
  for (size_t i = 0; capabilities.contracts != 0 && i < texts.size(); ++i)
    texts[i] = kCapabilities[i].violation(op, capabilities);
  return texts;
}

std::vector<Constraint> make_constraints(const qplan_npu_target& library) {
  const std::string name = library.name;
  constexpr const char* kNoHint = "nothing to change in the model";
  std::vector<Constraint> rows = {
      {name + ".list", "what an operator list can express: 8 bits, NHWC, OHWI, constant parameters",
       "the packer's passes bring models into this form; do not skip any of them", nullptr}};
  for (const Capability& capability : kCapabilities)
    rows.push_back({name + capability.id, capability.requirement, kNoHint, nullptr});
  for (uint32_t i = 0; i < library.num_rules; ++i) {
    const qplan_npu_rule& rule = library.rules[i];
    if (rule.id == nullptr || rule.requirement == nullptr)
      throw PackError(QPLAN_INVALID_ARGUMENT,
                      cat("target library: target '", name, "': rule ", i, " has no id or requirement"));
    rows.push_back({rule.id, rule.requirement, rule.hint == nullptr ? "" : rule.hint, nullptr});
  }
  rows.push_back({name + ".other", "nothing else that the device refuses", "", nullptr});
  return rows;
}

std::vector<std::string> judge(const qplan_npu_target& library, uint64_t config,
                               const qplan_npu_capabilities& capabilities, const Candidate& candidate) {
  ReadOp read;
  std::vector<std::string> texts = {read_op(candidate, flips_uint8(library, config), &read)};
  std::vector<std::string> lacking(std::size(kCapabilities));
  std::vector<qplan_npu_reason> reasons;
  if (texts[0].empty()) {
    lacking = capability_violations(capabilities, read.op);
    reasons = ask_supported(library, config, read.op);
    for (std::string& text : lacking) {
      if (!text.empty() && reasons.empty())
        text += "; its 'supported' takes the operator: one of the two is wrong";
    }
  }
  texts.insert(texts.end(), lacking.begin(), lacking.end());
  const std::span<const qplan_npu_rule> rules(library.rules, library.num_rules);
  for (const qplan_npu_rule& rule : rules) {
    const auto reason = std::ranges::find(reasons, rule.code, &qplan_npu_reason::code);
    texts.push_back(reason == reasons.end() ? "" : reason_text(*reason));
  }
  std::string others;
  for (const qplan_npu_reason& reason : reasons) {
    if (std::ranges::find(rules, reason.code, &qplan_npu_rule::code) == rules.end())
      others += cat(others.empty() ? "" : "; ", reason_text(reason));
  }
  texts.push_back(std::move(others));
  return texts;
}

}  // namespace qplan::target::external
