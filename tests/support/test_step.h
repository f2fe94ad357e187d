// A plan of one step, made by hand, for tests of a kernel family's glue: tensors are added one by one, their
// bytes are the test's, and nothing is checked on the way, so that wrong steps can be made too.
//
//   TestStep step(kKernel_lut8);
//   step.input<uint8_t>({1, 8}, values);
//   step.constant<uint8_t>({256}, table);
//   step.output<uint8_t>({1, 8});
//   step.finish(format::KernelParams_Lut8Params, format::CreateLut8Params(step.builder()).Union());
//   step.bind(kLut8Family, &args, &error);
#ifndef QPLAN_TESTS_SUPPORT_TEST_STEP_H_
#define QPLAN_TESTS_SUPPORT_TEST_STEP_H_

#include <cstdint>
#include <cstring>
#include <deque>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "format/plan_generated.h"
#include "src/runtime/bind/family.h"

namespace qplan::testing {

// The executor's storage for args.
struct ArgsStorage {
  alignas(kArgsAlignment) unsigned char bytes[kMaxArgsBytes] = {};
  template <typename Args>
  const Args& as() const {
    return *reinterpret_cast<const Args*>(bytes);
  }
};

class TestStep {
 public:
  // The plan's description of a tensor. Tests change fields between adding the tensor and finish().
  struct TensorSpec {
    uint8_t type_code = 0;
    uint8_t type_bits = 0;
    std::vector<int64_t> shape;
    uint32_t bank = 0;  // kConstantBank or kArenaBank
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  static constexpr uint32_t kConstantBank = 0;
  static constexpr uint32_t kArenaBank = 1;

  explicit TestStep(uint16_t kernel) : kernel_(kernel) {}

  // Each returns the spec of the tensor; its index is the number of tensors added before.
  template <typename T>
  TensorSpec& input(std::vector<int64_t> shape, const std::vector<T>& values) {
    inputs_.push_back(num_tensors());
    return add<T>(std::move(shape), kArenaBank, values);
  }
  template <typename T>
  TensorSpec& constant(std::vector<int64_t> shape, const std::vector<T>& values) {
    inputs_.push_back(num_tensors());
    return add<T>(std::move(shape), kConstantBank, values);
  }
  template <typename T>
  TensorSpec& output(std::vector<int64_t> shape) {
    outputs_.push_back(num_tensors());
    size_t count = 1;
    for (int64_t extent : shape) count *= static_cast<size_t>(extent);
    return add<T>(std::move(shape), kArenaBank, std::vector<T>(count));
  }

  flatbuffers::FlatBufferBuilder& builder() { return builder_; }
  std::vector<uint32_t>& inputs() { return inputs_; }
  std::vector<uint32_t>& outputs() { return outputs_; }
  TensorSpec& tensor(uint32_t index) { return tensors_[index]; }
  uint32_t num_tensors() const { return static_cast<uint32_t>(tensors_.size()); }

  // Writes the plan. Afterwards view() is valid.
  void finish(format::KernelParams params_type, flatbuffers::Offset<void> params,
              flatbuffers::Offset<format::AddParams> residual = 0, bool residual_is_input1 = false) {
    const std::vector<flatbuffers::Offset<format::Bank>> banks = {
        format::CreateBank(builder_, format::BankKind_CONSTANT, 64, uint64_t{1} << 40),
        format::CreateBank(builder_, format::BankKind_ARENA, 64, uint64_t{1} << 40)};
    std::vector<flatbuffers::Offset<format::Tensor>> tensors;
    for (const TensorSpec& spec : tensors_) {
      tensors.push_back(format::CreateTensorDirect(builder_, spec.type_code, spec.type_bits, &spec.shape,
                                                   spec.bank, spec.offset, spec.size));
    }
    const auto kernel_step = format::CreateKernelStepDirect(
        builder_, kernel_, &inputs_, &outputs_, params_type, params, 0, 0, 0, residual, residual_is_input1);
    const std::vector<flatbuffers::Offset<format::Step>> steps = {
        format::CreateStep(builder_, format::StepBody_KernelStep, kernel_step.Union())};
    builder_.Finish(format::CreatePlanDirect(builder_, nullptr, &banks, &tensors, &steps));
    for (const Storage& storage : storage_) data_.push_back(storage.bytes);
    view_.plan = format::GetPlan(builder_.GetBufferPointer());
    view_.step = view_.plan->steps()->Get(0)->body_as_KernelStep();
    view_.data = data_.data();
    for (uint32_t t = 0; t < num_tensors(); ++t) table_.push_back(view_.tensor(t));
  }

  const StepView& view() const { return view_; }
  // The same with an array of tensors in the place of the plan's.
  StepView table_view() const { return StepView::of_tensors(*view_.step, table_.data()); }
  qplan_status bind(const KernelFamily& family, ArgsStorage* args, Error* error, bool check = true) {
    return family.bind(view_, check, args->bytes, error);
  }
  // The bytes of output o.
  template <typename T>
  const T* output_data(uint32_t o = 0) const {
    return static_cast<const T*>(view_.output_data(o));
  }

 private:
  template <typename T>
  TensorSpec& add(std::vector<int64_t> shape, uint32_t bank, const std::vector<T>& values) {
    static_assert(std::is_arithmetic_v<T>);
    TensorSpec& spec = tensors_.emplace_back();
    spec.type_code = std::is_floating_point_v<T> ? 2 : std::is_signed_v<T> ? 0 : 1;  // DLDataTypeCode
    spec.type_bits = sizeof(T) * 8;
    spec.shape = std::move(shape);
    spec.bank = bank;
    spec.size = values.size() * sizeof(T);
    // 64-byte aligned storage without slack after it, so that ASan sees any access beyond the end.
    Storage& storage = storage_.emplace_back(spec.size);
    if (!values.empty()) std::memcpy(storage.bytes, values.data(), spec.size);
    return spec;
  }

  struct Storage {
    explicit Storage(size_t size) : bytes(::operator new (size, std::align_val_t{64})) {}
    ~Storage() { ::operator delete (bytes, std::align_val_t{64}); }
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;
    void* bytes;
  };

  uint16_t kernel_;
  flatbuffers::FlatBufferBuilder builder_;
  std::deque<TensorSpec> tensors_;
  std::deque<Storage> storage_;
  std::vector<uint32_t> inputs_;
  std::vector<uint32_t> outputs_;
  std::vector<void*> data_;
  std::vector<StepTensor> table_;
  StepView view_;
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_TEST_STEP_H_
