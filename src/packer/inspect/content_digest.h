// The digest by which plans are compared: everything but names and provenance.
#ifndef QPLAN_SRC_PACKER_INSPECT_CONTENT_DIGEST_H_
#define QPLAN_SRC_PACKER_INSPECT_CONTENT_DIGEST_H_

#include <string>

#include "format/plan_view.h"

namespace qplan::inspect {

// SHA-256, hexadecimal, of what is executed: format version, required features, the root and the constants.
std::string content_digest(const format::PlanView& view);
std::string hexadecimal(const uint8_t* bytes, size_t size);

}  // namespace qplan::inspect

#endif  // QPLAN_SRC_PACKER_INSPECT_CONTENT_DIGEST_H_
