// The few keys of tokenizer_config.json that change how BERT's tokenizer cuts text; and that no file beside it adds or
// renames a token.
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

/// Also of a link to nowhere, which says on reading what is wrong.
bool exists(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(std::filesystem::symlink_status(path, none));
}

/// A file of the tokenizer, as transformers writes it; empty where there is none.
nlohmann::json file_in(const std::string& path, Where where) {
  if (!exists(path)) return nlohmann::json::object();
  return parse_json_object(read_file(path, maximum_file_bytes, where), "tokenizer", path, where);
}

/// Whether these are BERT's special tokens, where texts are searched for them before they are cut; and nothing else.
class TokenCheck {
 public:
  TokenCheck(const std::string& path, const Vocabulary& vocabulary, Where where)
      : path_(path), vocabulary_(vocabulary), where_(where) {}

  /// tokenizer_config.json or special_tokens_map.json.
  void file(const nlohmann::json& file) const {
    for (const auto& [key, token] : file.items())
      if (key.ends_with("_token") && (token.is_string() || token.is_object())) named(key, token);
    for (const char* key : {"additional_special_tokens", "extra_special_tokens"})
      for (const nlohmann::json& token : file.value(key, nlohmann::json::array())) special(key, token);
    const char* key = "added_tokens_decoder";
    const nlohmann::json decoder = file.value(key, nlohmann::json::object());
    for (const auto& [id, token] : decoder.items()) numbered(key, special(key, token), id);
  }
  /// added_tokens.json: numbers by token.
  void added(const nlohmann::json& file) const {
    for (const auto& [token, id] : file.items()) numbered("tokens", special("tokens", token), id.dump());
  }

 private:
  void check(bool ok, const auto&... parts) const {
    require<FileError>(ok, "tokenizer", where_, path_, ": ", parts...);
  }
  std::string special(const std::string& key, const nlohmann::json& token) const {
    return special_token(token, path_ + ": " + key, where_);
  }
  /// pad_token is [PAD]. Tokens of other names, as eos_token, are any of the special ones.
  void named(const std::string& key, const nlohmann::json& token) const {
    const std::string name = special(key, token);
    for (const std::string_view own : Vocabulary::specials) {
      std::string own_key(own.substr(1, own.size() - 2));
      for (char& letter : own_key) letter = static_cast<char>(letter - 'A' + 'a');
      check(key != own_key + "_token" || name == own, key, ": found \"", name, "\", only \"", own, "\" is supported");
    }
  }
  void numbered(const char* key, const std::string& token, const std::string& id) const {
    check(id == std::to_string(vocabulary_.find(token)), key, ": ", token, " has the number ", id,
          ", in the vocabulary ", vocabulary_.find(token));
  }

  const std::string& path_;
  const Vocabulary& vocabulary_;
  Where where_;
};

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
  return exists(json) ? json : lines;
}

WordPiece load_wordpiece(const std::string& folder, Where where) {
  const std::string tokens = vocabulary_path(folder);
  const std::optional<WordPiece> whole =
      tokens.ends_with(".json") ? std::optional(read_tokenizer_json(tokens, where)) : std::nullopt;
  TokenizerOptions options = whole ? whole->options() : TokenizerOptions();
  const std::string path = folder + "/tokenizer_config.json";
  const nlohmann::json config = file_in(path, where);
  if (const auto kind = config.find("tokenizer_class"); kind != config.end())
    require<FileError>(*kind == "BertTokenizer" || *kind == "BertTokenizerFast", "tokenizer", where, path,
                       ": tokenizer_class: found ", kind->dump(), ", expected \"BertTokenizer\"");
  require<FileError>(flag(config, "tokenize_chinese_chars", true, path, where), "tokenizer", where, path,
                     ": tokenize_chinese_chars: found false; ideographs are always words of their own here");
  options.lower_case = flag(config, "do_lower_case", options.lower_case, path, where);
  options.strip_accents =
      flag(config, "strip_accents", whole ? options.strip_accents : options.lower_case, path, where);
  options.final_sigma = flag(config, "final_sigma", false, path, where);
  const std::string lines = folder + "/vocab.txt", map = folder + "/special_tokens_map.json",
                    added = folder + "/added_tokens.json";
  const Vocabulary vocabulary = whole ? whole->vocabulary() : Vocabulary::load(lines, where);
  TokenCheck(path, vocabulary, where).file(config);
  TokenCheck(map, vocabulary, where).file(file_in(map, where));
  TokenCheck(added, vocabulary, where).added(file_in(added, where));
  require<FileError>(!whole || !exists(lines) || Vocabulary::load(lines, where).text() == vocabulary.text(),
                     "tokenizer", where, lines, ": has other tokens than tokenizer.json");
  if (!whole) return WordPiece(vocabulary, options);
  const TokenizerOptions& normalizer = whole->options();
  require<FileError>(options.lower_case == normalizer.lower_case && options.strip_accents == normalizer.strip_accents,
                     "tokenizer", where, path,
                     ": do_lower_case and strip_accents say otherwise than the normalizer of tokenizer.json");
  return WordPiece(vocabulary, options);
}

}  // namespace cinta::data
