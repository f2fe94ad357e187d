// Constants that a session reads from memory of its own: copied once, after init has checked every step
// against the plan's own bytes. A file of its own, so that firmware whose plan has none does not link it.
#include <string.h>

#include "src/runtime/session.h"

namespace qplan {

void copy_constants(Session* session) {
  const auto* copies = session->plan.plan().copies();
  for (uint32_t i = 0; i < format::count_of(copies); ++i) {
    const format::ConstantCopy& copy = *copies->Get(i);
    uint8_t* const to = session->arenas[copy.bank()] + static_cast<size_t>(copy.offset());
    memcpy(to, session->plan.constant_data(copy.tensor()),
           static_cast<size_t>(session->plan.tensor(copy.tensor()).size()));
    session->data[copy.tensor()] = to;
  }
}

}  // namespace qplan
