// The rules of 8-bit tensor cores.
#include "cinta/backends/product_plan.h"

namespace cinta {

bool has_product(Dtype a, Dtype b) {
  const auto ocp = [](Dtype type) { return type == Dtype::f8e4m3 || type == Dtype::f8e5m2; };
  const auto fnuz = [](Dtype type) { return type == Dtype::f8e4m3fnuz || type == Dtype::f8e5m2fnuz; };
  return (ocp(a) && ocp(b) && !(a == Dtype::f8e5m2 && b == Dtype::f8e5m2)) || (fnuz(a) && fnuz(b));
}

int64_t size_step(const NarrowProduct& product) { return product.by_blocks ? 128 : 16; }

NarrowProduct padded(NarrowProduct product) {
  const int64_t step = size_step(product);
  for (int64_t* size : {&product.m, &product.n, &product.k}) *size = (*size + step - 1) / step * step;
  return product;
}

void check_product(const NarrowProduct& product, const char* op, Where where) {
  require<DtypeError>(has_product(product.a, product.b), op, where, product.a, " x ", product.b,
                      " does not exist on this hardware: use f8e4m3 for one of the two");
  const NarrowProduct fits = padded(product);
  require<ShapeError>(fits.m == product.m && fits.n == product.n && fits.k == product.k, op, where,
                      "sizes are multiples of ", size_step(product), ", given m, n, k = ", product.m, ", ", product.n,
                      ", ", product.k, "; sizes=pad fills them up with zeros, wide=PATH keeps a layer out");
}

}  // namespace cinta
