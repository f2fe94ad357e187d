// TorchScript archives made by hand: zip entries, pickles and code, sound or broken.
#ifndef QPLAN_TESTS_PACKER_IMPORT_PYTORCH_BUILDER_H_
#define QPLAN_TESTS_PACKER_IMPORT_PYTORCH_BUILDER_H_

#include <zlib.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace qplan::pytorch_test {

using Bytes = std::vector<uint8_t>;

inline void put(Bytes& to, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) to.push_back(i < 8 ? static_cast<uint8_t>(value >> (8 * i)) : uint8_t{0});
}
inline void put(Bytes& to, std::string_view text) { to.insert(to.end(), text.begin(), text.end()); }
template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
inline Bytes to_bytes(std::string_view text) { return {text.begin(), text.end()}; }

// A zip whose fields a test can falsify before it is put together.
class ZipBuilder {
 public:
  struct Entry {
    std::string name;
    Bytes packed;
    uint64_t size = 0;
    uint32_t crc = 0;
    uint16_t method = 0;
    uint16_t flags = 0;
    bool zip64 = false;      // sizes in a zip64 field of the central directory
    std::string local_name;  // of the local header
  };

  Entry& add(const std::string& name, const Bytes& contents, bool deflated = false) {
    Entry entry{.name = name, .packed = contents, .size = contents.size(), .local_name = name};
    entry.crc = static_cast<uint32_t>(crc32(0, contents.data(), static_cast<uInt>(contents.size())));
    if (deflated) {
      entry.method = 8;
      entry.packed = deflate_raw(contents);
    }
    entries_.push_back(std::move(entry));
    return entries_.back();
  }
  Entry& entry(size_t i) { return entries_.at(i); }

  // before: what the file has before the zip.
  Bytes build(const Bytes& before = {}) const {
    Bytes zip = before;
    std::vector<uint64_t> offsets;
    for (const Entry& entry : entries_) {
      offsets.push_back(zip.size());
      put(zip, 0x04034b50, 4);
      put(zip, 20, 2);
      put(zip, entry.flags, 2);
      put(zip, entry.method, 2);
      put(zip, 0, 4);  // time
      put(zip, 0, 4);  // CRC and sizes are in a descriptor after the contents, as PyTorch writes them
      put(zip, 0, 8);
      put(zip, entry.local_name.size(), 2);
      put(zip, 4, 2);
      put(zip, entry.local_name);
      put(zip, "FB");
      put(zip, 0, 2);
      zip.insert(zip.end(), entry.packed.begin(), entry.packed.end());
    }
    const uint64_t directory = zip.size();
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Entry& entry = entries_[i];
      put(zip, 0x02014b50, 4);
      put(zip, 20 | 20u << 16, 4);
      put(zip, entry.flags, 2);
      put(zip, entry.method, 2);
      put(zip, 0, 4);
      put(zip, entry.crc, 4);
      put(zip, entry.zip64 ? 0xffffffff : entry.packed.size(), 4);
      put(zip, entry.zip64 ? 0xffffffff : entry.size, 4);
      put(zip, entry.name.size(), 2);
      put(zip, entry.zip64 ? 20 : 0, 2);
      put(zip, 0, 2 + 2 + 2 + 4);  // comment, disk, attributes
      put(zip, offsets[i], 4);
      put(zip, entry.name);
      if (entry.zip64) {
        put(zip, 1 | 16u << 16, 4);
        put(zip, entry.size, 8);
        put(zip, entry.packed.size(), 8);
      }
    }
    const uint64_t size = zip.size() - directory;
    put(zip, 0x06054b50, 4);
    put(zip, 0, 4);
    put(zip, entries_.size(), 2);
    put(zip, entries_.size(), 2);
    put(zip, size, 4);
    put(zip, directory, 4);
    put(zip, 0, 2);
    return zip;
  }

 private:
  static Bytes deflate_raw(const Bytes& contents) {
    z_stream stream{};
    deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    Bytes packed(deflateBound(&stream, contents.size()));
    stream.next_in = const_cast<Bytef*>(contents.data());
    stream.avail_in = static_cast<uInt>(contents.size());
    stream.next_out = packed.data();
    stream.avail_out = static_cast<uInt>(packed.size());
    deflate(&stream, Z_FINISH);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
  }

  std::vector<Entry> entries_;
};

