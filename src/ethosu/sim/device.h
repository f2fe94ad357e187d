// A simulated Ethos-U as the driver ABI shows it, and recorded jobs. Buffers, queue and scripts of faults are
// those of VTA's simulator.
#ifndef QPLAN_SRC_ETHOSU_SIM_DEVICE_H_
#define QPLAN_SRC_ETHOSU_SIM_DEVICE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "qplan/npu_driver.h"
#include "src/ethosu/isa/blob.h"
#include "src/ethosu/sim/machine.h"
#include "src/vta/sim/device.h"
#include "src/vta/sim/machine.h"
#include "src/vta/sim/options.h"
#include "src/vta/sim/record.h"

namespace qplan::ethosu::sim {

// What load keeps of a blob. Its regions, for binds, are the blob's slots.
struct EthosuProgram : qplan::sim::Program {
  std::vector<uint8_t> payload;
  std::vector<uint32_t> words;  // of the stream
  std::vector<BlobRegion> blob_regions;
  std::vector<BlobSlot> slots;
  std::vector<bool> is_copied;    // by slot: a part of its region
  std::vector<uint64_t> offsets;  // of regions that the program's memory has: constants, arenas
};

class EthosuDevice : public qplan::sim::Device {
 public:
  EthosuDevice(const qplan_device_hooks* hooks, qplan::sim::Options options, const Config& config);
  ~EthosuDevice() override;

  uint32_t blob_format() const override { return kBlobMagic; }
  std::vector<qplan_npu_reason> why_unsupported(const qplan_npu_op& op) const override;

 protected:
  void describe(qplan_npu_capabilities* capabilities) const override;
  qplan_npu_status read(const void* blob, uint64_t bytes, std::shared_ptr<qplan::sim::Program>* program,
                        qplan_npu_reason* why) const override;
  void place(const void* blob, qplan::sim::Program* program) const override;
  qplan::sim::Fault play(qplan::sim::Job& job, const qplan::sim::FaultRule* rule) override;

 private:
  qplan::sim::Fault execute(qplan::sim::Job& job, const qplan::sim::FaultRule* rule);

  const Config& config_;
};

// The listing of a blob, line by line.
[[nodiscard]] qplan_npu_status list_blob(const Config& config, const void* blob, uint64_t bytes,
                                         const std::function<void(const std::string&)>& line,
                                         qplan_npu_reason* why);

// A job of the blob whose loads and checks are still to come, as directory of regions: the base pointers.
qplan::sim::RecordedJob recorded_job(const std::vector<BlobRegion>& regions,
                                     const std::vector<uint8_t>& payload);

// Runs the recorded job in that directory on the configuration that its payload names, and compares its
// checks. The fault has no status where all bytes are equal; report takes what the run took. The address of a
// byte that differs has its region from bit 40 on and its offset below.
qplan::sim::Fault replay_ethosu(const std::string& directory, const qplan::sim::Options& options,
                                qplan_npu_report* report);

}  // namespace qplan::ethosu::sim

#endif  // QPLAN_SRC_ETHOSU_SIM_DEVICE_H_
