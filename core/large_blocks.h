// Large blocks, cut from segments of a device's memory and joined again when they are free: what one part of a step
// gives back serves the next one, whatever its sizes are.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace cinta {

class LargeBlocks {
 public:
  /// Blocks of this many bytes and more are large; all are multiples of `grain`, so that what is left of a range that
  /// was cut is worth keeping.
  static constexpr int64_t least = 1 << 20, grain = 1 << 16;

  /// Blocks of `from_end` bytes and more are cut from the ends of holes. That suits blocks that come among smaller ones
  /// and stay longer than those: what is left of a hole lies together.
  explicit LargeBlocks(int64_t from_end) : from_end_(from_end) {}

  /// From now on cuts blocks from this memory, too.
  void add_segment(void* data, int64_t bytes);
  /// A part of the smallest free range with room for `bytes`; null where there is none.
  void* take(int64_t bytes);
  /// False for a block that is not of these.
  bool give(void* block);
  int64_t free_bytes() const;
  /// Forgets the segments that are free as a whole and calls release(data, bytes) for each.
  template <class Release>
  void trim(Release release) {
    for (auto piece = pieces_.begin(); piece != pieces_.end();) {
      const auto next = std::next(piece);
      if (piece->second.free && piece->second.begins && ends_segment(piece)) {
        free_.erase({piece->second.bytes, piece->first});
        release(piece->first, piece->second.bytes);
        pieces_.erase(piece);
      }
      piece = next;
    }
  }

 private:
  int64_t from_end_;
  struct Piece {
    int64_t bytes;
    bool free, begins;  ///< begins a segment
  };
  using Pieces = std::map<char*, Piece>;
  bool ends_segment(Pieces::const_iterator piece) const {
    const auto next = std::next(piece);
    return next == pieces_.end() || next->second.begins;
  }
  /// Makes the piece and the one after it one.
  void join(Pieces::iterator piece);
  Pieces pieces_;                             ///< all there are, by address
  std::set<std::pair<int64_t, char*>> free_;  ///< the free ones, by size
};

}  // namespace cinta
