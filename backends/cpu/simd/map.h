// The engine of all elementwise rows: views of any layout and type are brought, tile by tile, to plain arrays of one
// computing type, and one small loop per row runs over those. Tiles that are plain already are not copied.
#pragma once
#include <initializer_list>

#include "cinta/core/view.h"

#include "cinta/backends/cpu/isa_begin.h"

/// What a row does with `count` elements of its inputs.
template <class T>
using Loop = void (*)(T* out, const T* const* in, int64_t count, const void* context);

/// y = loop(inputs): up to three inputs of y's shape. `context` is handed to the loop. T: float, double or int64_t.
template <class T>
void map(const View& y, std::initializer_list<View> inputs, Loop<T> loop, const void* context);

/// True iff every value of `dtype` is a float.
inline bool fits_float(Dtype dtype) { return size_of(dtype) <= 2 || dtype == Dtype::f32; }

/// Calls `f.template operator()<T>()` with the type that holds every value of both: what moving values goes through.
template <class F>
void with_common(const View& a, const View& b, F f) {
  if (fits_float(a.dtype) && fits_float(b.dtype))
    f.template operator()<float>();
  else if (!is_floating(a.dtype) && !is_floating(b.dtype))
    f.template operator()<int64_t>();
  else
    f.template operator()<double>();
}

#include "cinta/backends/cpu/isa_end.h"
