// qplan eval: how often a plan is right about a folder of pictures.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "qplan/host.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/given_options.h"
#include "tools/model_options.h"
#include "tools/number_option.h"
#include "tools/reports.h"
#include "tools/session.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxLabelOffset = 1'000'000;

struct EvalOptions {
  std::string plan, images, labels, names, against, mean, std, csv;
  SessionOptions session;
  int64_t offset = 0;
  uint32_t top = 5;
  uint32_t worst = 10;
  uint32_t output = 0;
  bool json = false;
};

// A picture, and what is known of it.
struct Sample {
  std::string file;  // below the folder
  std::optional<int64_t> label;
  std::vector<Score> best;              // the answers, best first
  std::optional<int64_t> other_answer;  // of --against
};

// The fields of a line of a CSV file, and where in the file it begins, from 1.
struct CsvLine {
  size_t number = 1;
  std::vector<std::string> fields{1};
};

// The lines of a CSV file that are not empty, as RFC 4180 has them: fields that begin with a quotation mark
// hold anything up to the next one, two of which stand for one.
std::vector<CsvLine> read_csv(const std::string& path, std::string_view what) {
  const std::string text = read_text(path, what);
  std::vector<CsvLine> lines;
  CsvLine line;
  size_t number = 1;
  const auto fail = [&](size_t at, const char* reason) {
    throw Failure(std::string(what) + " '" + path + "', line " + std::to_string(at) + ": " + reason);
  };
  const auto end_line = [&]() {
    if (line.fields.size() > 1 || !line.fields[0].empty()) lines.push_back(line);
    line = {++number};
  };
  // What stands in the quotation marks of which the first is at i; i is moved to the second.
  const auto read_quoted = [&](size_t& i) {
    const size_t begin = number;
    while (++i < text.size() && (text[i] != '"' || text.substr(i + 1, 1) == "\"")) {
      if (text[i] == '"') ++i;
      number += text[i] == '\n' ? 1 : 0;
      line.fields.back() += text[i];
    }
    if (i == text.size()) fail(begin, "a quotation mark begins a field that no other one ends");
    if (i + 1 < text.size() && std::strchr(",\r\n", text[i + 1]) == nullptr)
      fail(number, "expected a comma or the end of the line after a quotation mark that ends a field");
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && line.fields.back().empty()) {
      read_quoted(i);
    } else if (text[i] == ',') {
      line.fields.emplace_back();
    } else if (text[i] == '\n') {
      end_line();
    } else if (text[i] != '\r') {
      line.fields.back() += text[i];
    }
  }
  end_line();
  return lines;
}

bool is_number(const std::string& text, int64_t* value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *value);
  return !text.empty() && result.ec == std::errc() && result.ptr == text.data() + text.size();
}

bool is_name_of(const Sample& sample, const std::string& name) {
  return name == sample.file || name == sample.file.substr(sample.file.rfind('/') + 1);
}

// "file,class" lines as a table. A class is a number, or a name of --names. The first line may be a heading,
// which names none of the samples.
std::map<std::string, int64_t> read_classes(const std::string& path, const char* option,
                                            const std::vector<std::string>& names, int64_t offset,
                                            const std::vector<Sample>& samples) {
  std::map<std::string, int64_t> classes;
  const std::vector<CsvLine> lines = read_csv(path, option);
  for (const CsvLine& line : lines) {
    const std::string where =
        std::string(option) + " '" + path + "', line " + std::to_string(line.number) + ": ";
    if (line.fields.size() < 2) throw Failure(where + "has one field, expected a file and its class");
    const std::string& file = line.fields[0];
    const std::string& word = line.fields[1];
    int64_t value = 0;
    if (is_number(word, &value)) {
      if (__builtin_add_overflow(value, offset, &value)) throw Failure(where + "'" + word + "' is too large");
    } else {
      const auto at = word.empty() ? names.end() : std::ranges::find(names, word);
      if (at == names.end()) {
        const bool is_of_sample =
            std::ranges::any_of(samples, [&](const Sample& sample) { return is_name_of(sample, file); });
        if (&line == &lines.front() && !is_of_sample) continue;
        throw Failure(
            where + "'" + word + "' is no number" +
            (names.empty() ? "; --names FILE says which class has which name" : " and not in --names"));
      }
      if (std::find(at + 1, names.end(), word) != names.end()) {
        throw Failure(where + "'" + word + "' is the name of two classes in --names; give the number of one");
      }
      value = at - names.begin();
    }
    if (!classes.emplace(file, value).second) throw Failure(where + "'" + file + "' has a class already");
  }
  return classes;
}

