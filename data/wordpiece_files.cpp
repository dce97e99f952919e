// The few keys of tokenizer_config.json that change how BERT's tokenizer cuts text; and that no file beside it adds or
// renames a token.
#include "cinta/data/wordpiece_files.h"

#include <algorithm>
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

/// A file of the tokenizer, as transformers writes it; empty where there is none.
nlohmann::json file_in(const std::string& path, Where where) {
  if (!std::filesystem::exists(path)) return nlohmann::json::object();
  return parse_json_object(read_file(path, maximum_file_bytes, where), "tokenizer", path, where);
}

/// A token by its name, or as {"content": name, ..}.
nlohmann::json name_of(const nlohmann::json& token) {
  return token.is_object() ? token.value("content", nlohmann::json()) : token;
}

bool is_special(const nlohmann::json& name) {
  return name.is_string() &&
         std::ranges::find(Vocabulary::specials, name.get<std::string>()) != std::end(Vocabulary::specials);
}

/// Tokens that a text is searched for before it is cut are BERT's own, with the numbers of the vocabulary.
void check_tokens(const nlohmann::json& file, const std::string& path, const Vocabulary& vocabulary, Where where) {
  const auto check = [&](bool ok, const auto&... found) {
    require<FileError>(ok, "tokenizer", where, path, ": ", found..., ", only BERT's special tokens are supported");
  };
  for (const std::string_view token : Vocabulary::specials) {
    std::string key(token.substr(1, token.size() - 2));  // [PAD] is pad_token
    std::ranges::transform(key, key.begin(), [](char letter) { return static_cast<char>(letter - 'A' + 'a'); });
    key += "_token";
    const nlohmann::json found = name_of(file.value(key, nlohmann::json()));
    check(found.is_null() || found == token, key, ": found ", found.dump());
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"})
    for (const nlohmann::json& token : file.value(key, nlohmann::json::array()))
      check(is_special(name_of(token)), key, ": found ", name_of(token).dump());
  const nlohmann::json decoder = file.value("added_tokens_decoder", nlohmann::json::object());
  for (const auto& [id, token] : decoder.items()) {
    const nlohmann::json name = name_of(token);
    check(is_special(name), "added_tokens_decoder: found ", name.dump());
    const int32_t number = vocabulary.find(name.get<std::string>());
    require<FileError>(id == std::to_string(number), "tokenizer", where, path, ": added_tokens_decoder: ", name.dump(),
                       " has the number ", id, ", in the vocabulary ", number);
  }
}

/// added_tokens.json holds numbers by token.
void check_added(const nlohmann::json& file, const std::string& path, const Vocabulary& vocabulary, Where where) {
  for (const auto& [token, id] : file.items())
    require<FileError>(is_special(token) && id == vocabulary.find(token), "tokenizer", where, path, ": found \"", token,
                       "\", only BERT's special tokens are supported");
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
  return std::filesystem::exists(json) ? json : lines;
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
  const Vocabulary vocabulary = whole ? whole->vocabulary() : Vocabulary::load(tokens, where);
  check_tokens(config, path, vocabulary, where);
  const std::string map = folder + "/special_tokens_map.json", added = folder + "/added_tokens.json";
  check_tokens(file_in(map, where), map, vocabulary, where);
  check_added(file_in(added, where), added, vocabulary, where);
  if (!whole) return WordPiece(vocabulary, options);
  const TokenizerOptions& normalizer = whole->options();
  require<FileError>(options.lower_case == normalizer.lower_case && options.strip_accents == normalizer.strip_accents,
                     "tokenizer", where, path,
                     ": do_lower_case and strip_accents say otherwise than the normalizer of tokenizer.json");
  return WordPiece(vocabulary, options);
}

}  // namespace cinta::data
