// Verification of a plan's copies of constants: a file of its own, so that firmware whose plan has none does
// not link it.
#include "format/plan_view.h"
#include "src/base/checked.h"
#include "src/base/error.h"

namespace qplan::format {
namespace {

// Where the bytes that a session may copy to begin in each bank: after all that steps write there.
struct BankEnds {
  uint64_t of[kMaxBanks] = {};

  explicit BankEnds(const PlanView& plan) {
    for (uint32_t t = 0; t < plan.num_tensors(); ++t) {
      const Tensor& tensor = plan.tensor(t);
      raise(tensor.bank(), tensor.offset() + tensor.size());
    }
    for (uint32_t f = 0; f < plan.num_functions(); ++f) {
      const Function& function = plan.function(f);
      for (uint32_t i = 0; i < count_of(function.scratch_sizes()); ++i) {
        raise(plan.main_bank(),
              uint64_t{function.scratch_offsets()->Get(i)} + function.scratch_sizes()->Get(i));
      }
    }
  }
  void raise(uint32_t bank, uint64_t end) {
    if (of[bank] < end) of[bank] = end;
  }
};

}  // namespace

qplan_status PlanView::open_copies(Error* error) {
  const auto* copies = plan_->copies();
  if (count_of(copies) == 0) return QPLAN_OK;
  BankEnds ends(*this);
  uint32_t next = 0;  // the least tensor that the next copy may have
  for (uint32_t i = 0; i < count_of(copies); ++i) {
    const ConstantCopy& copy = *copies->Get(i);
    const uint32_t t = copy.tensor();
    const auto fail = [&]() -> Error& {
      const bool is_known = t < num_tensors();
      error->set(QPLAN_PLAN_CORRUPT, -1, is_known ? static_cast<int32_t>(t) : -1) << "plan: copy " << i;
      if (is_known) *error << " of tensor " << t << Named{tensor_name(t)};
      return *error << ": ";
    };
    qplan_status status = QPLAN_OK;
    if (t >= num_tensors() || !is_constant(t) || t < next) {
      status = fail() << "its tensor is " << t << " of " << num_tensors()
                      << ", expected a constant, at least " << next;
    } else if (copy.bank() >= num_banks() || bank(copy.bank()).kind() != BankKind_ARENA) {
      status = fail() << "bank " << copy.bank() << " of " << num_banks() << ", expected an arena";
    } else {
      const uint64_t room = bank(copy.bank()).size(), size = tensor(t).size(), from = ends.of[copy.bank()];
      const uint32_t alignment = element_bytes(tensor(t));
      uint64_t end = 0;
      if (!is_multiple(copy.offset(), alignment) || bank(copy.bank()).alignment() < alignment) {
        status = fail() << "offset " << copy.offset() << " in a bank aligned to "
                        << bank(copy.bank()).alignment() << ", expected a multiple of " << alignment;
      } else if (copy.offset() < from || !checked_add(copy.offset(), size, &end) || end > room) {
        status = fail() << size << " bytes at offset " << copy.offset() << " of bank " << copy.bank()
                        << ", expected bytes " << from << " to " << room
                        << ", after its tensors, scratch and the copies before it";
      }
      ends.of[copy.bank()] = end;
      next = t + 1;
    }
    if (status != QPLAN_OK) {
      *this = PlanView();
      return status;
    }
  }
  if (next > num_leading_tensors())
    num_leading_tensors_ = next < UINT16_MAX ? static_cast<uint16_t>(next) : uint16_t{UINT16_MAX};
  return QPLAN_OK;
}

}  // namespace qplan::format