bool is_input_file(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  return has_image_extension(path.string()) || extension == ".npy" || extension == ".bin";
}

std::vector<Sample> find_samples(const std::string& directory) {
  std::vector<Sample> samples;
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error))
    throw Failure("--images '" + directory + "': is not a directory");
  std::string reading = directory;  // the folder or the file at hand
  std::filesystem::recursive_directory_iterator at(directory, error), end;
  while (!error && at != end) {
    const std::filesystem::directory_entry& entry = *at;
    reading = entry.path().string();
    if (entry.is_regular_file(error) && is_input_file(entry.path())) {
      Sample sample;
      sample.file = entry.path().lexically_relative(directory).generic_string();
      samples.push_back(std::move(sample));
    }
    error.clear();  // of a link that leads nowhere
    at.increment(error);
  }
  if (error) throw Failure("--images '" + reading + "': cannot be read: " + error.message());
  std::ranges::sort(samples, {}, &Sample::file);
  if (samples.empty()) {
    throw Failure("--images '" + directory +
                  "': has no pictures (.bmp .png .jpg), and no tensors (.npy .bin), it or its folders");
  }
  return samples;
}

// Files of a table are those of the folder, by their path in it or their name alone.
void assign(const std::map<std::string, int64_t>& classes, const char* option, std::vector<Sample>* samples,
            std::optional<int64_t> Sample::*member) {
  std::set<std::string> used;
  std::vector<std::string> missing;
  for (Sample& sample : *samples) {
    auto at = classes.find(sample.file);
    if (at == classes.end()) at = classes.find(sample.file.substr(sample.file.rfind('/') + 1));
    if (at == classes.end()) {
      missing.push_back(sample.file);
      continue;
    }
    sample.*member = at->second;
    used.insert(at->first);
  }
  if (!missing.empty()) {
    throw Failure(std::string(option) + ": has no class for " +
                  count_text(missing.size(), "picture", "pictures") + ", the first is '" + missing[0] + "'");
  }
  if (used.size() < classes.size()) {
    const auto unused =
        std::ranges::find_if(classes, [&](const auto& entry) { return !used.contains(entry.first); });
    throw Failure(std::string(option) + ": names " +
                  count_text(classes.size() - used.size(), "file", "files") +
                  " that --images does not have, the first is '" + unused->first + "'");
  }
}

class Classifier {
 public:
  Classifier(const std::string& path, const EvalOptions& options)
      : plan_(open(path, options.session.custom_operators)),
        session_(*plan_, options.session),
        options_(options) {
    inputs_ = tensor_infos(plan_->plan(), QPLAN_INPUT);
    outputs_ = tensor_infos(plan_->plan(), QPLAN_OUTPUT);
    if (inputs_.size() != 1) {
      throw Failure("plan '" + path + "': has " + count_text(inputs_.size(), "input", "inputs") +
                    ", expected one, the picture");
    }
    if (options.output >= outputs_.size()) {
      throw Failure("--output " + std::to_string(options.output) + ": plan '" + path + "' has " +
                    count_text(outputs_.size(), "output", "outputs"));
    }
    normalisation_ = PlanMetadata(*plan_).normalisation(0, options.mean, options.std);
  }

