#include "src/packer/target/cost_file.h"

#include <algorithm>
#include <iterator>

#include "src/packer/ir/cat.h"
#include "src/packer/target/target_text.h"

namespace qplan::target {
namespace {

using ir::Json;

// In the order of CpuWork. They are part of the format of target files.
constexpr const char* kWorkNames[] = {"convolution", "depthwise",         "addition",   "table",
                                      "pool",        "softmax",           "conversion", "copy",
                                      "resize",      "narrow_convolution"};
static_assert(std::size(kWorkNames) == kNumCpuWorks);
constexpr const char* kWeights = "weights";
constexpr const char* kBoundaryCopy = "boundary_copy";

void read_rate(const Json& json, const char* name, uint64_t* macs, uint64_t* bytes) {
  if (!json.contains(name)) return;
  const std::string what = cat("'", name, "' of 'cycles_per_million'");
  if (macs != nullptr) {
    check_keys(json[name], what, {"macs", "bytes"});
    read_number(json[name], "macs", kMaxCost, macs);
  } else {
    check_keys(json[name], what, {"bytes"});
  }
  read_number(json[name], "bytes", kMaxCost, bytes);
}

// Zero is what a kind does not have.
Json rate_json(uint64_t macs, uint64_t bytes) {
  Json json = Json::object();
  if (macs != 0) json["macs"] = macs;
  if (bytes != 0) json["bytes"] = bytes;
  return json;
}

}  // namespace

void check_keys(const Json& json, const std::string& what, const std::vector<const char*>& known) {
  if (!json.is_object()) fail_target(cat(what, " is not an object"));
  for (const auto& [key, value] : json.items()) {
    std::string names;
    bool found = false;
    for (const char* name : known) {
      found = found || key == name;
      names += cat(names.empty() ? "" : ", ", name);
    }
    if (!found) fail_target(cat("key '", key, "' of ", what, " is not known; known: ", names));
  }
}

void read_number(const Json& json, const char* key, uint64_t max, uint64_t* number) {
  if (!json.contains(key)) return;
  const Json& value = json[key];
  if (!value.is_number_unsigned() || value.get<uint64_t>() < 1 || value.get<uint64_t>() > max) {
    fail_target(cat("'", key, "' is ", ir::json_text(value), ", expected a whole number from 1 to ", max));
  }
  *number = value.get<uint64_t>();
}

const char* work_name(CpuWork work) { return kWorkNames[static_cast<size_t>(work)]; }

std::optional<CpuWork> work_of_name(std::string_view name) {
  for (size_t i = 0; i < kNumCpuWorks; ++i) {
    if (name == kWorkNames[i]) return static_cast<CpuWork>(i);
  }
  return std::nullopt;
}

void read_cpu_costs(const Json& json, CpuCosts* costs) {
  check_keys(
      json, "'costs' of a CPU",
      {"macs_per_us", "bytes_per_us", "clock_mhz", "pj_per_cycle", "step_cycles", "cycles_per_million"});
  uint64_t clock_mhz = 0;
  read_number(json, "clock_mhz", kMaxCost, &clock_mhz);
  if (clock_mhz != 0) costs->clock_khz = clock_mhz * 1000;
  read_number(json, "pj_per_cycle", kMaxCost, &costs->pj_per_cycle);
  read_number(json, "step_cycles", kMaxCost, &costs->step_cycles);
  if (json.contains("cycles_per_million")) {
    const Json& table = json["cycles_per_million"];
    std::vector<const char*> known(std::begin(kWorkNames), std::end(kWorkNames));
    known.insert(known.end(), {kWeights, kBoundaryCopy});
    check_keys(table, "'cycles_per_million'", known);
    for (size_t i = 0; i < kNumCpuWorks; ++i)
      read_rate(table, kWorkNames[i], &costs->work[i].macs, &costs->work[i].bytes);
    read_rate(table, kWeights, nullptr, &costs->weights);
    read_rate(table, kBoundaryCopy, nullptr, &costs->copies);
  }
  uint64_t macs = 0, bytes = 0;
  read_number(json, "macs_per_us", kMaxCost, &macs);
  read_number(json, "bytes_per_us", kMaxCost, &bytes);
  if (macs != 0) costs->set_macs_per_us(macs);
  if (bytes != 0) costs->set_bytes_per_us(bytes);
}

Json cpu_costs_json(const CpuCosts& costs) {
  Json json;
  json["clock_mhz"] = std::max<uint64_t>(costs.clock_khz / 1000, 1);
  json["pj_per_cycle"] = costs.pj_per_cycle;
  json["step_cycles"] = costs.step_cycles;
  Json& table = json["cycles_per_million"] = Json::object();
  for (size_t i = 0; i < kNumCpuWorks; ++i)
    table[kWorkNames[i]] = rate_json(costs.work[i].macs, costs.work[i].bytes);
  if (costs.weights != 0) table[kWeights] = rate_json(0, costs.weights);
  if (costs.copies != 0) table[kBoundaryCopy] = rate_json(0, costs.copies);
  return json;
}

}  // namespace qplan::target
