// The few keys of tokenizer_config.json that change how BERT's tokenizer cuts text.
#include "cinta/data/wordpiece_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cinta/data/atomic_file.h"
#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"
#include "cinta/data/tokenizer_json.h"

namespace cinta::data {
namespace {

/// The boolean at `key`, or `otherwise` where it is absent or null.
bool flag(const nlohmann::json& config, const char* key, bool otherwise, const std::string& path, Where where) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return otherwise;
  require<FileError>(found->is_boolean(), "tokenizer", where, path, ": ", key, ": found ", found->dump(),
                     ", expected true or false");
  return found->get<bool>();
}

}  // namespace

std::vector<std::pair<std::string, std::string>> wordpiece_files(const WordPiece& tokenizer, int64_t longest) {
  nlohmann::ordered_json config;
  config["tokenizer_class"] = "BertTokenizer";
  config["do_lower_case"] = tokenizer.options().lower_case;
  config["strip_accents"] = tokenizer.options().strip_accents;
  config["tokenize_chinese_chars"] = true;
  if (longest > 0) config["model_max_length"] = longest;
  if (tokenizer.options().final_sigma) config["final_sigma"] = true;  // a key of ours
  return {{"vocab.txt", tokenizer.vocabulary().text()}, {"tokenizer_config.json", config.dump(2) + '\n'}};
}

void save_wordpiece(const WordPiece& tokenizer, const std::string& folder, Where where) {
  for (const auto& [name, text] : wordpiece_files(tokenizer)) {
    AtomicFile file(folder + "/" + name, where);
    file.write_text(text);
    file.commit(where);
  }
}

std::string vocabulary_path(const std::string& folder) {
  const std::string lines = folder + "/vocab.txt", json = folder + "/tokenizer.json";
  return !std::filesystem::exists(lines) && std::filesystem::exists(json) ? json : lines;
}

WordPiece load_wordpiece(const std::string& folder, Where where) {
  const std::string tokens = vocabulary_path(folder);
  const std::optional<WordPiece> whole =
      tokens.ends_with(".json") ? std::optional(read_tokenizer_json(tokens, where)) : std::nullopt;
  TokenizerOptions options = whole ? whole->options() : TokenizerOptions();
  const std::string path = folder + "/tokenizer_config.json";
  if (std::filesystem::exists(path)) {
    const auto config = parse_json_object(read_file(path, maximum_file_bytes, where), "tokenizer", path, where);
    const auto kind = config.find("tokenizer_class");
    if (kind != config.end())
      require<FileError>(*kind == "BertTokenizer" || *kind == "BertTokenizerFast", "tokenizer", where, path,
                         ": tokenizer_class: found ", kind->dump(), ", expected \"BertTokenizer\"");
    require<FileError>(flag(config, "tokenize_chinese_chars", true, path, where), "tokenizer", where, path,
                       ": tokenize_chinese_chars: found false; ideographs are always words of their own here");
    options.lower_case = flag(config, "do_lower_case", options.lower_case, path, where);
    options.strip_accents =
        flag(config, "strip_accents", whole ? options.strip_accents : options.lower_case, path, where);
    options.final_sigma = flag(config, "final_sigma", false, path, where);
  }
  if (!whole) return WordPiece(Vocabulary::load(tokens, where), options);
  const TokenizerOptions& normalizer = whole->options();
  require<FileError>(options.lower_case == normalizer.lower_case && options.strip_accents == normalizer.strip_accents,
                     "tokenizer", where, path,
                     ": do_lower_case and strip_accents say otherwise than the normalizer of tokenizer.json");
  return WordPiece(whole->vocabulary(), options);
}

}  // namespace cinta::data
