// Which steps of a program may follow each other in a cascade, the program with cascades in their place, and
// its tensors by other numbers.
#include <algorithm>
#include <memory>
#include <utility>

#include "format/plan_view.h"
#include "src/packer/schedule/fuse.h"
#include "src/packer/schedule/schedule.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/cascade.h"

namespace qplan::schedule {
namespace {

using target::ProgramStep;
using target::TensorId;

void renumber(const std::vector<TensorId>& number, std::vector<TensorId>* tensors) {
  for (TensorId& tensor : *tensors) {
    if (tensor < target::kFirstTile) tensor = number[tensor];
  }
}

void renumber_all(const std::vector<TensorId>& number, target::Program* program) {
  renumber(number, &program->inputs);
  renumber(number, &program->outputs);
  for (target::ProgramState& state : program->states) {
    for (TensorId* tensor : {&state.input, &state.output, &state.initial}) {
      if (*tensor < target::kFirstTile) *tensor = number[*tensor];
    }
  }
  for (ProgramStep& step : program->steps) {
    renumber_step(number, &step);
    if (step.npu == nullptr) continue;
    auto region = std::make_shared<target::NpuRegion>(*step.npu);
    region->blob = number[region->blob];
    step.npu = std::move(region);
  }
}

}  // namespace

void renumber_step(const std::vector<TensorId>& number, ProgramStep* step) {
  renumber(number, &step->inputs);
  renumber(number, &step->outputs);
  for (ProgramStep& layer : step->layers) renumber_step(number, &layer);
}

void drop_tensors(const std::vector<bool>& is_dropped, target::Program* program) {
  std::vector<TensorId> number(program->tensors.size(), 0);
  std::vector<target::ProgramTensor> kept;
  for (size_t t = 0; t < program->tensors.size(); ++t) {
    number[t] = static_cast<TensorId>(kept.size());
    if (!is_dropped[t]) kept.push_back(std::move(program->tensors[t]));
  }
  program->tensors = std::move(kept);
  renumber_all(number, program);
}

std::vector<TensorId> place_constants_last(target::Program* program, const std::vector<bool>& is_first) {
  const auto rank_of = [&](size_t t) {
    return !program->tensors[t].is_constant() ? 0 : !is_first.empty() && is_first[t] ? 1 : 2;
  };
  std::vector<TensorId> number(program->tensors.size(), 0);
  std::vector<target::ProgramTensor> tensors;
  for (const int rank : {0, 1, 2}) {
    for (size_t t = 0; t < program->tensors.size(); ++t) {
      if (rank_of(t) != rank) continue;
      number[t] = static_cast<TensorId>(tensors.size());
      tensors.push_back(program->tensors[t]);
    }
  }
  program->tensors = std::move(tensors);
  renumber_all(number, program);
  return number;
}

namespace {

using target::Program;
using target::ProgramStep;
using target::TensorId;

class LinkFinder {
 public:
  LinkFinder(const Program& program, const StepQueries& queries)
      : program_(program),
        queries_(queries),
        is_layer_(program.steps.size(), false),
        readers_(program.tensors.size(), 0),
        reader_(program.tensors.size(), kNoStep) {}

  std::vector<uint32_t> run() {
    find_layers();
    find_readers();
    std::vector<uint32_t> next(program_.steps.size(), kNoStep);
    std::vector<uint32_t> previous(program_.steps.size(), kNoStep);
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      const uint32_t reader = reader_of(s);
      if (reader == kNoStep) continue;
      // If two branches meet, the later one is linked.
      if (previous[reader] != kNoStep) next[previous[reader]] = kNoStep;
      previous[reader] = s;
      next[s] = reader;
    }
    return next;
  }

 private:
  void find_layers() {
    uint32_t fallback_steps_end = 0;
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      const ProgramStep& step = program_.steps[s];
      if (step.npu != nullptr) fallback_steps_end = s + 1 + step.npu->num_alternative_steps;
      is_layer_[s] = step.npu == nullptr && s >= fallback_steps_end && can_be_layer(s);
    }
  }

  bool can_be_layer(uint32_t s) const {
    const KernelFamily* family = kCascadeLayerFamilies.find(program_.steps[s].kernel);
    if (family == nullptr || program_.steps[s].outputs.size() != 1) return false;
    const ir::TensorType& output = program_.tensors[program_.steps[s].outputs[0]].type;
    const bool is_image =
        output.shape.size() == 4 && (output.dtype == ir::kInt8 || output.dtype == ir::kUint8);
    const uint16_t kernel = program_.steps[s].kernel;
    if (!is_image && kernel != kKernel_arg_max) return false;
    // A pool of all rows would have them all in its tile.
    const bool is_pool = kernel == kKernel_avg_pool2d || kernel == kKernel_max_pool2d;
    if (is_pool && output.shape[1] == 1) return false;
    const StepView view = queries_.view(s);
    alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
    Error error;
    if (family->bind(view, true, args, &error) < 0) return false;
    return cascade_moving_input(view, *family) < view.num_inputs();
  }

