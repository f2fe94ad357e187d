// lut8 with MVE: 16 look-ups by one gathering load.
#include <stddef.h>
#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/lut8/lut8.h"
#include "kernels/simd/bytes_mve.h"

namespace qplan::lut8_mve {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Lut8Args&) { return Refusal::kNone; }

size_t scratch_bytes(const Lut8Args&) { return 0; }

uint32_t work_items(const Lut8Args& args) { return num_chunks(args.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const Lut8Args& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  const uint8_t* from = args.input + range.begin;
  uint8_t* to = args.output + range.begin;
  for (auto left = static_cast<uint32_t>(range.end - range.begin); left != 0;) {
    const mve_pred16_t lanes = vctp8q(left);
    vstrbq_p_u8(to, vldrbq_gather_offset_z_u8(args.table, vldrbq_z_u8(from, lanes), lanes), lanes);
    from += 16;
    to += 16;
    left -= left < 16 ? left : 16;
  }
}
#endif

}  // namespace qplan::lut8_mve
