// Tiles: how an operand of any layout becomes an array, and an array becomes an output of any layout.
#include "cinta/backends/cpu/simd/map.h"

#include <algorithm>

#include "cinta/backends/cpu/layout.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/convert.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

constexpr int64_t piece = 512;      // elements converted at once: all buffers stay in the first cache
constexpr int64_t short_row = 128;  // below this, pieces run on over the ends of rows

/// One view of the loop nest.
template <class T>
struct Operand {
  Operand(const Layout& layout, int number, const View& view)
      : layout(layout), number(number), data(view.data), dtype(view.dtype) {
    stride = layout.strides[number][layout.rank - 1];
    linear = layout.linear(number);
    constant = stride == 0 && layout.rank == 1;
    plain = dtype == dtype_of<T>();
    whole_rows = layout.row() >= short_row || layout.rank == 1;
  }
  /// True iff pieces can be used where they lie.
  bool direct() const { return plain && stride == 1 && whole_rows; }
  T* address(int64_t at) const { return static_cast<T*>(data) + (linear ? at : layout.offset(number, at)); }

  /// Calls f(number of the first element in memory, offset in the piece, count) for each part that lies in one row.
  template <class F>
  void parts(int64_t at, int64_t count, F f) const {
    for (int64_t done = 0; done < count;) {
      const int64_t left = layout.row() - (at + done) % layout.row(), length = std::min(count - done, left);
      f(linear ? at + done : layout.offset(number, at + done), done, length);
      done += length;
    }
  }
  const T* read(int64_t at, int64_t count, T* buffer) const {
    if (direct()) return address(at);
    parts(at, count,
          [&](int64_t first, int64_t done, int64_t n) { load(buffer + done, dtype, data, first, stride, n); });
    return buffer;
  }
  void write(int64_t at, int64_t count, const T* buffer) const {
    parts(at, count,
          [&](int64_t first, int64_t done, int64_t n) { store(dtype, data, first, stride, buffer + done, n); });
  }

  const Layout& layout;
  int number;
  void* data;
  Dtype dtype;
  int64_t stride;
  bool linear, constant, plain, whole_rows;
};

}  // namespace

template <class T>
void map(const View& y, std::initializer_list<View> inputs, Loop<T> loop, const void* context) {
  const View* in = inputs.begin();
  const size_t n = inputs.size();
  const View none = y;
  const Layout layout{y, n > 0 ? in[0] : none, n > 1 ? in[1] : none, n > 2 ? in[2] : none};
  if (layout.count == 0) return;
  const Operand<T> output(layout, 0, y);
  const Operand<T> operands[] = {
      {layout, 1, n > 0 ? in[0] : none}, {layout, 2, n > 1 ? in[1] : none}, {layout, 3, n > 2 ? in[2] : none}};
  bool direct = output.direct();
  for (size_t i = 0; i < n; ++i) direct = direct && operands[i].direct();
  parallel_for(layout.count, elements_of_tile, [&](int64_t begin, int64_t end) {
    alignas(64) T buffers[Layout::most][piece];
    const T* read[Layout::most] = {};
    for (size_t i = 0; i < n; ++i)
      if (operands[i].constant)
        load(buffers[i], operands[i].dtype, operands[i].data, 0, 0, piece), read[i] = buffers[i];
    for (int64_t at = begin; at < end;) {
      int64_t count = std::min(end - at, direct ? elements_of_tile : piece);
      if (output.whole_rows) count = std::min(count, layout.row() - at % layout.row());
      for (size_t i = 0; i < n; ++i)
        if (!operands[i].constant) read[i] = operands[i].read(at, count, buffers[i]);
      T* out = output.direct() ? output.address(at) : buffers[n];
      loop(out, read, count, context);
      if (out == buffers[n]) output.write(at, count, out);
      at += count;
    }
  });
}

template void map(const View&, std::initializer_list<View>, Loop<float>, const void*);
template void map(const View&, std::initializer_list<View>, Loop<double>, const void*);
template void map(const View&, std::initializer_list<View>, Loop<int64_t>, const void*);

#include "cinta/backends/cpu/isa_end.h"