  void find_readers() {
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      for (const TensorId tensor : program_.steps[s].inputs) {
        ++readers_[tensor];
        reader_[tensor] = s;
      }
    }
    for (const TensorId tensor : program_.outputs) ++readers_[tensor];
    for (const target::ProgramState& state : program_.states) ++readers_[state.output];
  }

  uint32_t reader_of(uint32_t s) const {
    if (!is_layer_[s]) return kNoStep;
    const TensorId tensor = program_.steps[s].outputs[0];
    const uint32_t reader = reader_[tensor];
    if (readers_[tensor] != 1 || reader == kNoStep || !is_layer_[reader]) return kNoStep;
    const ProgramStep& step = program_.steps[reader];
    const auto input = static_cast<uint32_t>(std::ranges::find(step.inputs, tensor) - step.inputs.begin());
    const StepView view = queries_.view(reader);
    if (!kCascadeLayerFamilies.find(step.kernel)->row_cut->follows(view, input)) return kNoStep;
    const auto batch = [&](uint32_t of) {
      return program_.tensors[program_.steps[of].outputs[0]].type.shape[0];
    };
    return batch(s) == batch(reader) ? reader : kNoStep;
  }

  const Program& program_;
  const StepQueries& queries_;
  std::vector<bool> is_layer_;
  std::vector<uint32_t> readers_;  // per tensor: how often it is read, by the function's caller too
  std::vector<uint32_t> reader_;   // per tensor: the last step that reads it
};

ProgramStep make_cascade(const Program& program, const CascadeSteps& steps) {
  ProgramStep cascade;
  cascade.kernel = kKernel_chain;
  cascade.params = target::CascadeParams{.binds_in_scratch = program.is_small};
  cascade.name = program.steps[steps.back()].name;
  TensorId before = target::kFirstTile;  // the tensor before the layer, which is a tile now
  for (size_t i = 0; i < steps.size(); ++i) {
    ProgramStep layer = program.steps[steps[i]];
    const auto tile = static_cast<TensorId>(target::kFirstTile + i);
    cascade.macs += layer.macs;
    for (TensorId& input : layer.inputs) {
      if (i > 0 && input == before) {
        input = tile - 1;
      } else if (std::ranges::find(cascade.inputs, input) == cascade.inputs.end()) {
        cascade.inputs.push_back(input);
      }
    }
    before = layer.outputs[0];
    if (i + 1 < steps.size()) {
      cascade.tiles.push_back(program.tensors[before]);
      layer.outputs[0] = tile;
    } else {
      cascade.outputs = layer.outputs;
    }
    cascade.layers.push_back(std::move(layer));
  }
  return cascade;
}

}  // namespace

std::vector<uint32_t> cascade_links(const Program& program, const StepQueries& queries) {
  return LinkFinder(program, queries).run();
}

CascadeSteps steps_from(const std::vector<uint32_t>& links, uint32_t step, size_t length) {
  CascadeSteps steps = {step};
  while (steps.size() < length && links[steps.back()] != kNoStep) steps.push_back(links[steps.back()]);
  return steps;
}

std::vector<bool> linked_steps(const std::vector<uint32_t>& links) {
  std::vector<bool> is_linked(links.size(), false);
  for (const uint32_t next : links) {
    if (next != kNoStep) is_linked[next] = true;
  }
  return is_linked;
}

Program with_cascades(const Program& program, const std::vector<CascadeSteps>& cascades,
                      std::vector<uint32_t>* step_of) {
  std::vector<const CascadeSteps*> cascade_of(program.steps.size(), nullptr);
  std::vector<bool> is_tile(program.tensors.size(), false);
  for (const CascadeSteps& cascade : cascades) {
    for (const uint32_t step : cascade) {
      cascade_of[step] = &cascade;
      if (step != cascade.back()) is_tile[program.steps[step].outputs[0]] = true;
    }
  }
  Program result;
  result.name = program.name;
  result.devices = program.devices;
  result.is_small = program.is_small;
  result.asks_substitutes = program.asks_substitutes;
  result.overwrites_inputs = program.overwrites_inputs;
  result.tensors = program.tensors;
  result.inputs = program.inputs;
  result.outputs = program.outputs;
  result.states = program.states;
  if (step_of != nullptr) step_of->clear();
  for (uint32_t s = 0; s < program.steps.size(); ++s) {
    const CascadeSteps* cascade = cascade_of[s];
    if (cascade != nullptr && s != cascade->back()) continue;
    result.steps.push_back(cascade == nullptr ? program.steps[s] : make_cascade(program, *cascade));
    if (step_of != nullptr) step_of->push_back(s);
  }
  drop_tensors(is_tile, &result);
  return result;
}

Program cascade_alone(const Program& program, const CascadeSteps& cascade) {
  Program result;
  result.steps.push_back(make_cascade(program, cascade));
  std::vector<TensorId> number(program.tensors.size(), 0);
  ProgramStep& step = result.steps.front();
  for (const std::vector<TensorId>* tensors : {&step.inputs, &step.outputs}) {
    for (const TensorId tensor : *tensors) {
      number[tensor] = static_cast<TensorId>(result.tensors.size());
      result.tensors.push_back(program.tensors[tensor]);
    }
  }
  renumber_step(number, &step);
  return result;
}

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
