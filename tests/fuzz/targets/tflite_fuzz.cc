// A .tflite model, to the packer; what packs runs. Mutants are well-formed FlatBuffers of the schema.
#include "src/packer/import/tflite/tflite_subset_generated.h"
#include "tests/fuzz/model_oracle.h"
#include "tests/fuzz/mutators/flatbuffer_tree.h"
#include "tests/fuzz/tflite_subset_bfbs_generated.h"

namespace qplan::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 16;

const FlatSchema& schema() {
  static const FlatSchema kSchema(tflite::ModelBinarySchema::data());
  return kSchema;
}

// False where the bytes are no FlatBuffer of the schema.
bool read(const uint8_t* data, size_t size, FlatTable* tree) {
  if (size < 8) return false;
  const ExactMemory aligned(Bytes(data, data + size));
  flatbuffers::Verifier verifier(aligned.data(), size);
  if (!tflite::VerifyModelBuffer(verifier)) return false;
  *tree = schema().read(aligned.data());
  return true;
}

size_t put(const std::string& bytes, uint8_t* to, size_t max_size) {
  if (bytes.size() > max_size) return 0;
  std::memcpy(to, bytes.data(), bytes.size());
  return bytes.size();
}

}  // namespace
}  // namespace qplan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace qplan::fuzz;
  if (size > kMostBytes) return -1;
  check_model(data, size, "model.tflite", pack_options());
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  using namespace qplan::fuzz;
  Random random(seed);
  FlatTable tree;
  if (random.chance(0.05) || !read(data, size, &tree)) return LLVMFuzzerMutate(data, size, max_size);
  schema().mutate(random, &tree);
  const size_t changed = put(schema().write(tree, "TFL3"), data, max_size);
  return changed != 0 ? changed : LLVMFuzzerMutate(data, size, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                            size_t size2, uint8_t* out, size_t max_out_size,
                                            unsigned int seed) {
  using namespace qplan::fuzz;
  Random random(seed);
  FlatTable tree, other;
  if (!read(data1, size1, &tree) || !read(data2, size2, &other)) return 0;
  schema().cross(random, &tree, other);
  return put(schema().write(tree, "TFL3"), out, max_out_size);
}
