// Sizes and strides, held inline: at most eight dimensions.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "cinta/core/error.h"

namespace cinta {

inline constexpr int max_rank = 8;

/// A short list of sizes (or strides, in elements). Trivially copyable.
class Shape {
 public:
  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<int64_t> sizes)
      : Shape(std::span<const int64_t>(sizes.begin(), sizes.size())) {}
  /// Throws ShapeError above eight dimensions.
  constexpr explicit Shape(std::span<const int64_t> sizes) {
    check_rank(static_cast<int64_t>(sizes.size()));
    for (int64_t size : sizes) sizes_[rank_++] = size;
  }
  /// `rank` dimensions of `size` each.
  static Shape filled(int rank, int64_t size) {
    Shape out;
    check_rank(rank);
    out.rank_ = rank;
    out.sizes_.fill(size);
    return out;
  }

  constexpr int rank() const { return rank_; }
  constexpr int64_t operator[](int dim) const { return sizes_[dim]; }
  constexpr int64_t& operator[](int dim) { return sizes_[dim]; }
  constexpr const int64_t* begin() const { return sizes_.data(); }
  constexpr const int64_t* end() const { return sizes_.data() + rank_; }
  constexpr int64_t back() const { return sizes_[rank_ - 1]; }
  constexpr void push_back(int64_t size) {
    check_rank(rank_ + 1);
    sizes_[rank_++] = size;
  }
  /// Product of the sizes; 1 without dimensions.
  constexpr int64_t numel() const {
    int64_t count = 1;
    for (int64_t size : *this) count *= size;
    return count;
  }
  constexpr bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i)
      if (sizes_[i] != other.sizes_[i]) return false;
    return true;
  }

 private:
  static constexpr void check_rank(int64_t rank) {
    if (rank > max_rank) throw ShapeError("[shape] at most 8 dimensions, given " + std::to_string(rank));
  }
  std::array<int64_t, max_rank> sizes_{};
  int rank_ = 0;
};

void describe(std::string& out, const Shape& shape);

/// Row-major strides of `shape`.
Shape contiguous_strides(const Shape& shape);
/// `dim` counted from the end when negative; throws ShapeError naming `op` when outside the rank.
int normalize_dim(int dim, int rank, std::string_view op, Where where);
/// The common shape of `a` and `b` under broadcasting (sizes equal, or 1, aligned at the last dimension).
Shape broadcast_shape(const Shape& a, const Shape& b, std::string_view op, Where where);
/// Strides that read a tensor of `shape`/`strides` as if it had shape `wanted` (stride 0 where a size 1 is repeated).
Shape broadcast_strides(const Shape& shape, const Shape& strides, const Shape& wanted);

}  // namespace cinta
