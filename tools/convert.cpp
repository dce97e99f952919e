// `cinta convert SOURCE TARGET`: a model's tensors in another precision, under other names, in one file or in shards.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "cinta/data/atomic_directory.h"
#include "cinta/data/file.h"
#include "cinta/models/bert/names.h"
#include "cinta/ops/shape.h"
#include "tools/byte_size.h"
#include "tools/commands.h"
#include "tools/tensor_numbers.h"

namespace cinta::tools {
namespace {

namespace fs = std::filesystem;
using data::Shard;
using data::StoredTensor;
using Json = nlohmann::ordered_json;

struct Options {
  std::string source, target, dtype, names, to, max_shard_size = "100MB";
  const CLI::Option* limit = nullptr;  ///< to see whether --max_shard_size was given
  bool overwrite = false, json = false;
};

struct Precision {
  const char* name;
  Dtype dtype;
  const char* in_config;  ///< as config.json spells it
};
constexpr Precision precisions[] = {
    {"fp32", Dtype::f32, "float32"}, {"bf16", Dtype::bf16, "bfloat16"}, {"fp16", Dtype::f16, "float16"}};

struct Naming {
  const char* name;
  models::BertNames names;
};
constexpr Naming namings[] = {
    {"hf", models::BertNames::hf}, {"old", models::BertNames::old}, {"bare", models::BertNames::bare}};

/// The row called `name`, or null.
template <class Row, size_t count>
const Row* find_row(const Row (&rows)[count], const std::string& name) {
  const Row* found = std::ranges::find(rows, name, &Row::name);
  return found == std::end(rows) ? nullptr : found;
}

/// What of a model's directory goes along with its weights.
constexpr const char* carried[] = {
    "config.json",           "generation_config.json",  "vocab.txt",         "characters.txt", "tokenizer.json",
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",     "merges.txt"};
constexpr const char* config_file = "config.json";

/// What became of numbers.
struct Counts {
  int64_t numbers = 0, nan = 0, infinite = 0, too_large = 0, too_small = 0;
  void add(const Counts& other) {
    numbers += other.numbers;
    nan += other.nan;
    infinite += other.infinite;
    too_large += other.too_large;
    too_small += other.too_small;
  }
  Json json() const {
    return {
        {"numbers", numbers}, {"nan", nan}, {"infinite", infinite}, {"too_large", too_large}, {"too_small", too_small}};
  }
  std::string text() const {
    return join(nan, " NaN, ", infinite, " infinite, ", too_large, " too large (now infinite), ", too_small,
                " too small (now 0)");
  }
};

/// What became of the numbers of `before` in `after`, the same in another floating-point type.
Counts compare(const Tensor& before, const Tensor& after) {
  TensorNumbers old_numbers(before), new_numbers(after);
  Counts counts;
  counts.numbers = before.numel();
  for (int64_t first = 0; is_floating(before.dtype()) && first < before.numel(); first += numbers_per_block) {
    const std::span<const double> x = old_numbers.block(first), y = new_numbers.block(first);
    for (size_t i = 0; i < x.size(); ++i) {
      counts.nan += std::isnan(x[i]);
      counts.infinite += std::isinf(x[i]);
      counts.too_large += std::isfinite(x[i]) && !std::isfinite(y[i]);
      counts.too_small += x[i] != 0 && y[i] == 0;
    }
  }
  return counts;
}

/// A model being converted: what is written, and what is to be told.
class Conversion {
 public:
  explicit Conversion(const Options& options)
      : options_(options), source_(data::SafetensorsSet::open(options.source, Where())) {
    precision_ = find_row(precisions, options.dtype);
    naming_ = find_row(namings, options.names);
    std::set<std::string> taken;
    for (const StoredTensor& tensor : source_.tensors()) {
      const std::string& old_name = tensor.entry->name;
      const std::optional<std::string> name = naming_ ? models::renamed(old_name, naming_->names) : old_name;
      if (!name) {
        left_out_.push_back(old_name);
        continue;
      }
      require<FileError>(taken.insert(*name).second, "convert", Where(), source_.path(), ": ", old_name,
                         " would be called ", *name, ", and so would another tensor");
      renamed_ += *name != old_name;
      tensors_.push_back(&tensor);
      names_.push_back(*name);
      sizes_.push_back(tensor.entry->size_bytes() / uint64_t(size_of(tensor.entry->dtype)) *
                       uint64_t(size_of(dtype_of(tensor))));
    }
    require<FileError>(!naming_ || std::ranges::any_of(names_, models::is_body_name), "convert", Where(),
                       source_.path(), ": --names is for a BERT, and no tensor here is called as one of its body");
    metadata_ = source_.files().empty() ? data::Metadata() : source_.files().front().metadata();
    if (std::ranges::find(metadata_, "format", &data::Metadata::value_type::first) == metadata_.end())
      metadata_.emplace_back("format", "pt");  // older versions of transformers open no file without it
  }

  void write_file(const std::string& path) {
    data::AtomicFile file(path, Where());
    std::vector<size_t> all(names_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    write(file, data::name_of_path(path), all);
    file.commit(Where());
  }

  /// In shards of at most `most_bytes`, or with 0 in one file; and with what the directory `from`, if not empty, holds
  /// beside the weights.
  void write_directory(const std::string& path, uint64_t most_bytes, const std::string& from) {
    data::AtomicDirectory directory(path, Where());
    std::vector<Shard> shards = data::deal_shards(sizes_, most_bytes ? most_bytes : UINT64_MAX);
    if (!most_bytes) shards.front().name = data::weights_file;
    for (const Shard& shard : shards) write(directory.add(shard.name, Where()), shard.name, shard.tensors);
    if (most_bytes) add(directory, data::weights_index, data::safetensors_index_text(shards, names_, total_size()));
    for (const char* name : carried)
      if (const std::string file = from + "/" + name; !from.empty() && fs::exists(file)) {
        const std::string text = data::read_file(file, data::maximum_file_bytes, Where());
        add(directory, name, std::string_view(name) == config_file ? config_of(text, file) : text);
      }
    directory.commit(Where());
  }

  void report() const {
    if (options_.json) {
      const Json all = {{"source", source_.path()}, {"target", options_.target}, {"tensors", names_.size()},
                        {"converted", converted_},  {"renamed", renamed_},       {"left_out", left_out_},
                        {"bytes", total_size()},    {"files", files_},           {"counts", counts_.json()},
                        {"notable", notable_}};
      std::printf("%s\n", all.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
      return;
    }
    for (const auto& [name, counts] : notable_.items())
      std::printf("%s: %lld NaN, %lld infinite, %lld too large\n", name.c_str(), counts["nan"].get<long long>(),
                  counts["infinite"].get<long long>(), counts["too_large"].get<long long>());
    for (const std::string& name : left_out_) std::printf("left out: %s\n", name.c_str());
    std::printf("%s: %zu tensors (%lld converted, %lld renamed), %llu bytes in %zu file%s\n%s\n",
                options_.target.c_str(), names_.size(), static_cast<long long>(converted_),
                static_cast<long long>(renamed_), static_cast<unsigned long long>(total_size()), files_.size(),
                files_.size() == 1 ? "" : "s", counts_.text().c_str());
  }

 private:
  /// What the tensor becomes: integers and truth values stay what they are.
  data::StoredDtype dtype_of(const StoredTensor& tensor) const {
    return precision_ && is_floating(tensor.entry->dtype) ? data::StoredDtype(precision_->dtype) : tensor.entry->dtype;
  }
  uint64_t total_size() const { return std::accumulate(sizes_.begin(), sizes_.end(), uint64_t{0}); }

  void write(data::ByteSink& sink, const std::string& file, const std::vector<size_t>& which) {
    std::vector<Tensor> hold;
    std::vector<data::TensorBytes> tensors;
    for (size_t i : which) {
      const StoredTensor& tensor = *tensors_[i];
      Counts counts;
      if (const std::optional<Dtype> dtype = dtype_of(tensor).own()) {
        const Tensor before = read_row(tensor);
        hold.push_back(cast(before, *dtype));
        counts = compare(before, hold.back());
      } else {
        hold.push_back(empty({int64_t(tensor.entry->size_bytes())}, Dtype::u8));
        tensor.read(hold.back().view().data);
        counts.numbers = int64_t(tensor.entry->size_bytes()) / size_of(tensor.entry->dtype);
      }
      converted_ += dtype_of(tensor) != tensor.entry->dtype;
      counts_.add(counts);
      if (counts.nan + counts.infinite + counts.too_large > 0) notable_[names_[i]] = counts.json();
      tensors.push_back({names_[i], dtype_of(tensor), tensor.entry->shape, hold.back().view().data});
    }
    files_.push_back(file);
    data::write_safetensors(sink, std::move(tensors), metadata_, Where());
  }

  static void add(data::AtomicDirectory& directory, const std::string& name, const std::string& text) {
    directory.add(name, Where()).write_text(text);
  }

  /// config.json that names the new precision where it named one (transformers loads weights as what it says), and the
  /// class of a body alone.
  std::string config_of(const std::string& text, const std::string& path) const {
    Json config = Json::parse(text, nullptr, false);
    require<FileError>(config.is_object(), "convert", Where(), path, ": is no JSON object");
    bool changed = false;
    const auto set = [&](const char* key, const Json& value) {
      changed |= config[key] != value;
      config[key] = value;
    };
    for (const char* key : {"dtype", "torch_dtype"})
      if (precision_ && config.contains(key) && config[key].is_string()) set(key, precision_->in_config);
    if (naming_ && naming_->names == models::BertNames::bare) set("architectures", Json::array({"BertModel"}));
    return changed ? config.dump(2) + "\n" : text;
  }

  const Options& options_;
  const data::SafetensorsSet source_;
  const Precision* precision_ = nullptr;
  const Naming* naming_ = nullptr;
  data::Metadata metadata_;
  std::vector<const StoredTensor*> tensors_;
  std::vector<std::string> names_, left_out_, files_;
  std::vector<uint64_t> sizes_;
  int64_t converted_ = 0, renamed_ = 0;
  Counts counts_;
  Json notable_ = Json::object();
};

bool is_carried(const std::string& name) { return std::ranges::find(carried, name) != std::end(carried); }

/// model-00001-of-00003.safetensors
bool is_shard(const std::string& name) {
  int end = 0;
  std::sscanf(name.c_str(), "model-%*[0-9]-of-%*[0-9].safetensors%n", &end);
  return static_cast<size_t>(end) == name.size();
}

/// A directory is replaced as a whole, so nothing may lie there but weights, and files that the directory `from`, if
/// not empty, has as well.
void check_replaced(const std::string& path, const std::string& from) {
  std::error_code error;
  std::string lost;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool weights = name == data::weights_index || name == data::weights_file || is_shard(name);
    require<FileError>((weights || is_carried(name)) && entry->is_regular_file(error), "convert", Where(), path,
                       ": holds ", name,
                       ", which is no file of a model; a directory is replaced as a whole, so choose ", "another");
    if (!weights && (from.empty() || !fs::exists(from + "/" + name))) lost += (lost.empty() ? "" : ", ") + name;
  }
  if (error) data::throw_file_error(path, "cannot be listed", error.value(), Where());
  require<FileError>(lost.empty(), "convert", Where(), path, ": holds ", lost, ", which ",
                     from.empty() ? "a source that is no directory" : from,
                     " does not have; a directory is replaced as a whole, so choose another");
}

/// What lies at `path` already may be replaced by a directory, with what `from` has beside the weights, or by a file.
void check_target(const std::string& path, bool directory, const std::string& from, bool overwrite) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) return;
  require<FileError>(fs::is_directory(status) == directory, "convert", Where(), path, ": is ",
                     directory ? "no directory, but a directory is to be written"
                               : "a directory, and one file is to be written; --to sharded writes a directory");
  require<FileError>(overwrite, "convert", Where(), path, ": exists; --overwrite replaces it");
  if (directory) check_replaced(path, from);
}

void convert(Options options) {
  while (options.target.size() > 1 && options.target.ends_with('/')) options.target.pop_back();
  const bool sharded = options.to.empty() ? options.limit->count() > 0 : options.to == "sharded";
  require(sharded || options.limit->count() == 0, "convert", Where(), "--max_shard_size goes with --to sharded");
  const uint64_t most = sharded ? byte_size("--max_shard_size", options.max_shard_size) : 0;
  std::error_code unknown;  // what cannot be looked at is for open() to complain of
  const bool from_directory = fs::is_directory(options.source, unknown), into_directory = from_directory || sharded;
  const std::string from = from_directory ? options.source : "";
  check_target(options.target, into_directory, from, options.overwrite);
  Conversion conversion(options);
  if (into_directory)
    conversion.write_directory(options.target, most, from);
  else
    conversion.write_file(options.target);
  conversion.report();
}

}  // namespace

void add_convert(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("convert", "write a model in another precision, under other names, in one file or in shards");
  command->add_option("source", options->source, "a .safetensors file, an .index.json, or a directory with a model")
      ->required();
  command->add_option("target", options->target, "a directory for a directory and for shards, else a file")->required();
  command->add_option("--dtype", options->dtype, "of floating-point tensors; left out, they keep theirs")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  command
      ->add_option(
          "--names", options->names,
          "of a BERT's tensors; left out, they keep theirs. hf: those of transformers, which are Cinta's; old: "
          "LayerNorm.gamma and .beta, as its first files; bare: the body as BertModel, without 'bert.' and "
          "heads")
      ->check(CLI::IsMember({"hf", "old", "bare"}));
  command->add_option("--to", options->to, "single (the default) or sharded")
      ->check(CLI::IsMember({"single", "sharded"}));
  options->limit = command
                       ->add_option("--max_shard_size", options->max_shard_size,
                                    "bytes of tensors in a shard, e.g. 2GB or 64MiB; implies --to sharded")
                       ->capture_default_str();
  command->add_flag("--overwrite", options->overwrite, "replace the target where it exists");
  command->add_flag("--json", options->json, "JSON instead of a report");
  set_work(*command, [options] { convert(*options); });
}

}  // namespace cinta::tools
