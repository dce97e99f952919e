// Pair counts are kept up to date word by word; a heap with lazily corrected counts gives the next pair.
#include "cinta/data/wordpiece_trainer.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>

#include "cinta/data/unicode.h"

namespace cinta::data {
namespace {

constexpr size_t largest_alphabet = 1000;
constexpr int64_t least_pair_count = 2;

using Pair = std::pair<int32_t, int32_t>;
struct PairHash {
  size_t operator()(const Pair& pair) const {
    return ((static_cast<uint64_t>(pair.first) << 32) | static_cast<uint32_t>(pair.second)) * 0x9E3779B97F4A7C15u;
  }
};

/// Most frequent first, then the pair whose pieces were learnt first.
struct Candidate {
  int64_t count;
  Pair pair;
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

struct Word {
  std::vector<int32_t> pieces;
  int64_t count;
};

std::vector<int32_t> code_points(std::string_view word) {
  std::vector<int32_t> out;
  while (!word.empty()) out.push_back(take_code_point(word));
  return out;
}

/// The most frequent characters, in code point order.
std::vector<int32_t> alphabet(const std::map<std::string, int64_t>& counts) {
  std::map<int32_t, int64_t> frequency;
  for (const auto& [word, count] : counts)
    for (int32_t c : code_points(word)) frequency[c] += count;
  std::vector<std::pair<int64_t, int32_t>> ranked;
  for (const auto& [c, count] : frequency) ranked.emplace_back(-count, c);
  std::sort(ranked.begin(), ranked.end());
  ranked.resize(std::min(ranked.size(), largest_alphabet));
  std::vector<int32_t> out;
  for (const auto& [count, c] : ranked) out.push_back(c);
  std::sort(out.begin(), out.end());
  return out;
}

class Trainer {
 public:
  explicit Trainer(const std::map<std::string, int64_t>& counts) : tokens_(specials()) {
    for (const std::string& token : tokens_) ids_.emplace(token, static_cast<int32_t>(ids_.size()));
    add_characters(counts);
    for (int32_t i = 0; i < static_cast<int32_t>(words_.size()); ++i) count_pairs(i, +1);
    for (const auto& [pair, count] : pair_counts_) heap_.push({count, pair});
  }

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  std::vector<std::string> take() { return std::move(tokens_); }

  /// Learns one more merge; false when no pair is frequent enough.
  bool merge_next() {
    while (!heap_.empty()) {
      const Candidate best = heap_.top();
      heap_.pop();
      const int64_t now = pair_counts_[best.pair];
      if (best.count != now) {  // other merges have taken some of its places
        if (now >= least_pair_count) heap_.push({now, best.pair});
        continue;
      }
      if (now < least_pair_count) return false;
      merge(best.pair);
      return true;
    }
    return false;
  }

 private:
  static std::vector<std::string> specials() {
    return {std::begin(Vocabulary::specials), std::end(Vocabulary::specials)};
  }

  int32_t add_token(const std::string& token) {
    const auto [entry, added] = ids_.emplace(token, static_cast<int32_t>(tokens_.size()));
    if (added) tokens_.push_back(token);
    return entry->second;
  }

  /// Numbers the characters, first those that begin a word or stand alone, then those inside, and spells the words.
  void add_characters(const std::map<std::string, int64_t>& counts) {
    const std::vector<int32_t> known = alphabet(counts);
    const auto spelling = [](int32_t c, bool inside) {
      std::string token = inside ? "##" : "";
      append_utf8(token, c);
      return token;
    };
    for (int32_t c : known) add_token(spelling(c, false));
    std::vector<bool> inside(known.size());
    const auto place = [&](int32_t c) { return std::lower_bound(known.begin(), known.end(), c) - known.begin(); };
    const auto usable = [&](int32_t c) { return std::binary_search(known.begin(), known.end(), c); };
    std::vector<std::pair<std::vector<int32_t>, int64_t>> spelled;
    for (const auto& [word, count] : counts) {
      std::vector<int32_t> characters = code_points(word);
      const bool read = static_cast<int64_t>(characters.size()) <= longest_word;  // by a tokenizer, in pieces
      if (!read || !std::all_of(characters.begin(), characters.end(), usable)) continue;
      for (size_t i = 1; i < characters.size(); ++i) inside[static_cast<size_t>(place(characters[i]))] = true;
      spelled.emplace_back(std::move(characters), count);
    }
    for (size_t i = 0; i < known.size(); ++i)
      if (inside[i]) add_token(spelling(known[i], true));
    for (auto& [characters, count] : spelled) {
      for (size_t i = 0; i < characters.size(); ++i) characters[i] = ids_.at(spelling(characters[i], i > 0));
      words_.push_back({std::move(characters), count});
    }
  }

