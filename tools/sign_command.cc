// qplan sign, qplan verify: signatures of plans with Ed25519, by libsodium.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifdef QPLAN_HAS_SODIUM
#include <sodium.h>
#endif

#include "qplan/host.h"
#include "qplan/signature.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/model_options.h"
#include "tools/number_option.h"
#include "tools/reports.h"

namespace qplan::tools {
namespace {

struct SignOptions {
  std::string plan, key, output, new_key;
  uint64_t counter = 0;
};

struct VerifyOptions {
  std::string plan;
  std::vector<std::string> keys;
  uint64_t min_counter = 0;
  bool json = false;
};

#ifdef QPLAN_HAS_SODIUM

constexpr char kSecretPrefix[] = "qplan-ed25519-secret-1 ";
constexpr char kPublicPrefix[] = "qplan-ed25519-public-1 ";

using KeyBytes = std::vector<uint8_t>;  // 32: the seed, or the public key

void init_sodium() {
  if (sodium_init() < 0) throw Failure("libsodium cannot be used: it finds no source of random numbers");
}

std::string hex_text(const uint8_t* bytes, size_t size) {
  std::string text(2 * size + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes, size);
  text.pop_back();
  return text;
}

// One line of text: the prefix and 64 hexadecimal digits.
KeyBytes read_key(const std::string& path, const std::string& prefix) {
  std::vector<uint8_t> file =
      read_file(path, "key", {.bytes = 4096, .expected = "expected the key of qplan sign"});
  std::string text(file.begin(), file.end());
  sodium_memzero(file.data(), file.size());
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  KeyBytes key(crypto_sign_SEEDBYTES);
  size_t length = 0;
  const bool fits = text.rfind(prefix, 0) == 0 && text.size() == prefix.size() + 2 * key.size() &&
                    sodium_hex2bin(key.data(), key.size(), text.c_str() + prefix.size(), 2 * key.size(),
                                   nullptr, &length, nullptr) == 0;
  const bool is_other = text.rfind(prefix == kSecretPrefix ? kPublicPrefix : kSecretPrefix, 0) == 0;
  sodium_memzero(text.data(), text.size());
  if (fits) return key;
  throw Failure("key '" + path + "': " +
                (is_other ? (prefix == kSecretPrefix ? "is a public key, expected the secret one"
                                                     : "is a secret key, expected the public one (.pub)")
                          : "is no key of qplan sign; make a pair with qplan sign --new-key FILE"));
}

void key_id_of(const uint8_t* public_key, uint8_t* id) {
  uint8_t digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(digest, public_key, crypto_sign_PUBLICKEYBYTES);
  std::memcpy(id, digest, QPLAN_KEY_ID_BYTES);
}

[[noreturn]] void refuse_existing(const std::string& path) {
  throw Failure("key '" + path + "': the file exists, and sign replaces no key; give another name");
}

// A new file of a pair of keys, which goes again unless it is kept: half a pair is of no use, and would be in
// the way of the next try.
class NewKeyFile {
 public:
  // Failure where there is a file of that name, which stays as it is.
  NewKeyFile(std::string path, mode_t mode) : path_(std::move(path)) {
    do {
      file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    } while (file_ < 0 && errno == EINTR);
    if (file_ < 0 && errno == EEXIST) refuse_existing(path_);
    if (file_ < 0) fail("cannot be created", errno);
  }
  NewKeyFile(const NewKeyFile&) = delete;
  NewKeyFile& operator=(const NewKeyFile&) = delete;
  ~NewKeyFile() {
    if (file_ >= 0) ::close(file_);
    if (!is_kept_) ::unlink(path_.c_str());
  }

  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(file_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail("cannot be written", written < 0 ? errno : ENOSPC);
      text.remove_prefix(static_cast<size_t>(written));
    }
    while (::fsync(file_) != 0) {
      if (errno != EINTR) fail("cannot be written", errno);
    }
    const int file = std::exchange(file_, -1);
    // A signal during close takes nothing back that has been synchronised.
    if (::close(file) != 0 && errno != EINTR) fail("cannot be written", errno);
  }
  void keep() { is_kept_ = true; }

 private:
  [[noreturn]] void fail(const char* what, int reason) const {
    throw Failure("key '" + path_ + "': " + what + ": " + std::strerror(reason) + "; no key was made");
  }

