#include <filesystem>
#include <system_error>

#include "qplan/host.h"
#include "src/ethosu/sim/device.h"

namespace qplan::ethosu::sim {
namespace {

bool write_file(const std::filesystem::path& path, const void* bytes, size_t size, std::string* error) {
  qplan_error why = {};
  why.struct_size = sizeof(why);
  if (qplan_file_write(path.string().c_str(), bytes, size, &why) == QPLAN_OK) return true;
  *error = why.text;
  return false;
}

bool write_files(const std::filesystem::path& path, const RecordedJob& record, std::string* error) {
  std::string text = "target ethosu\n";
  for (size_t r = 0; r < record.regions.size(); ++r)
    text += "region " + std::to_string(r) + " " + std::to_string(record.regions[r].bytes) + "\n";
  for (size_t r = 0; r < record.regions.size(); ++r) {
    if (record.regions[r].is_constant) text += "readonly " + std::to_string(r) + "\n";
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
  text += "run payload.bin\n";
  if (!write_file(path / "payload.bin", record.payload->data(), record.payload->size(), error)) return false;
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
  std::string number = std::to_string(job);
  if (number.size() < 4) number.insert(0, 4 - number.size(), '0');
  const std::filesystem::path path = std::filesystem::path(directory) / ("job-" + number);
  std::error_code code;
  const bool is_new = std::filesystem::create_directories(path, code);
  if (code) {
    *error = "cannot make '" + path.string() + "': " + code.message();
    return false;
  }
  if (write_files(path, record, error)) return true;
  if (is_new) std::filesystem::remove_all(path, code);  // a part of a job is of no use
  return false;
}

}  // namespace qplan::ethosu::sim