  // The best answers first. A score that is NaN is no answer.
  std::vector<Score> best(const std::string& file, uint32_t count) {
    std::vector<uint8_t> input =
        load_input(file, inputs_[0], describe(QPLAN_INPUT, 0, inputs_[0]), normalisation_);
    session_.reset_state();  // each picture is a sequence of its own
    session_.write(0, packed_tensor(inputs_[0], input.data()));
    session_.invoke();
    const qplan_tensor_info& info = outputs_[options_.output];
    std::vector<uint8_t> scores(info.size_bytes);
    session_.read(options_.output, packed_tensor(info, scores.data()));
    std::vector<Score> best = top_scores(info, scores.data(), count);
    std::erase_if(best, [](const Score& score) { return std::isnan(score.score); });
    return best;
  }
  void check_options() const { check_npu_options(options_.session.npu, *plan_); }
  uint64_t num_classes() const { return element_count(outputs_[options_.output]); }

 private:
  static std::unique_ptr<PlanFile> open(const std::string& path, const std::string& custom_operators) {
    if (is_plan_file(path)) return std::make_unique<PlanFile>(path);
    ModelOptions model;
    model.model = path;
    model.custom_operators = custom_operators;
    return std::make_unique<PlanFile>(path, pack_model(model, {}, QPLAN_FUSE_AUTO));
  }

  std::unique_ptr<PlanFile> plan_;
  Session session_;
  const EvalOptions& options_;
  std::vector<qplan_tensor_info> inputs_, outputs_;
  Normalisation normalisation_;
};

bool is_right(const Sample& sample, size_t count) {
  return std::any_of(sample.best.begin(), sample.best.begin() + std::min(count, sample.best.size()),
                     [&](const Score& score) { return static_cast<int64_t>(score.index) == *sample.label; });
}

constexpr int64_t kNoAnswer = -1;

int64_t answer_of(const std::vector<Score>& best) {
  return best.empty() ? kNoAnswer : static_cast<int64_t>(best[0].index);
}
int64_t answer(const Sample& sample) { return answer_of(sample.best); }

class Evaluation {
 public:
  Evaluation(std::vector<Sample> samples, const EvalOptions& options, std::vector<std::string> names)
      : samples_(std::move(samples)), options_(options), names_(std::move(names)) {
    std::map<std::pair<int64_t, int64_t>, uint64_t> pairs;
    for (const Sample& sample : samples_) {
      if (sample.label) {
        ++labelled_;
        right_ += is_right(sample, 1) ? 1 : 0;
        right_of_top_ += is_right(sample, options.top) ? 1 : 0;
        if (!is_right(sample, 1)) ++pairs[{*sample.label, answer(sample)}];
      }
      if (sample.other_answer) {
        ++compared_;
        agreed_ += *sample.other_answer == answer(sample) ? 1 : 0;
        other_right_ += sample.label && *sample.label == *sample.other_answer ? 1 : 0;
      }
    }
    confusions_.assign(pairs.begin(), pairs.end());
    std::ranges::stable_sort(confusions_, [](const auto& a, const auto& b) { return a.second > b.second; });
    if (confusions_.size() > options.worst) confusions_.resize(options.worst);
  }

  [[nodiscard]] std::string text() const {
    std::string text = count_text(samples_.size(), "picture", "pictures") + "\n";
    if (labelled_ > 0) {
      text += "top-1  " + share(right_, labelled_) + "\ntop-" + std::to_string(options_.top) + "  " +
              share(right_of_top_, labelled_) + "\n";
    }
    if (compared_ > 0) {
      text += "same answer as '" + options_.against + "'  " + share(agreed_, compared_) + "\n";
      if (labelled_ > 0)
        text += "top-1 of '" + options_.against + "'  " + share(other_right_, compared_) + "\n";
    }
    if (!confusions_.empty()) text += "most frequent mistakes:\n";
    for (const auto& [pair, count] : confusions_)
      text +=
          "  " + std::to_string(count) + " x  " + name(pair.first) + " taken for " + name(pair.second) + "\n";
    return text;
  }

