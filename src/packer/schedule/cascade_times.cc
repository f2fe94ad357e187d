#include <algorithm>
#include <utility>

#include "format/plan_view.h"
#include "src/packer/schedule/cascade_links.h"

namespace qplan::schedule {
namespace {

// The cascades of free steps that save the most: along each path, from its end on.
class Saving {
 public:
  Saving(const std::vector<uint32_t>& links, std::vector<bool> is_free, const TimesQuery& times_of)
      : links_(links), is_free_(std::move(is_free)), times_of_(times_of), best_(links.size()) {
    for (auto s = static_cast<uint32_t>(links_.size()); s-- > 0;) best_[s] = best_from(s);
  }

  void append_to(std::vector<CascadeSteps>* cascades) const {
    const std::vector<bool> is_linked = linked_steps(links_);
    for (uint32_t s = 0; s < links_.size(); ++s) {
      for (uint32_t at = is_linked[s] ? kNoStep : s; at != kNoStep;) {
        const CascadeSteps cascade = steps_from(links_, at, best_[at].length);
        if (cascade.size() > 1) cascades->push_back(cascade);
        at = links_[cascade.back()];
      }
    }
  }

 private:
  struct Best {
    uint64_t saved = 0;  // ns, from the step on to the end of its path
    size_t length = 1;   // of the cascade that begins with the step
  };

  uint64_t saved_from(uint32_t step) const { return step == kNoStep ? 0 : best_[step].saved; }

  Best best_from(uint32_t step) const {
    Best best = {saved_from(links_[step]), 1};
    for (size_t length = 2; length <= format::kMaxCascadeLayers; ++length) {
      const CascadeSteps cascade = steps_from(links_, step, length);
      if (cascade.size() < length || !std::ranges::all_of(cascade, [&](uint32_t s) { return is_free_[s]; }))
        break;
      const std::optional<CascadeTimes> times = times_of_(cascade);
      if (!times || times->cascade >= times->layers) continue;
      const uint64_t saved = times->layers - times->cascade + saved_from(links_[cascade.back()]);
      if (saved > best.saved) best = {saved, length};
    }
    return best;
  }

  const std::vector<uint32_t>& links_;
  const std::vector<bool> is_free_;
  const TimesQuery& times_of_;
  std::vector<Best> best_;
};

}  // namespace

std::vector<CascadeSteps> with_times(const std::vector<uint32_t>& links, std::vector<CascadeSteps> cascades,
                                     const TimesQuery& times_of) {
  std::erase_if(cascades, [&](const CascadeSteps& cascade) {
    const std::optional<CascadeTimes> times = times_of(cascade);
    return times && times->cascade > times->layers + times->layers / 10;
  });
  std::vector<bool> is_free(links.size(), true);
  for (const CascadeSteps& cascade : cascades) {
    for (const uint32_t step : cascade) is_free[step] = false;
  }
  Saving(links, std::move(is_free), times_of).append_to(&cascades);
  return cascades;
}

}  // namespace qplan::schedule
