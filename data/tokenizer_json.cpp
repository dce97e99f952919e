// Part by part: what changes ids is read or refused; decoder, truncation and padding change none.
#include "cinta/data/tokenizer_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"

namespace cinta::data {
namespace {

using Json = nlohmann::json;

struct Reader {
  const std::string& path;
  Where where;

  void check(bool ok, const auto&... parts) const { require<FileError>(ok, "tokenizer", where, path, ": ", parts...); }

  /// What `part` has at `key`, or `wanted` where it has none, is `wanted`.
  void expect(const Json& part, const char* name, const char* key, const Json& wanted) const {
    const Json found = part.value(key, wanted);
    check(found == wanted, name, ".", key, ": found ", found.dump(), ", only ", wanted.dump(), " is supported");
  }

  /// The part called `name`, whose type is one of `types`.
  Json part(const Json& file, const char* name, std::initializer_list<const char*> types) const {
    const Json part = file.value(name, Json());
    const Json type = part.is_object() ? part.value("type", Json()) : Json();
    check(std::ranges::find(types, type) != types.end(), name, ": found type ", type.dump(), ", only ", *types.begin(),
          " is supported");
    return part;
  }

  bool flag(const Json& part, const char* key, bool otherwise) const {
    const Json found = part.value(key, Json());
    check(found.is_boolean() || found.is_null(), "normalizer.", key, ": found ", found.dump(),
          ", expected true or false");
    return found.is_null() ? otherwise : found.get<bool>();
  }

  Vocabulary vocabulary(const Json& model) const {
    const Json vocab = model.value("vocab", Json());
    check(vocab.is_object(), "model.vocab: found ", vocab.type_name(), ", expected an object of numbers");
    std::vector<std::string> tokens(vocab.size());
    for (const auto& [token, id] : vocab.items()) {
      const bool fits = id.is_number_unsigned() && id.get<size_t>() < tokens.size() && tokens[id.get<size_t>()].empty();
      check(fits, "model.vocab: token \"", token, "\" has the number ", id.dump(), ", expected each of 0 to ",
            tokens.size() - 1, " once");
      tokens[id.get<size_t>()] = token;
    }
    return Vocabulary(std::move(tokens), path, where);
  }

  /// The tokens that are found in a text before it is normalised: exactly BERT's.
  void check_added(const Json& file, const Vocabulary& vocabulary) const {
    const Json added = file.value("added_tokens", Json::array());
    check(added.is_array(), "added_tokens: found ", added.type_name(), ", expected a list");
    std::vector<std::string> names;
    for (const Json& token : added) {
      names.push_back(special_token(token, path + ": added_tokens", where));
      const Json id = token.is_object() ? token.value("id", Json()) : Json();
      check(id == vocabulary.find(names.back()), "added_tokens: ", names.back(), " has the number ", id.dump(),
            ", in model.vocab it has ", vocabulary.find(names.back()));
    }
    for (const std::string_view special : Vocabulary::specials)
      check(vocabulary.find(special) < 0 || std::ranges::find(names, special) != names.end(), "added_tokens: has no ",
            special, ", which in a text stands for itself here");
  }

  /// [CLS] a [SEP] and [CLS] a [SEP] b [SEP], or nothing.
  void check_frame(const Json& file) const {
    const char* name = "post_processor";
    if (file.value(name, Json()).is_null()) return;
    const Json frame = part(file, name, {"TemplateProcessing", "BertProcessing"});
    if (frame["type"] == "BertProcessing") {
      for (const auto& [key, token] : {std::pair("cls", "[CLS]"), std::pair("sep", "[SEP]")})
        check(frame.contains(key) && frame[key].is_array() && !frame[key].empty() && frame[key][0] == token, name, ".",
              key, ": expected ", token);
      return;
    }
    auto token = [](const char* id, int type) { return Json{{"SpecialToken", {{"id", id}, {"type_id", type}}}}; };
    auto text = [](const char* id, int type) { return Json{{"Sequence", {{"id", id}, {"type_id", type}}}}; };
    const Json single{token("[CLS]", 0), text("A", 0), token("[SEP]", 0)};
    Json pair = single;
    pair.push_back(text("B", 1));
    pair.push_back(token("[SEP]", 1));
    expect(frame, name, "single", single);
    expect(frame, name, "pair", pair);
  }
};

/// The file with the type of its model, which old ones leave to be seen from its parts.
Json with_type(Json file) {
  Json& model = file["model"];
  if (model.is_object() && !model.contains("type") && model.contains("continuing_subword_prefix") &&
      !model.contains("merges"))
    model["type"] = "WordPiece";
  return file;
}

}  // namespace

std::string special_token(const Json& token, const std::string& place, Where where) {
  const auto check = [&](bool ok, const auto&... parts) {
    require<FileError>(ok, "tokenizer", where, place, ": ", parts...);
  };
  const Json name = token.is_object() ? token.value("content", Json()) : token;
  const auto same = [&](std::string_view special) { return name == special; };
  check(std::ranges::any_of(Vocabulary::specials, same), "found ", name.dump(),
        ", only BERT's special tokens are supported");
  const Json flags = token.is_object() ? token : Json::object();
  for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"})
    if (const Json found = flags.value(flag, Json(false)); found != false)
      check(false, name.get<std::string>(), ".", flag, ": found ", found.dump(), ", only false is supported");
  return name;
}

WordPiece read_tokenizer_json(const std::string& path, Where where) {
  const Json file = with_type(parse_json_object(read_file(path, maximum_file_bytes, where), "tokenizer", path, where));
  const Reader reader{path, where};
  const Json model = reader.part(file, "model", {"WordPiece"});
  reader.expect(model, "model", "unk_token", "[UNK]");
  reader.expect(model, "model", "continuing_subword_prefix", "##");
  reader.expect(model, "model", "max_input_chars_per_word", longest_word);
  const Json normalizer = reader.part(file, "normalizer", {"BertNormalizer"});
  reader.expect(normalizer, "normalizer", "clean_text", true);
  reader.expect(normalizer, "normalizer", "handle_chinese_chars", true);
  reader.part(file, "pre_tokenizer", {"BertPreTokenizer"});
  reader.check_frame(file);
  Vocabulary vocabulary = reader.vocabulary(model);
  reader.check_added(file, vocabulary);
  const bool lower = reader.flag(normalizer, "lowercase", true);
  return WordPiece(std::move(vocabulary),
                   {.lower_case = lower, .strip_accents = reader.flag(normalizer, "strip_accents", lower)});
}

}  // namespace cinta::data