  [[nodiscard]] Json json() const {
    Json report;
    report["plan"] = options_.plan;
    report["pictures"] = samples_.size();
    report["labelled"] = labelled_;
    report["top1"] = labelled_ == 0 ? Json() : Json(ratio(right_, labelled_));
    report["topk"] = labelled_ == 0 ? Json() : Json(ratio(right_of_top_, labelled_));
    report["k"] = options_.top;
    report["right"] = right_;
    if (compared_ > 0) {
      report["against"] = options_.against;
      report["agreement"] = ratio(agreed_, compared_);
      report["against_top1"] = labelled_ == 0 ? Json() : Json(ratio(other_right_, compared_));
    }
    report["confusions"] = Json::array();
    for (const auto& [pair, count] : confusions_) {
      report["confusions"].push_back({{"label", pair.first},
                                      {"answer", pair.second},
                                      {"label_name", name(pair.first)},
                                      {"answer_name", name(pair.second)},
                                      {"count", count}});
    }
    return report;
  }

  [[nodiscard]] std::string csv() const {
    std::string text = "file,answer,score,label,right,answer_of_other\n";
    for (const Sample& sample : samples_) {
      char score[32] = "";
      if (!sample.best.empty()) std::snprintf(score, sizeof score, "%.9g", sample.best[0].score);
      text += csv_text(sample.file) + "," + std::to_string(answer(sample)) + "," + score + "," +
              (sample.label ? std::to_string(*sample.label) : "") + "," +
              (sample.label ? (is_right(sample, 1) ? "1" : "0") : "") + "," +
              (sample.other_answer ? std::to_string(*sample.other_answer) : "") + "\n";
    }
    return text;
  }

 private:
  static double ratio(uint64_t part, uint64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  }
  static std::string share(uint64_t part, uint64_t whole) {
    char percent[32];
    std::snprintf(percent, sizeof percent, "%.2f %%", 100 * ratio(part, whole));
    return std::string(percent) + " (" + grouped(part) + " of " + grouped(whole) + ")";
  }
  std::string name(int64_t index) const {
    if (index == kNoAnswer) return "no answer";
    return index >= 0 && static_cast<size_t>(index) < names_.size()
               ? "'" + names_[static_cast<size_t>(index)] + "'"
               : std::to_string(index);
  }

  const std::vector<Sample> samples_;
  const EvalOptions& options_;
  const std::vector<std::string> names_;
  uint64_t labelled_ = 0, right_ = 0, right_of_top_ = 0, compared_ = 0, agreed_ = 0, other_right_ = 0;
  std::vector<std::pair<std::pair<int64_t, int64_t>, uint64_t>> confusions_;
};

void run(const CLI::App& command, const EvalOptions& options) {
  parse_isa(options.session.isa);
  check_outputs({{"--csv", options.csv}}, input_files(options.session, {{"plan", options.plan},
                                                                        {"--labels", options.labels},
                                                                        {"--names", options.names},
                                                                        {"--against", options.against}}));
  if (options.labels.empty() && options.against.empty())
    throw UsageError("nothing to compare the answers with; expected --labels CSV, --against, or both");
  if (options.labels.empty())
    refuse_without_effect(command, {"--label-offset", "--top", "--worst"}, "without --labels");
  std::vector<std::string> names;
  if (!options.names.empty()) names = read_lines(options.names, "names");
  std::vector<Sample> samples = find_samples(options.images);
  std::vector<NamedFile> pictures;
  for (const Sample& sample : samples)
    pictures.push_back({"a file of --images", options.images + "/" + sample.file});
  check_outputs({{"--csv", options.csv}}, pictures);
  if (!options.labels.empty())
    assign(read_classes(options.labels, "--labels", names, options.offset, samples), "--labels", &samples,
           &Sample::label);
  Classifier classifier(options.plan, options);
  for (const Sample& sample : samples) {
    if (!sample.label ||
        (*sample.label >= 0 && static_cast<uint64_t>(*sample.label) < classifier.num_classes()))
      continue;
    throw Failure("--labels: '" + sample.file + "' has class " + std::to_string(*sample.label) + ", output " +
                  std::to_string(options.output) + " has " + std::to_string(classifier.num_classes()) +
                  " values; --label-offset is added to each class");
  }
  if (options.against.empty() || options.against.ends_with(".csv")) classifier.check_options();
  std::optional<Classifier> other;
  if (options.against.ends_with(".csv")) {
    assign(read_classes(options.against, "--against", names, 0, samples), "--against", &samples,
           &Sample::other_answer);
  } else if (!options.against.empty()) {
    other.emplace(options.against, options);
  }
  Progress progress;
  for (size_t i = 0; i < samples.size(); ++i) {
    progress.update("evaluate", i, samples.size());
    const std::string file = options.images + "/" + samples[i].file;
    samples[i].best = classifier.best(file, options.top);
    if (!other) continue;
    samples[i].other_answer = answer_of(other->best(file, 1));
  }
  progress.update("evaluate", samples.size(), samples.size());
  const Evaluation evaluation(std::move(samples), options, names);
  if (!options.csv.empty()) {
    const std::string text = evaluation.csv();
    qplan_error error = make_error();
    check(qplan_file_write(options.csv.c_str(), text.data(), text.size(), &error), error, "");
  }
  print(options.json ? json_page(evaluation.json()) : evaluation.text());
}

}  // namespace

