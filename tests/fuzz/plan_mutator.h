// Mutants of plans that mostly still open: the plan's flatbuffer as objects (flatc --gen-object-api),
// changed, and written again with sizes, offsets and digest that agree.
#ifndef QPLAN_TESTS_FUZZ_PLAN_MUTATOR_H_
#define QPLAN_TESTS_FUZZ_PLAN_MUTATOR_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flatbuffers/minireflect.h"
#include "format/container.h"
#include "src/base/sha256.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/plan_objects_generated.h"
#include "tests/support/random.h"

namespace qplan::testing {

// The parts of an input: a plan, and numbers after it that say what is done with the plan.
struct PlanInput {
  std::vector<uint8_t> plan;
  std::vector<uint8_t> tail;

  PlanInput(const uint8_t* data, size_t size) {
    size_t end = size;
    format::Header header;
    if (size >= sizeof(header)) {
      std::memcpy(&header, data, sizeof(header));
      if (header.file_size >= sizeof(header) && header.file_size < size)
        end = static_cast<size_t>(header.file_size);
    }
    plan.assign(data, data + end);
    tail.assign(data + end, data + size);
  }
};

class PlanObjects {
 public:
  objects::PlanT plan;
  std::vector<std::vector<uint8_t>> segments;  // of each bank, empty where it is no constant
  std::vector<uint8_t> names;                  // what follows the last segment
  format::Header header{};

  // False where the bytes are too far from a plan.
  bool read(const std::vector<uint8_t>& bytes) {
    if (bytes.size() < sizeof(header)) return false;
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (header.root_size > bytes.size() - sizeof(header)) return false;
    const uint8_t* const root = bytes.data() + sizeof(header);
    // A flatbuffer may refer to one table many times, and become as many objects.
    flatbuffers::Verifier verifier(root, header.root_size, 16, 4096);
    if (!objects::VerifyPlanBuffer(verifier) || !is_aligned(*flatbuffers::GetRoot<objects::Plan>(root)))
      return false;
    flatbuffers::GetRoot<objects::Plan>(root)->UnPackTo(&plan);
    if (!std::all_of(plan.steps.begin(), plan.steps.end(), [](const auto& step) { return is_whole(*step); }))
      return false;
    for (const auto& bank : plan.banks) {
      segments.emplace_back();
      if (bank == nullptr) return false;
      if (bank->kind != objects::BankKind_CONSTANT) continue;
      if (bank->file_offset > bytes.size() || bank->size > bytes.size() - bank->file_offset) continue;
      const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(bank->file_offset);
      segments.back().assign(first, first + static_cast<std::ptrdiff_t>(bank->size));
    }
    if (header.content_size < bytes.size() && header.content_size >= sizeof(header)) {
      names.assign(bytes.begin() + static_cast<std::ptrdiff_t>(header.content_size), bytes.end());
    }
    return true;
  }

