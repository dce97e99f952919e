// Best fit with joining of neighbours.
#include "cinta/core/large_blocks.h"

namespace cinta {

void LargeBlocks::add_segment(void* data, int64_t bytes) {
  char* begin = static_cast<char*>(data);
  pieces_.insert({begin, {bytes, true, true}});
  free_.insert({bytes, begin});
}

void* LargeBlocks::take(int64_t bytes) {
  const auto fit = free_.lower_bound({bytes, nullptr});
  if (fit == free_.end()) return nullptr;
  const auto [room, begin] = *fit;
  const auto piece = pieces_.find(begin);
  if (room == bytes) {
    free_.erase(fit);
    piece->second.free = false;
    return begin;
  }
  // The end of a segment may never have been touched, and is better left alone.
  const bool from_end = bytes >= from_end_ && !ends_segment(piece);
  const int64_t front = from_end ? room - bytes : bytes;
  char* const cut = begin + front;
  pieces_.insert({cut, {room - front, !from_end, false}});  // the one call that may throw, and nothing has changed yet
  piece->second.bytes = front;
  piece->second.free = from_end;
  auto left = free_.extract(fit);
  left.value() = from_end ? std::pair{front, begin} : std::pair{room - front, cut};
  free_.insert(std::move(left));
  return from_end ? cut : begin;
}

int64_t LargeBlocks::free_bytes() const {
  int64_t sum = 0;
  for (const auto& [bytes, begin] : free_) sum += bytes;
  return sum;
}

bool LargeBlocks::give(void* block) {
  auto piece = pieces_.find(static_cast<char*>(block));
  if (piece == pieces_.end()) return false;
  piece->second.free = true;
  if (!ends_segment(piece) && std::next(piece)->second.free) {
    free_.erase({std::next(piece)->second.bytes, std::next(piece)->first});
    join(piece);
  }
  if (piece != pieces_.begin() && !piece->second.begins && std::prev(piece)->second.free) {
    --piece;
    free_.erase({piece->second.bytes, piece->first});
    join(piece);
  }
  free_.insert({piece->second.bytes, piece->first});
  return true;
}

void LargeBlocks::join(Pieces::iterator piece) {
  const auto next = std::next(piece);
  piece->second.bytes += next->second.bytes;
  pieces_.erase(next);
}

}  // namespace cinta