  void count_pairs(int32_t index, int sign) {
    const Word& word = words_[static_cast<size_t>(index)];
    for (size_t i = 1; i < word.pieces.size(); ++i) {
      const Pair pair{word.pieces[i - 1], word.pieces[i]};
      pair_counts_[pair] += sign * word.count;
      std::vector<int32_t>& places = places_[pair];
      if (sign > 0 && (places.empty() || places.back() != index)) places.push_back(index);
    }
  }

  void merge(Pair pair) {
    const int32_t merged =
        add_token(tokens_[static_cast<size_t>(pair.first)] + tokens_[static_cast<size_t>(pair.second)].substr(2));
    const std::vector<int32_t> places = std::move(places_[pair]);
    std::vector<Pair> grown;
    for (int32_t index : places) {
      std::vector<int32_t>& pieces = words_[static_cast<size_t>(index)].pieces;
      std::vector<int32_t> shorter;
      for (size_t i = 0; i < pieces.size(); ++i) {
        const bool here = i + 1 < pieces.size() && pieces[i] == pair.first && pieces[i + 1] == pair.second;
        shorter.push_back(here ? merged : pieces[i]);
        i += here;
      }
      if (shorter.size() == pieces.size()) continue;  // an earlier merge had taken the place
      count_pairs(index, -1);
      pieces = std::move(shorter);
      count_pairs(index, +1);
      for (size_t i = 1; i < pieces.size(); ++i)
        if (pieces[i - 1] == merged || pieces[i] == merged) grown.emplace_back(pieces[i - 1], pieces[i]);
    }
    std::sort(grown.begin(), grown.end());
    grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
    for (const Pair& next : grown) heap_.push({pair_counts_[next], next});
  }

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<Word> words_;
  std::unordered_map<Pair, int64_t, PairHash> pair_counts_;
  std::unordered_map<Pair, std::vector<int32_t>, PairHash> places_;  // words that hold, or once held, the pair
  std::priority_queue<Candidate> heap_;
};

}  // namespace

struct WordCounter::Table {
  std::unordered_map<std::string, int64_t> counts;
};

WordCounter::WordCounter(TokenizerOptions options) : options_(options), table_(std::make_shared<Table>()) {}

void WordCounter::add(std::string_view text, const std::string& name, Where where) {
  for (std::string& word : basic_words(text, options_, name, where)) ++table_->counts[std::move(word)];
}

std::vector<WordCount> WordCounter::counts() const {
  std::vector<WordCount> out;
  for (const auto& [word, count] : table_->counts) out.push_back({word, count});
  std::ranges::sort(out, {}, &WordCount::word);
  return out;
}

Vocabulary learn_vocabulary(const std::vector<WordCount>& counts, int64_t size, Where where) {
  std::map<std::string, int64_t> sorted;
  for (const auto& [word, count] : counts) sorted[word] += count;
  Trainer trainer(sorted);
  require(trainer.size() <= size, "learn_vocabulary", where, "a vocabulary of ", size, " cannot hold the ",
          trainer.size(), " special tokens and characters of this text");
  while (trainer.size() < size && trainer.merge_next()) {
  }
  return Vocabulary(trainer.take(), "learnt vocabulary", where);
}

}  // namespace cinta::data