  // change_root: of the finished flatbuffer, before its place in the file is known.
  template <typename Change>
  std::vector<uint8_t> write(Change&& change_root) {
    segments.resize(plan.banks.size());
    // The size of the flatbuffer does not depend on the offsets, since scalars are written whatever their
    // value.
    std::vector<uint8_t> root = pack();
    uint64_t at = aligned(sizeof(header) + root.size());
    std::vector<std::pair<uint64_t, const std::vector<uint8_t>*>> places;
    for (size_t i = 0; i < plan.banks.size(); ++i) {
      if (plan.banks[i]->kind != objects::BankKind_CONSTANT || segments[i].empty()) continue;
      plan.banks[i]->file_offset = at;
      plan.banks[i]->size = segments[i].size();
      places.emplace_back(at, &segments[i]);
      at = aligned(at + segments[i].size());
    }
    root = pack();
    change_root(&root);
    const size_t content_size = std::max<size_t>(at, aligned(sizeof(header) + root.size()));
    std::vector<uint8_t> bytes(content_size + names.size());
    std::copy(root.begin(), root.end(), bytes.begin() + sizeof(header));
    for (const auto& [offset, segment] : places) {
      std::copy(segment->begin(), segment->end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    }
    std::copy(names.begin(), names.end(), bytes.begin() + static_cast<std::ptrdiff_t>(content_size));
    header.root_size = static_cast<uint32_t>(root.size());
    header.content_size = content_size;
    header.file_size = bytes.size();
    Sha256 hash;
    hash.update(bytes.data() + sizeof(header), bytes.size() - sizeof(header));
    hash.finish(header.digest);
    std::memcpy(bytes.data(), &header, sizeof(header));
    return bytes;
  }
  std::vector<uint8_t> write() {
    return write([](std::vector<uint8_t>*) {});
  }

 private:
  // A union may have a type and no value, which pack() would read.
  static bool is_whole(const objects::KernelStepT& step) {
    if (step.params.type != objects::KernelParams_NONE && step.params.value == nullptr) return false;
    const objects::CascadeParamsT* const cascade = step.params.AsCascadeParams();
    return cascade == nullptr || std::all_of(cascade->layers.begin(), cascade->layers.end(),
                                             [](const auto& s) { return is_whole(*s); });
  }
  static bool is_whole(const objects::StepT& step) {
    const objects::KernelStepT* const kernel = step.body.AsKernelStep();
    return (step.body.type == objects::StepBody_NONE || step.body.value != nullptr) &&
           (kernel == nullptr || is_whole(*kernel));
  }

  // FlatBuffers' verifier aligns the length of a vector, not its entries, and UnPackTo reads them in place.
  template <typename T>
  static bool entries_aligned(const flatbuffers::Vector<T>* vector) {
    return vector == nullptr || vector->size() == 0 ||
           reinterpret_cast<uintptr_t>(vector->Data()) % sizeof(T) == 0;
  }
  static bool is_aligned(const flatbuffers::Vector<flatbuffers::Offset<objects::Tensor>>* tensors) {
    if (tensors == nullptr) return true;
    return std::all_of(tensors->begin(), tensors->end(),
                       [](const auto* t) { return entries_aligned(t->shape()); });
  }
  static bool is_aligned(const objects::Plan& plan) {
    if (!is_aligned(plan.tensors())) return false;
    if (plan.steps() == nullptr) return true;
    for (const objects::Step* step : *plan.steps()) {
      if (const auto* region = step->body_as_NpuStep(); region != nullptr && region->binds() != nullptr) {
        for (const objects::NpuBind* bind : *region->binds()) {
          if (!entries_aligned(bind->strides())) return false;
        }
      }
      const auto* kernel = step->body_as_KernelStep();
      const auto* cascade = kernel == nullptr ? nullptr : kernel->params_as_CascadeParams();
      if (cascade != nullptr && !is_aligned(cascade->tiles())) return false;
    }
    return true;
  }

  static uint64_t aligned(uint64_t size) { return (size + 63) / 64 * 64; }
  std::vector<uint8_t> pack() const {
    flatbuffers::FlatBufferBuilder builder;
    builder.ForceDefaults(true);
    builder.Finish(objects::Plan::Pack(builder, &plan));
    return std::vector<uint8_t>(builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
  }
};

// All scalars of a flatbuffer. Of long vectors the first elements alone: steps and shapes matter more than
// the hundredth scale.
class Scalars : public flatbuffers::IterationVisitor {
 public:
  struct Scalar {
    uint8_t* at;
    flatbuffers::ElementaryType type;
  };
  std::vector<Scalar> found;

  explicit Scalars(std::vector<uint8_t>* root) {
    flatbuffers::IterateFlatBuffer(root->data(), objects::PlanTypeTable(), this);
  }
  void Field(size_t, size_t, flatbuffers::ElementaryType type, bool is_vector, const flatbuffers::TypeTable*,
             const char*, const uint8_t* value) override {
    if (!is_vector && value != nullptr) add(type, value);
  }
  void Element(size_t i, flatbuffers::ElementaryType type, const flatbuffers::TypeTable*,
               const uint8_t* value) override {
    if (i < 8) add(type, value);
  }

 private:
  // A union's type stays: its table would be read as another one.
  void add(flatbuffers::ElementaryType type, const uint8_t* value) {
    if (type >= flatbuffers::ET_BOOL && type <= flatbuffers::ET_DOUBLE)
      found.push_back({const_cast<uint8_t*>(value), type});
  }
};

class PlanMutator {
 public:
  explicit PlanMutator(unsigned int seed) : random_(seed) {}

  // A mutant of data, at most max_size bytes.
  size_t run(uint8_t* data, size_t size, size_t max_size) {
    PlanInput input(data, size);
    PlanObjects objects;
    if (random_.chance(0.05) || !objects.read(input.plan)) return LLVMFuzzerMutate(data, size, max_size);
    if (random_.chance(0.2)) change_tail(&input.tail);
    if (!random_.chance(0.1)) {
      for (int64_t count = random_.integer(0, 2); count > 0; --count) change_structure(&objects);
      if (random_.chance(0.1)) change_constant(&objects);
      if (random_.chance(0.6)) mend(&objects);
      const int64_t num_scalars = random_.chance(0.4) ? 0 : random_.integer(1, 3);
      input.plan = objects.write([&](std::vector<uint8_t>* root) { change_scalars(root, num_scalars); });
      // Sizes that follow from shapes are made to agree afterwards: a new shape is refused for its size
      // otherwise.
      PlanObjects changed;
      if (num_scalars > 0 && random_.chance(0.7) && changed.read(input.plan)) {
        mend(&changed);
        input.plan = changed.write();
      }
    }
    if (input.plan.size() + input.tail.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
    std::copy(input.plan.begin(), input.plan.end(), data);
    std::copy(input.tail.begin(), input.tail.end(), data + input.plan.size());
    return input.plan.size() + input.tail.size();
  }

 private:
  using Indices = std::vector<uint32_t>;

  size_t below(size_t end) {
    return end == 0 ? 0 : static_cast<size_t>(random_.integer(0, static_cast<int64_t>(end) - 1));
  }
  template <typename T>
  T& any(std::vector<T>& from) {
    return from[below(from.size())];
  }

  void change_tail(std::vector<uint8_t>* tail) {
    if (tail->size() < 9 && random_.chance(0.3)) tail->push_back(0);
    if (!tail->empty()) any(*tail) = static_cast<uint8_t>(below(256));
  }

  void change_constant(PlanObjects* objects) {
    if (objects->segments.empty()) return;
    std::vector<uint8_t>& segment = any(objects->segments);
    if (segment.empty()) return;
    const size_t at = below(segment.size());
    const size_t size = std::min<size_t>(1 + below(16), segment.size() - at);
    LLVMFuzzerMutate(segment.data() + at, size, size);
  }

  Indices* references(objects::StepT* step, bool outputs) {
    if (objects::KernelStepT* kernel = step->body.AsKernelStep())
      return outputs ? &kernel->outputs : &kernel->inputs;
    if (objects::NpuStepT* region = step->body.AsNpuStep())
      return outputs ? &region->outputs : &region->inputs;
    return nullptr;
  }

  // No member of a vector is null here: the object API would dereference it.
  void change_structure(PlanObjects* objects) {
    objects::PlanT& plan = objects->plan;
    if (plan.steps.empty() || plan.tensors.empty() || plan.functions.empty()) return;
    const size_t i = below(plan.steps.size());
    switch (below(12)) {
      case 0:
        std::swap(plan.steps[i], any(plan.steps));
        return;
      case 1:  // once more, elsewhere
        if (plan.steps.size() > 64) return;
        plan.steps.insert(plan.steps.begin() + static_cast<std::ptrdiff_t>(below(plan.steps.size() + 1)),
                          std::make_unique<objects::StepT>(*plan.steps[i]));
        return;
      case 2:
        if (plan.steps.size() > 1) plan.steps.erase(plan.steps.begin() + static_cast<std::ptrdiff_t>(i));
        return;
      case 3: {  // another operand
        Indices* const indices = references(plan.steps[i].get(), random_.chance(0.3));
        if (indices == nullptr) return;
        if (indices->empty() || random_.chance(0.2)) {
          indices->push_back(static_cast<uint32_t>(below(plan.tensors.size())));
        } else if (random_.chance(0.2)) {
          indices->pop_back();
        } else {
          any(*indices) = static_cast<uint32_t>(below(plan.tensors.size()));
        }
        return;
      }
      case 4: {  // a copy of a tensor, for one operand of a step
        if (plan.tensors.size() > 256) return;
        Indices* const indices = references(plan.steps[i].get(), random_.chance(0.5));
        if (indices == nullptr || indices->empty()) return;
        uint32_t& index = any(*indices);
        if (index >= plan.tensors.size()) return;
        plan.tensors.push_back(std::make_unique<objects::TensorT>(*plan.tensors[index]));
        index = static_cast<uint32_t>(plan.tensors.size() - 1);
        return;
      }
      case 5: {  // another shape
        std::vector<int64_t>& shape = any(plan.tensors)->shape;
        if (shape.empty() || random_.chance(0.1)) {
          shape.push_back(1);
        } else if (random_.chance(0.1)) {
          shape.pop_back();
        } else {
          any(shape) = random_.chance(0.8) ? random_.integer(1, 40) : random_.integer(1, 3000);
        }
        return;
      }
      case 6: {  // a parameter of one step in the place of another's
        objects::KernelStepT* const to = plan.steps[i]->body.AsKernelStep();
        objects::KernelStepT* const from = any(plan.steps)->body.AsKernelStep();
        if (to == nullptr || from == nullptr || to == from) return;
        to->params = from->params;
        if (random_.chance(0.7)) to->kernel = from->kernel;
        return;
      }
      case 7: {
        objects::FunctionT& function = *any(plan.functions);
        Indices& indices = random_.chance(0.5) ? function.inputs : function.outputs;
        if (indices.empty() || random_.chance(0.3)) {
          indices.push_back(static_cast<uint32_t>(below(plan.tensors.size())));
        } else {
          any(indices) = static_cast<uint32_t>(below(plan.tensors.size()));
        }
        return;
      }
      case 8: {  // a copy of a constant, elsewhere, of another one, or one more after it
        if (plan.copies.empty() || random_.chance(0.2)) {
          plan.copies.push_back(std::make_unique<objects::ConstantCopyT>());
          plan.copies.back()->tensor = static_cast<uint32_t>(below(plan.tensors.size()));
          if (plan.copies.size() > 1) plan.copies.back()->offset = plan.copies[0]->offset + below(256);
        }
        objects::ConstantCopyT& copy = *any(plan.copies);
        if (random_.chance(0.3)) copy.tensor = static_cast<uint32_t>(below(plan.tensors.size() + 1));
        if (random_.chance(0.3)) copy.bank = static_cast<uint32_t>(below(plan.banks.size() + 1));
        if (random_.chance(0.5)) copy.offset += random_.chance(0.5) ? below(64) : 0 - below(64);
        return;
      }
      case 9:
        for (const auto& step : plan.steps) {
          if (objects::KernelStepT* kernel = step->body.AsKernelStep()) drop_form(kernel);
        }
        return;
      case 10:
        change_region(&plan);
        return;
      default:
        if (objects::KernelStepT* kernel = plan.steps[i]->body.AsKernelStep()) {
          for (int byte = 0; byte < 7; ++byte) {
            kernel->schedule = kernel->schedule << 8 | (random_.chance(0.5) ? below(6) : 0);
          }
        }
    }
  }

  // Bytes of a device's bank that two have, or what is said to stay there.
  void change_region(objects::PlanT* plan) {
    std::vector<objects::NpuBindT*> binds;
    for (const auto& step : plan->steps) {
      objects::NpuStepT* const region = step->body.AsNpuStep();
      if (region == nullptr) continue;
      for (const auto& bind : region->binds) binds.push_back(bind.get());
    }
    if (binds.empty()) return;
    objects::NpuBindT& bind = *any(binds);
    objects::TensorT& tensor = *any(plan->tensors);
    switch (below(4)) {
      case 0:
        bind.offset = any(binds)->offset + (random_.chance(0.2) ? below(64) : 0);
        return;
      case 1:
        for (uint32_t b = 0; b < plan->banks.size(); ++b) {
          if (plan->banks[b]->kind == objects::BankKind_DEVICE) tensor.bank = b;
        }
        tensor.offset = bind.offset + (random_.chance(0.2) ? below(64) : 0);
        return;
      case 2:
        bind.kept = static_cast<uint32_t>(below(6));
        return;
      default:
        if (bind.strides.empty()) {
          bind.strides.push_back(1);
        } else {
          bind.strides.clear();
          bind.offset = tensor.offset;
        }
    }
  }

  static void drop_form(objects::KernelStepT* kernel) {
    if (auto* p = kernel->params.AsConv2dParams()) p->float_epilogue = objects::FloatEpilogue_NONE;
    if (auto* p = kernel->params.AsFullyConnectedParams()) p->float_epilogue = objects::FloatEpilogue_NONE;
    if (auto* p = kernel->params.AsRequantizeParams()) p->float_epilogue = objects::FloatEpilogue_NONE;
    if (auto* p = kernel->params.AsAddParams()) p->float_scale1 = p->float_scale2 = 0;
    if (kernel->residual != nullptr) kernel->residual->float_scale1 = kernel->residual->float_scale2 = 0;
    if (auto* p = kernel->params.AsCascadeParams()) {
      for (const auto& layer : p->layers) drop_form(layer.get());
    }
  }

  void change_scalars(std::vector<uint8_t>* root, int64_t count) {
    const Scalars scalars(root);
    for (; count > 0 && !scalars.found.empty(); --count) {
      const Scalars::Scalar& scalar = scalars.found[below(scalars.found.size())];
      switch (scalar.type) {
        case flatbuffers::ET_FLOAT:
          change_float(scalar.at);
          break;
        case flatbuffers::ET_SHORT:
        case flatbuffers::ET_USHORT:
          change_integer<uint16_t>(scalar.at);
          break;
        case flatbuffers::ET_INT:
        case flatbuffers::ET_UINT:
          change_integer<uint32_t>(scalar.at);
          break;
        case flatbuffers::ET_LONG:
        case flatbuffers::ET_ULONG:
          change_integer<uint64_t>(scalar.at);
          break;
        default:
          change_integer<uint8_t>(scalar.at);
      }
    }
  }

  template <typename T>
  void change_integer(uint8_t* at) {
    T value;
    std::memcpy(&value, at, sizeof(value));
    switch (below(6)) {
      case 0:
        value = static_cast<T>(below(20));
        break;
      case 1:
        value = static_cast<T>(value + static_cast<T>(random_.integer(-3, 3)));
        break;
      case 2:
        value = static_cast<T>(random_.chance(0.5) ? value * 2u : value / 2u);
        break;
      case 3:
        value = static_cast<T>(uint64_t{1} << below(sizeof(T) * 8));
        break;
      case 4:  // around both ends of the signed range, and -1
        value =
            static_cast<T>((random_.chance(0.5) ? T{0} : static_cast<T>(uint64_t{1} << (sizeof(T) * 8 - 1))) -
                           static_cast<T>(random_.integer(0, 2)));
        break;
      default:
        value = static_cast<T>(
            random_.integer(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()));
    }
    std::memcpy(at, &value, sizeof(value));
  }

  void change_float(uint8_t* at) {
    static constexpr float kValues[] = {0.0f,
                                        -0.0f,
                                        1.0f,
                                        -1.0f,
                                        0.5f,
                                        1e-20f,
                                        1e-40f,
                                        1e20f,
                                        3e38f,
                                        std::numeric_limits<float>::infinity(),
                                        std::numeric_limits<float>::quiet_NaN()};
    float value;
    std::memcpy(&value, at, sizeof(value));
    value = random_.chance(0.5) ? kValues[below(std::size(kValues))]
                                : value * (random_.chance(0.5) ? 2.0f : -0.37f);
    std::memcpy(at, &value, sizeof(value));
  }

  // Sizes of tensors follow from shapes, the arena holds them all, the first function has all steps, and
  // tensors live as long as it.
  void mend(PlanObjects* objects) {
    objects::PlanT& plan = objects->plan;
    const uint32_t last = plan.steps.empty() ? 0 : static_cast<uint32_t>(plan.steps.size() - 1);
    for (const auto& tensor : plan.tensors) {
      uint64_t size = tensor->type_bits / 8u;
      for (const int64_t extent : tensor->shape) {
        if (extent < 1 || extent > (1 << 20) || size > (1 << 20)) {
          size = tensor->size;
          break;
        }
        size *= static_cast<uint64_t>(extent);
      }
      if (size != tensor->size && tensor->bank < plan.banks.size()) {
        objects::BankT& bank = *plan.banks[tensor->bank];
        tensor->size = size;
        if (bank.kind == objects::BankKind_ARENA &&
            random_.chance(0.7)) {  // to the end, where nothing is in the way
          tensor->offset = (bank.size + 63) / 64 * 64;
        }
        if (bank.kind == objects::BankKind_CONSTANT) {
          std::vector<uint8_t>& segment = objects->segments[tensor->bank];
          const uint64_t end = tensor->offset + size;
          if (end > segment.size() && end < (1 << 16)) segment.resize(end);
        }
      }
      if (tensor->bank >= plan.banks.size()) continue;
      objects::BankT& bank = *plan.banks[tensor->bank];
      if (bank.kind != objects::BankKind_CONSTANT)
        bank.size = std::max(bank.size, tensor->offset + tensor->size);
      if (random_.chance(0.9)) {
        tensor->first_use = 0;
        tensor->last_use = last;
      }
    }
    if (plan.functions.size() == 1) {
      plan.functions[0]->first_step = 0;
      plan.functions[0]->num_steps = static_cast<uint32_t>(plan.steps.size());
      plan.functions[0]->scratch_per_worker =
          std::max<uint64_t>(plan.functions[0]->scratch_per_worker, 1 << 14);
    }
  }

  Random random_;
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_PLAN_MUTATOR_H_
