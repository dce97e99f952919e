// The few keys of tokenizer_config.json that change how BERT's tokenizer cuts text.
#include "cinta/data/wordpiece_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cinta/data/atomic_file.h"
#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"

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

/// The tokens of a tokenizer.json, by number.
Vocabulary vocabulary_in_json(const std::string& path, Where where) {
  const auto json = parse_json_object(read_file(path, maximum_file_bytes, where), "tokenizer", path, where);
  const nlohmann::json::json_pointer type("/model/type"), vocab("/model/vocab");
  require<FileError>(json.value(type, nlohmann::json()) == "WordPiece" && json.contains(vocab) &&
                         json[vocab].is_object(),
                     "tokenizer", where, path, ": found no model of type \"WordPiece\" with a vocab");
  std::vector<std::string> tokens(json[vocab].size());
  for (const auto& [token, id] : json[vocab].items()) {
    const bool fits = id.is_number_unsigned() && id.get<size_t>() < tokens.size() && tokens[id.get<size_t>()].empty();
    require<FileError>(fits, "tokenizer", where, path, ": vocab: token \"", token, "\" has the number ", id.dump(),
                       ", expected each of 0 to ", tokens.size() - 1, " once");
    tokens[id.get<size_t>()] = token;
  }
  return Vocabulary(std::move(tokens), path, where);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> wordpiece_files(const WordPiece& tokenizer) {
  nlohmann::ordered_json config;
  config["tokenizer_class"] = "BertTokenizer";
  config["do_lower_case"] = tokenizer.options().lower_case;
  config["strip_accents"] = tokenizer.options().strip_accents;
  config["tokenize_chinese_chars"] = true;
  return {{"vocab.txt", tokenizer.vocabulary().text()}, {"tokenizer_config.json", config.dump(2) + '\n'}};
}

void save_wordpiece(const WordPiece& tokenizer, const std::string& folder, Where where) {
  for (const auto& [name, text] : wordpiece_files(tokenizer)) {
    AtomicFile file(folder + "/" + name, where);
    file.write_text(text);
    file.commit(where);
  }
}

WordPiece load_wordpiece(const std::string& folder, Where where) {
  TokenizerOptions options;
  const std::string path = folder + "/tokenizer_config.json";
  if (std::filesystem::exists(path)) {
    const auto config = parse_json_object(read_file(path, maximum_file_bytes, where), "tokenizer", path, where);
    const auto kind = config.find("tokenizer_class");
    if (kind != config.end())
      require<FileError>(*kind == "BertTokenizer" || *kind == "BertTokenizerFast", "tokenizer", where, path,
                         ": tokenizer_class: found ", kind->dump(), ", expected \"BertTokenizer\"");
    require<FileError>(flag(config, "tokenize_chinese_chars", true, path, where), "tokenizer", where, path,
                       ": tokenize_chinese_chars: found false; ideographs are always words of their own here");
    options.lower_case = flag(config, "do_lower_case", true, path, where);
    options.strip_accents = flag(config, "strip_accents", options.lower_case, path, where);
  }
  const std::string lines = folder + "/vocab.txt", json = folder + "/tokenizer.json";
  const bool newer = !std::filesystem::exists(lines) && std::filesystem::exists(json);
  return WordPiece(newer ? vocabulary_in_json(json, where) : Vocabulary::load(lines, where), options);
}

}  // namespace cinta::data