void add_eval_command(CLI::App& app) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command =
      app.add_subcommand("eval", "Count how often a classifier is right about a folder of pictures");
  command->add_option("PLAN", options->plan, "Plan file, or a model")->required()->type_name("");
  command
      ->add_option("--images", options->images,
                   "The pictures (.bmp .png .jpg) or tensors (.npy, raw .bin) in this folder and those below")
      ->required()
      ->type_name("DIR");
  command
      ->add_option(
          "--labels", options->labels,
          "Lines \"file,class\": a path in the folder or a file's name, and a number or a name of --names; a "
          "heading is left out")
      ->type_name("CSV");
  command
      ->add_option("--label-offset", options->offset,
                   "Added to the numbers of --labels: 1 where the network has a background class (default 0)")
      ->type_name("N")
      ->transform(CLI::Validator(
          [](std::string& text) {
            int64_t value = 0;
            if (!is_number(text, &value) || value < -kMaxLabelOffset || value > kMaxLabelOffset)
              return "'" + text + "' is not a whole number from -1000000 to 1000000";
            text = std::to_string(value);
            return std::string();
          },
          ""));
  command->add_option("--names", options->names, "Names of the classes, one a line")->type_name("FILE");
  command
      ->add_option(
          "--against", options->against,
          "Compare each answer with that of another plan or model, or of lines \"file,answer\" (a file that "
          "ends with .csv)")
      ->type_name("FILE");
  command->add_option("--output", options->output, "Which output has the scores (default 0)")
      ->type_name("N")
      ->transform(whole_number(0, UINT32_MAX));
  command->add_option("--top", options->top, "Count an answer among the best K as right, too (default 5)")
      ->type_name("K")
      ->transform(whole_number(1, UINT32_MAX));
  command->add_option("--worst", options->worst, "How many kinds of mistakes are printed (default 10)")
      ->type_name("N")
      ->transform(whole_number(0, UINT32_MAX));
  command->add_option("--mean", options->mean, "As for `qplan run`")->type_name("M");
  command->add_option("--std", options->std, "As for `qplan run`")->type_name("S");
  command->add_option("--csv", options->csv, "Write a line for each picture, with its answer")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print the result as JSON");
  add_session_options(*command, options->session);
  add_custom_operators_option(*command, options->session.custom_operators);
  command->footer(
      "Examples:\n"
      "  qplan eval model.qplan --images validation --labels labels.csv --names imagenet.txt --label-offset "
      "1\n"
      "  qplan eval quantised.qplan --images validation --labels labels.csv --against float.tflite\n"
      "  qplan eval model.qplan --images photos --against answers.csv --json");
  command->callback([command, options]() { run(*command, *options); });
}

}  // namespace qplan::tools