  const std::string path_;
  int file_ = -1;
  bool is_kept_ = false;
};

void make_key(const std::string& path) {
  init_sodium();
  NewKeyFile public_file(path + ".pub", 0666);
  NewKeyFile secret_file(path, S_IRUSR | S_IWUSR);  // nobody else may read it
  KeyBytes seed(crypto_sign_SEEDBYTES), secret(crypto_sign_SECRETKEYBYTES), pub(crypto_sign_PUBLICKEYBYTES);
  randombytes_buf(seed.data(), seed.size());
  crypto_sign_seed_keypair(pub.data(), secret.data(), seed.data());
  const std::string text = kPublicPrefix + hex_text(pub.data(), pub.size()) + "\n";
  std::string secret_text = kSecretPrefix + hex_text(seed.data(), seed.size()) + "\n";
  sodium_memzero(seed.data(), seed.size());
  sodium_memzero(secret.data(), secret.size());
  public_file.write(text);
  secret_file.write(secret_text);
  sodium_memzero(secret_text.data(), secret_text.size());
  public_file.keep();
  secret_file.keep();
  uint8_t id[QPLAN_KEY_ID_BYTES];
  key_id_of(pub.data(), id);
  print("secret key: " + path + "\npublic key: " + path + ".pub, id " + hex_text(id, sizeof id) + "\n");
}

template <typename T>
void append(std::string* text, const T& value) {
  text->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// What follows the plan (format/README.md), with this signature.
std::string trailer_text(uint64_t counter, const uint8_t* key_id, const uint8_t* signature) {
  std::string text = "QPSG";
  append(&text, uint16_t{1});  // version
  append(&text, uint16_t{1});  // Ed25519
  append(&text, counter);
  text.append(reinterpret_cast<const char*>(key_id), QPLAN_KEY_ID_BYTES);
  text.append(reinterpret_cast<const char*>(signature), QPLAN_SIGNATURE_BYTES);
  return text;
}

void sign(const SignOptions& options) {
  init_sodium();
  const std::string output = options.output.empty() ? options.plan : options.output;
  check_outputs({{"--output", options.output}}, {{"--key", options.key}});
  KeyBytes seed = read_key(options.key, kSecretPrefix);
  KeyBytes secret(crypto_sign_SECRETKEYBYTES), pub(crypto_sign_PUBLICKEYBYTES);
  crypto_sign_seed_keypair(pub.data(), secret.data(), seed.data());
  sodium_memzero(seed.data(), seed.size());
  uint8_t key_id[QPLAN_KEY_ID_BYTES], signature[QPLAN_SIGNATURE_BYTES] = {};
  key_id_of(pub.data(), key_id);

  std::string bytes;
  {
    const PlanFile plan(options.plan, QPLAN_PLAN_DIGEST);  // nobody signs what is damaged
    const auto size = nlohmann::json::parse(inspect_text(plan.bytes(), plan.size(), plan.path()))
                          .at("file_bytes")
                          .get<size_t>();
    bytes.assign(static_cast<const char*>(plan.bytes()), size);
  }
  const size_t plan_size = bytes.size();
  bytes += trailer_text(options.counter, key_id, signature);
  qplan_signature_info info{};
  info.struct_size = sizeof info;
  qplan_error error = make_error();
  check(qplan_signature_read(bytes.data(), bytes.size(), &info, &error), error, "'" + options.plan + "'");
  crypto_sign_detached(signature, nullptr, info.message, sizeof info.message, secret.data());
  sodium_memzero(secret.data(), secret.size());
  bytes.resize(plan_size);
  bytes += trailer_text(options.counter, key_id, signature);
  check(qplan_file_write(output.c_str(), bytes.data(), bytes.size(), &error), error, "");
  print("signed '" + one_line(output) + "' with key " + hex_text(key_id, sizeof key_id) + ", counter " +
        std::to_string(options.counter) + "\n");
}

int32_t verify_with_keys(void* user, const uint8_t* key_id, const uint8_t* message, size_t message_size,
                         const uint8_t* signature) {
  for (const KeyBytes& key : *static_cast<std::vector<KeyBytes>*>(user)) {
    uint8_t id[QPLAN_KEY_ID_BYTES];
    key_id_of(key.data(), id);
    if (std::memcmp(id, key_id, sizeof id) == 0)
      return crypto_sign_verify_detached(signature, message, message_size, key.data()) == 0 ? 1 : 0;
  }
  return 0;
}

void verify_signature(const VerifyOptions& options) {
  init_sodium();
  std::vector<KeyBytes> keys;
  for (const std::string& path : options.keys) keys.push_back(read_key(path, kPublicPrefix));
  qplan_file file{};
  qplan_error error = make_error();
  check(qplan_file_map(options.plan.c_str(), &file, &error), error, "");
  const std::unique_ptr<qplan_file, void (*)(qplan_file*)> owner(&file, qplan_file_unmap);
  qplan_trust trust{};
  trust.struct_size = sizeof trust;
  trust.min_counter = options.min_counter;
  trust.user = &keys;
  trust.verify = verify_with_keys;
  qplan_plan plan;
  qplan_signature_info info{};
  info.struct_size = sizeof info;
  check(qplan_plan_open_signed(&plan, file.bytes, file.size, QPLAN_PLAN_DIGEST, &trust, &info, &error), error,
        "'" + options.plan + "'");
  const std::string id = hex_text(info.key_id, sizeof info.key_id);
  if (options.json) {
    print(json_page({{"plan", options.plan}, {"key", id}, {"counter", info.counter}}));
  } else {
    print("OK: signed with key " + id + ", counter " + std::to_string(info.counter) + "\n");
  }
}

#else

[[noreturn]] void refuse() {
  throw Failure(
      "this build of qplan has no signatures: it was built without libsodium; install it (Debian: "
      "libsodium-dev) "
      "and build again");
}
void make_key(const std::string&) { refuse(); }
void sign(const SignOptions&) { refuse(); }
void verify_signature(const VerifyOptions&) { refuse(); }

#endif

void run(const SignOptions& options, const CLI::App& command) {
  if (command.count("--new-key") > 0) {
    for (const char* other : {"PLAN", "--key", "--counter", "--output"}) {
      if (command.count(other) == 0) continue;
      throw UsageError(std::string("--new-key: stands alone, found it with ") + other +
                       "; make the keys first, and sign with --key FILE then");
    }
    return make_key(options.new_key);
  }
  if (options.plan.empty()) throw CLI::RequiredError("PLAN");
  if (options.key.empty()) throw CLI::RequiredError("--key");
  sign(options);
}

}  // namespace

void add_sign_command(CLI::App& app) {
  auto options = std::make_shared<SignOptions>();
  CLI::App* command = app.add_subcommand("sign", "Sign a plan with Ed25519");
  command->add_option("PLAN", options->plan, "Plan file; a signature that it has is replaced")->type_name("");
  command->add_option("--key", options->key, "Secret key, of --new-key")->type_name("FILE");
  command
      ->add_option(
          "--counter", options->counter,
          "A number that grows with each release (default 0): devices refuse plans with a lower one than "
          "they have seen")
      ->type_name("N")
      ->transform(whole_number());
  command
      ->add_option("-o,--output", options->output,
                   "Where the signed plan is written; without it PLAN is replaced, as a whole or not at all")
      ->type_name("FILE");
  command
      ->add_option(
          "--new-key", options->new_key,
          "Make a pair of keys: the secret one in a new file that only you can read, the public one in "
          "FILE.pub")
      ->type_name("FILE");
  command->footer(
      "The signature follows the plan in its file; everything else reads the plan as before. Devices check "
      "it\n"
      "with qplan_plan_open_signed (qplan/signature.h).\n"
      "Examples:\n"
      "  qplan sign --new-key release.key\n"
      "  qplan sign model.qplan --key release.key --counter 7\n"
      "  qplan verify model.qplan --key release.key.pub --min-counter 7");
  command->callback([options, command]() { run(*options, *command); });
}

void add_verify_command(CLI::App& app) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand("verify", "Check the signature of a plan");
  command->add_option("PLAN", options->plan, "Plan file")->required()->type_name("");
  command->add_option("--key", options->keys, "A public key that is trusted; may be repeated")
      ->required()
      ->type_name("FILE");
  command->add_option("--min-counter", options->min_counter, "Refuse a plan with a lower counter (default 0)")
      ->type_name("N")
      ->transform(whole_number());
  command->add_flag("--json", options->json, "Print key and counter as JSON");
  command->footer(
      "Exit status: 0 signed by one of the keys, 1 not signed, changed, by another key, or too old.\n"
      "Examples:\n"
      "  qplan verify model.qplan --key release.key.pub && echo authentic\n"
      "  qplan verify model.qplan --key old.pub --key new.pub --min-counter 7 --json");
  command->callback([options]() { verify_signature(*options); });
}

}  // namespace qplan::tools