// Opcodes of a pickle, one after the other.
class PickleWriter {
 public:
  PickleWriter() { put(bytes_, 0x0280, 2); }
  PickleWriter& op(char opcode) {
    bytes_.push_back(static_cast<uint8_t>(opcode));
    return *this;
  }
  PickleWriter& raw(std::string_view bytes) {
    put(bytes_, bytes);
    return *this;
  }
  PickleWriter& integer(int64_t value) {
    op('\x8a').op(8);
    put(bytes_, static_cast<uint64_t>(value), 8);
    return *this;
  }
  PickleWriter& number(double value) {
    op('G');
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int i = 7; i >= 0; --i) bytes_.push_back(static_cast<uint8_t>(bits >> (8 * i)));
    return *this;
  }
  PickleWriter& text(std::string_view value) {
    op('X');
    put(bytes_, value.size(), 4);
    put(bytes_, value);
    return *this;
  }
  PickleWriter& global(std::string_view module, std::string_view name) {
    op('c');
    put(bytes_, module);
    bytes_.push_back('\n');
    put(bytes_, name);
    bytes_.push_back('\n');
    return *this;
  }
  PickleWriter& integers(const std::vector<int64_t>& values) {
    op('(');
    for (const int64_t value : values) integer(value);
    return op('t');
  }
  // type: "FloatStorage".
  PickleWriter& storage(std::string_view type, std::string_view key, int64_t count) {
    return op('(').text("storage").global("torch", type).text(key).text("cpu").integer(count).op('t').op('Q');
  }
  PickleWriter& tensor(std::string_view type, std::string_view key, int64_t count, int64_t offset,
                       const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
    global("torch._utils", "_rebuild_tensor_v2").op('(').storage(type, key, count).integer(offset);
    return integers(sizes).integers(strides).op('\x89').order().op('t').op('R');
  }
  PickleWriter& order() { return global("collections", "OrderedDict").raw(")R"); }
  // What follows is the quantiser, then end_quantized().
  PickleWriter& begin_quantized(std::string_view key, int64_t count, const std::vector<int64_t>& sizes,
                                const std::vector<int64_t>& strides) {
    global("torch._utils", "_rebuild_qtensor").op('(').storage("QInt8Storage", key, count).integer(0);
    return integers(sizes).integers(strides).op('(');
  }
  PickleWriter& end_quantized() { return op('t').op('\x89').order().op('t').op('R'); }
  Bytes stop() const {
    Bytes bytes = bytes_;
    bytes.push_back('.');
    return bytes;
  }

 private:
  Bytes bytes_;
};

// An archive of a module `__torch__.Net` with the forward that a test gives, and two constants:
//   c0  a convolution: int8 weights [2, 2, 1, 1], one scale per channel (0.5, 0.25), bias (1, -2)
//   c1  a linear layer: int8 weights [3, 4], scale 0.5, bias absent
class ArchiveBuilder {
 public:
  // body: the statements of forward(self, x: Tensor), indented by four spaces.
  explicit ArchiveBuilder(const std::string& body, const std::string& parameters = ", x: Tensor")
      : code_("class Net(Module):\n  __parameters__ = []\n  def forward(self: __torch__.Net" + parameters +
              ") -> Tensor:\n" + body) {
    module_.global("__torch__", "Net").raw(")\x81}b");
  }

  Bytes build() {
    ZipBuilder zip;
    zip.add("net/data.pkl", module_.stop());
    zip.add("net/code/__torch__.py", to_bytes(code_), true);
    for (const auto& [name, text] : files_) zip.add("net/code/" + name, to_bytes(text), true);
    zip.add("net/constants.pkl", constants());
    for (const auto& [name, contents] : storages_) zip.add("net/" + name, contents);
    if (!byte_order.empty()) zip.add("net/byteorder", to_bytes(byte_order));
    return zip.build();
  }

  ArchiveBuilder& file(const std::string& name, const std::string& text) {
    files_.emplace_back(name, text);
    return *this;
  }
  ArchiveBuilder& module(const PickleWriter& pickle) {
    module_ = pickle;
    return *this;
  }
  ArchiveBuilder& storage(const std::string& name, Bytes contents) {
    storages_.emplace_back(name, std::move(contents));
    return *this;
  }
  std::string byte_order;  // empty: the archive does not say
  std::vector<int16_t> conv_config = {2, 1, 1, 0, 0, 1, 1, 0, 0, 1, 0};

 private:
  Bytes constants() {
    storage("constants/0", bytes_of<int16_t>(conv_config));
    storage("constants/1", bytes_of<int8_t>({1, 2, 3, 4}));
    storage("constants/2", bytes_of<double>({0.5, 0.25}));
    storage("constants/3", bytes_of<int64_t>({0, 0}));
    storage("constants/4", bytes_of<float>({1, -2}));
    storage("constants/5", bytes_of<int8_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
    PickleWriter p;
    p.op('(');
    p.global("__torch__.torch.classes.quantized", "Conv2dPackedParamsBase").raw(")\x81").op('(');
    p.text("2").op(']').op('(');
    p.tensor("ShortStorage", "0", static_cast<int64_t>(conv_config.size()), 0,
             {static_cast<int64_t>(conv_config.size())}, {1});
    p.begin_quantized("1", 4, {2, 2, 1, 1}, {2, 1, 1, 1}).global("torch", "per_channel_affine");
    p.tensor("DoubleStorage", "2", 2, 0, {2}, {1}).tensor("LongStorage", "3", 2, 0, {2}, {1}).integer(0);
    p.end_quantized().op('e').op(']').op('(');
    p.tensor("FloatStorage", "4", 2, 0, {2}, {1}).op('e').op('t').op('b');
    p.global("__torch__.torch.classes.quantized", "LinearPackedParamsBase").raw(")\x81").op('(');
    p.begin_quantized("5", 12, {3, 4}, {4, 1}).global("torch", "per_tensor_affine").number(0.5).integer(0);
    p.end_quantized().op('N').op('t').op('b');
    return p.op('t').stop();
  }

  std::string code_;
  PickleWriter module_;
  std::vector<std::pair<std::string, std::string>> files_;
  std::vector<std::pair<std::string, Bytes>> storages_;
};

}  // namespace qplan::pytorch_test

#endif  // QPLAN_TESTS_PACKER_IMPORT_PYTORCH_BUILDER_H_
