#include <filesystem>

#include "src/vta/sim/record.h"
#include "src/vta/sim/region_job.h"

namespace qplan::sim {
namespace {

bool write_region_files(const std::filesystem::path& path, const RecordedJob& record, std::string* error) {
  std::string text = record.head;
  for (size_t r = 0; r < record.regions.size(); ++r) {
    if (record.regions[r].is_listed)
      text += "region " + std::to_string(r) + " " + std::to_string(record.regions[r].bytes) + "\n";
  }
  for (size_t r = 0; r < record.regions.size(); ++r) {
    if (record.regions[r].is_listed && record.regions[r].is_constant)
      text += "readonly " + std::to_string(r) + "\n";
  }
  const auto place = [](const RecordedBytes& part) {
    return std::to_string(part.region) + " " + std::to_string(part.offset);
  };
  for (size_t i = 0; i < record.loads.size(); ++i) {
    const RecordedBytes& load = record.loads[i];
    const std::string name = "load-" + std::to_string(i) + ".bin";
    text += "load " + place(load) + " " + name + "\n";
    if (!write_file(path / name, load.bytes.data(), load.bytes.size(), error)) return false;
  }
  text += "run " + record.program_file + "\n";
  if (!write_file(path / record.program_file, record.program->data(), record.program->size(), error))
    return false;
  for (size_t i = 0; i < record.checks.size(); ++i) {
    const RecordedBytes& check = record.checks[i];
    const std::string name = "check-" + std::to_string(i) + ".bin";
    text += "check " + place(check) + " " + std::to_string(check.bytes.size()) + " " + name + "\n";
    if (!write_file(path / name, check.bytes.data(), check.bytes.size(), error)) return false;
  }
  return write_file(path / "job.txt", text.data(), text.size(), error);
}

}  // namespace

bool write_record(const std::string& directory, uint64_t job, const RecordedJob& record, std::string* error) {
  return write_job(
      directory, job,
      [&](const std::filesystem::path& path) { return write_region_files(path, record, error); }, error);
}

}  // namespace qplan::sim
