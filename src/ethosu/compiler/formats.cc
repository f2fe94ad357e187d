// Which values inside a region are NHCWB16: bricks of 16 channels, neighbouring columns side by side.
#include <algorithm>

#include "src/ethosu/compiler/region.h"

namespace qplan::ethosu::compiler {
namespace {

constexpr int kFormatPasses = 2;

class FormatChooser {
 public:
  FormatChooser(const Config& config, RegionPlan* plan)
      : config_(config), plan_(*plan), placement_(anywhere(*plan)), users_(plan->values.size()) {
    for (size_t u = 0; u < plan_.units.size(); ++u) {
      const RegionUnit& unit = plan_.units[u];
      for (const std::vector<size_t>* const values : {&unit.inputs, &unit.outputs, &unit.scratch}) {
        for (const size_t v : *values) {
          if (std::ranges::count(users_[v], u) == 0) users_[v].push_back(u);
        }
      }
    }
  }

  void run() {
    std::vector<size_t> values;
    for (size_t v = 0; v < plan_.values.size(); ++v) {
      if (may_have_bricks(v)) values.push_back(v);
    }
    bool is_better = true;
    for (int pass = 0; pass < kFormatPasses && is_better; ++pass) {
      is_better = false;
      for (const size_t v : values) {
        bool& is_nhcwb16 = plan_.values[v].is_nhcwb16;
        const uint64_t before = cycles(v);
        is_nhcwb16 = !is_nhcwb16;
        if (cycles(v) < before) {
          is_better = true;
        } else {
          is_nhcwb16 = !is_nhcwb16;
        }
      }
    }
  }

 private:
  // Values that only the region knows, as large in bricks as in rows of channels, and not the same. No other
  // value is in their bytes.
  bool may_have_bricks(size_t v) const {
    const RegionValue& value = plan_.values[v];
    const std::optional<Image> image = image_of(value.type);
    if (value.is_border() || value.whole != v || value.type.dtype.bits != 8 || !image || image->d % 16 != 0 ||
        image->d == 16 || image->w == 1 || users_[v].empty())
      return false;
    for (size_t other = 0; other < plan_.values.size(); ++other) {
      if (other != v && plan_.values[other].whole == v) return false;
    }
    return std::ranges::all_of(users_[v], [&](size_t u) { return plan_.units[u].unit.takes_bricks; });
  }

  // What the units that use a value take, with weights in fast memory: what flash takes is not the maps'
  // part.
  uint64_t cycles(size_t v) const {
    uint64_t sum = 0;
    for (const size_t u : users_[v]) {
      const RegionUnit& unit = plan_.units[u];
      const auto [inputs, outputs, scratch] = maps_of(plan_, placement_, unit);
      ConstantData constants;
      StreamWriter stream(config_);
      try {
        unit.unit.emit({config_, inputs, outputs, constants, stream, true, 0, scratch, true});
      } catch (const PackError& error) {
        if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
        return 0;  // the compiler says so when it comes to the unit
      }
      sum += stream.cycles();
    }
    return sum;
  }

  const Config& config_;
  RegionPlan& plan_;
  const Placement placement_;
  std::vector<std::vector<size_t>> users_;  // units of each value
};

}  // namespace

void choose_formats(const Config& config, RegionPlan* plan) { FormatChooser(config, plan).run(); }

}  // namespace qplan::ethosu::compiler
