// The file: tensors "vocabulary" (U8, vocab.txt) and "<part>.ids", "<part>.lengths", "<part>.documents" (I32) of the
// parts train and held_out; in the metadata "origin" and for each tensor its CRC-32.
#include "cinta/data/corpus_cache.h"

#include <cstring>
#include <filesystem>

#include "cinta/data/atomic_file.h"
#include "cinta/data/file.h"
#include "cinta/data/mapped_file.h"
#include "cinta/data/safetensors_header.h"

namespace cinta::data {
namespace {

std::string hexadecimal(uint32_t number) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", number);
  return text;
}

uint32_t crc32_of_text(std::string_view text, uint32_t before) {
  return crc32_of(std::as_bytes(std::span(text)), before);
}

/// An open corpus file whose header is sound.
struct CorpusFile {
  std::string_view path;
  Where where;
  std::shared_ptr<const MappedFile> map;
  std::span<const std::byte> data;
  SafetensorsHeader header;

  CorpusFile(const std::string& path, Where where) : path(path), where(where), map(MappedFile::open(path, where)) {
    const std::span<const std::byte> bytes = map->bytes();
    unsigned char prefix[8];
    require<FileError>(bytes.size() > sizeof prefix, "corpus", where, path, ": found ", bytes.size(), " bytes");
    std::memcpy(prefix, bytes.data(), sizeof prefix);
    const uint64_t length = safetensors_header_length(prefix, bytes.size(), path, where);
    data = bytes.subspan(sizeof prefix + length);
    const std::string json(reinterpret_cast<const char*>(bytes.data()) + sizeof prefix, length);
    header = parse_safetensors_header(json, data.size(), path, where);
  }

  std::string metadata(const std::string& name) const {
    for (const auto& [key, value] : header.metadata)
      if (key == name) return value;
    return {};
  }

  /// The bytes of a tensor that the file must have, looked through.
  template <class T>
  std::span<const T> tensor(const std::string& name, Dtype dtype) const {
    for (const SafetensorsEntry& entry : header.entries) {
      if (entry.name != name || entry.dtype != dtype) continue;
      const std::span<const std::byte> bytes = data.subspan(entry.begin, entry.size_bytes());
      const std::string found = hexadecimal(crc32_of(bytes)), expected = metadata(name);
      require<FileError>(found == expected, "corpus", where, path, ": ", name, ": found the checksum ", found,
                         ", expected ", expected);
      return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
    }
    throw FileError(located("corpus", join(path, ": has no ", name), where));
  }

  Sequences sequences(const std::string& part) const {
    Sequences out;
    out.ids = tensor<int32_t>(part + ".ids", Dtype::i32);
    out.lengths = tensor<int32_t>(part + ".lengths", Dtype::i32);
    out.documents = tensor<int32_t>(part + ".documents", Dtype::i32);
    out.count = static_cast<int64_t>(out.lengths.size());
    require<FileError>(
        out.count > 0 && out.ids.size() % out.lengths.size() == 0 && out.documents.size() == out.lengths.size(),
        "corpus", where, path, ": ", part, ": ", out.ids.size(), " tokens, ", out.lengths.size(), " lengths and ",
        out.documents.size(), " documents do not fit together");
    out.length = static_cast<int64_t>(out.ids.size()) / out.count;
    out.held = map;
    return out;
  }
};

}  // namespace

std::string origin_of(const DocumentSplit& split, const CorpusOptions& options, TokenizerOptions tokenizer) {
  uint32_t crc32 = 0;
  size_t bytes = 0;
  for (const auto* part : {&split.train, &split.held_out})
    for (const Document& document : *part) {
      crc32 = crc32_of_text(document.text, crc32_of_text(join(document.path, ":", document.text.size(), ":"), crc32));
      bytes += document.text.size();
    }
  // The format's number rises with every change to what the same text is made into.
  return join("format 1; text ", hexadecimal(crc32), ", ", bytes, " bytes, ", split.train.size(), " + ",
              split.held_out.size(), " documents; vocabulary of ", options.vocab_size, "; sequences of ",
              options.length, tokenizer.lower_case ? "; lower case" : "; cased",
              tokenizer.strip_accents ? ", without accents" : ", with accents",
              tokenizer.final_sigma ? ", final sigma" : "");
}

std::string cached_corpus_path(const std::string& directory, const std::string& origin) {
  return directory + "/" + hexadecimal(crc32_of_text(origin, 0)) + ".corpus.safetensors";
}

MaskedCorpus load_corpus(const std::string& path, const std::string& origin, TokenizerOptions tokenizer, Where where) {
  const CorpusFile file(path, where);
  const std::string found = file.metadata("origin");
  require<FileError>(found == origin, "corpus", where, path, ": found a corpus of '", found, "', expected '", origin,
                     "'");
  const std::span<const char> text = file.tensor<char>("vocabulary", Dtype::u8);
  const Vocabulary vocabulary = Vocabulary::parse({text.data(), text.size()}, path, where);
  return {WordPiece(vocabulary, tokenizer), file.sequences("train"), file.sequences("held_out")};
}

void save_corpus(const std::string& path, const std::string& origin, const MaskedCorpus& corpus, Where where) {
  std::error_code error;
  std::filesystem::create_directories(parent_of(path), error);
  require<FileError>(!error, "corpus", where, parent_of(path), ": cannot be made: ", error.message());
  std::vector<TensorBytes> tensors;
  Metadata metadata{{"origin", origin}};
  const auto add = [&](const std::string& name, Dtype dtype, std::span<const std::byte> bytes) {
    const auto count = static_cast<int64_t>(bytes.size()) / size_of(dtype);
    tensors.push_back({name, dtype, {count}, bytes.data()});
    metadata.emplace_back(name, hexadecimal(crc32_of(bytes)));
  };
  const std::string vocabulary = corpus.tokenizer.vocabulary().text();
  add("vocabulary", Dtype::u8, std::as_bytes(std::span(vocabulary)));
  const auto add_part = [&](const std::string& part, const Sequences& sequences) {
    add(part + ".ids", Dtype::i32, std::as_bytes(sequences.ids));
    add(part + ".lengths", Dtype::i32, std::as_bytes(sequences.lengths));
    add(part + ".documents", Dtype::i32, std::as_bytes(sequences.documents));
  };
  add_part("train", corpus.train);
  add_part("held_out", corpus.held_out);
  save_safetensors(path, std::move(tensors), metadata, where);
}

}  // namespace cinta::data
