// Plans for oneDNN, made once per kind of product. All that differs between oneDNN 2.6 and 3 stands in this file.
// The library is only ever asked for products on one thread: how it cuts a sum would depend on the number of threads.
// We cut y into tiles, by the sizes alone, and run those side by side.
#include "cinta/backends/cpu/onednn.h"

#include "cinta/backends/library.h"

#if CINTA_WITH_ONEDNN
#include <oneapi/dnnl/dnnl_config.h>
#endif
#if CINTA_WITH_ONEDNN && CINTA_WITH_OPENMP && DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP
#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/thread_own.h"

namespace cinta::onednn {
namespace {

/// What a primitive is made for: everything of a product but its addresses.
struct Key {
  int64_t m, n, k, a_row, a_column, b_row, b_column, y_row;
  Dtype a, b, y, bias;
  bool has_bias;
  float beta;
  bool operator==(const Key&) const = default;
};

struct Hash {
  size_t operator()(const Key& key) const {
    uint64_t hash = 0;
    for (int64_t part : {key.m, key.n, key.k, key.a_row, key.a_column, key.b_row, key.b_column, key.y_row,
                         static_cast<int64_t>(key.a) + 16 * static_cast<int64_t>(key.y) + 256 * key.has_bias})
      hash = (hash ^ static_cast<uint64_t>(part)) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
    return hash;
  }
};

struct Plan {
  dnnl::matmul primitive;
  dnnl::memory::desc a, b, y, bias, workspace;
};

/// While alive, oneDNN uses the calling thread only.
class OneThread {
 public:
  OneThread() : outer_(omp_get_max_threads()) {
    if (outer_ > 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (outer_ > 1) omp_set_num_threads(outer_);
  }
  OneThread(const OneThread&) = delete;

 private:
  int outer_;
};

/// Where CINTA_ISA asks for less than the processor has, oneDNN is to keep to it too. It hears that once, before all
/// else.
void cap_isa() {
  using dnnl::cpu_isa;
  constexpr std::array caps{cpu_isa::sse41, cpu_isa::avx2, cpu_isa::avx512_core_vnni, cpu_isa::avx512_core_bf16};
  if (!isa_is_capped()) return;
  require(dnnl::set_max_cpu_isa(caps.at(static_cast<size_t>(isa_level()))) == dnnl::status::success, "cpu", Where(),
          "CINTA_ISA=", isa_name(isa_level()),
          " has to reach oneDNN before its first use, and it was used before or allows no cap");
}

const dnnl::engine& engine() {
  static const dnnl::engine& cpu_engine = *[] {  // never destroyed: static objects may multiply when they go
    cap_isa();
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return cpu_engine;
}

dnnl::memory::desc descriptor(int64_t rows, int64_t columns, Dtype dtype, int64_t row, int64_t column) {
  using Type = dnnl::memory::data_type;
  return {{rows, columns}, dtype == Dtype::f32 ? Type::f32 : Type::bf16, dnnl::memory::dims{row, column}};
}

/// Null where oneDNN has nothing but its reference loops.
std::unique_ptr<Plan> make_plan(const Key& key) try {
  auto plan = std::make_unique<Plan>();
  plan->a = descriptor(key.m, key.k, key.a, key.a_row, key.a_column);
  plan->b = descriptor(key.k, key.n, key.b, key.b_row, key.b_column);
  plan->y = descriptor(key.m, key.n, key.y, key.y_row, 1);
  if (key.has_bias) plan->bias = descriptor(1, key.n, key.bias, key.n, 1);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (key.beta != 0) {
    dnnl::post_ops after;
    after.append_sum(key.beta);
    attributes.set_post_ops(after);
  }
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc found(engine(), plan->a, plan->b, plan->bias, plan->y, attributes);
#else
  const dnnl::matmul::desc wanted = key.has_bias ? dnnl::matmul::desc(plan->a, plan->b, plan->bias, plan->y)
                                                 : dnnl::matmul::desc(plan->a, plan->b, plan->y);
  const dnnl::matmul::primitive_desc found(wanted, attributes, engine());
#endif
  if (std::string_view(found.impl_info_str()).find("ref") != std::string_view::npos) return nullptr;
  plan->workspace = found.scratchpad_desc();
  plan->primitive = dnnl::matmul(found);
  return plan;
} catch (const dnnl::error& error) {
  // A want of memory may pass, and is not remembered as what lasts: no implementation, or none that may run here.
  if (error.status == dnnl_out_of_memory)
    throw OutOfMemory(join("[matmul] oneDNN has no memory to plan a product of ", key.m, " x ", key.k, " and ", key.k,
                           " x ", key.n, " values"));
  return nullptr;
}

std::atomic<int64_t> made{0};

/// The plan for `key`, made at first use; null where there is none.
const Plan* plan_for(const Key& key) {
  static std::shared_mutex mutex;
  static auto& plans = *new std::unordered_map<Key, std::unique_ptr<Plan>, Hash>;  // as the engine
  {
    const std::shared_lock reading(mutex);
    if (const auto found = plans.find(key); found != plans.end()) return found->second.get();
  }
  const OneThread alone;
  const std::unique_lock writing(mutex);
  if (const auto found = plans.find(key); found != plans.end()) return found->second.get();
  std::unique_ptr<Plan> plan = make_plan(key);
  ++made;
  return plans.emplace(key, std::move(plan)).first->second.get();
}

/// Copies a transposed a to where its columns follow each other.
void gather_columns(char* out, const Gemm& p) {
  const auto bytes = static_cast<size_t>(p.m * size_of(p.a.dtype));
  for (int64_t k = 0; k < p.k; ++k, out += bytes) std::memcpy(out, p.a.at(0, k), bytes);
}

/// Runs `product` by its plan on the calling thread, with its own a or a copy.
void run(const Plan& plan, const Gemm& product, bool copies) {
  const OneThread alone;
  const int64_t of_copy = copies ? (product.m * product.k * size_of(product.a.dtype) + 63) / 64 * 64 : 0;
  auto* room = static_cast<char*>(scratch(of_copy + static_cast<int64_t>(plan.workspace.get_size()), Workspace::tile));
  if (copies) gather_columns(room, product);
  const auto at = [](const dnnl::memory::desc& desc, void* data) { return dnnl::memory(desc, engine(), data); };
  const dnnl::memory a = at(plan.a, copies ? room : product.a.data), b = at(plan.b, product.b.data),
                     y = at(plan.y, product.y.data), bias = at(plan.bias, product.bias.data),
                     workspace = at(plan.workspace, room + of_copy);
  const std::array<dnnl_exec_arg_t, 5> arguments{{{DNNL_ARG_SRC, a.get()},
                                                  {DNNL_ARG_WEIGHTS, b.get()},
                                                  {DNNL_ARG_DST, y.get()},
                                                  {DNNL_ARG_SCRATCHPAD, workspace.get()},
                                                  {DNNL_ARG_BIAS, bias.get()}}};
  const dnnl::stream& stream = thread_own<dnnl::stream>(engine());
  const int count = product.bias.data ? 5 : 4;
  dnnl::error::wrap_c_api(dnnl_primitive_execute(plan.primitive.get(), stream.get(), count, arguments.data()),
                          "a matrix product of oneDNN failed");
}

/// True iff one of the strides is 1 and the other steps over what it spans.
bool plain(const Matrix& m, int64_t rows, int64_t columns) {
  return (m.column == 1 && m.row >= columns) || (m.row == 1 && m.column >= rows);
}

/// What this file hands to oneDNN: f32, or bf16 to bf16 or f32. Not bf16 that floats multiply faster, or that it would
/// have to emulate: with AVX-512 but no products of bf16, its way to add to a result in bf16 reads beyond the last row.
bool takes(const Gemm& p) {
  const bool types =
      p.a.dtype == p.b.dtype && multiplies(p.a.dtype) && (p.y.dtype == p.a.dtype || p.y.dtype == Dtype::f32);
  const bool bias = !p.bias.data || (p.bias.row == 0 && p.bias.column == 1 &&
                                     (p.bias.dtype == Dtype::f32 || p.bias.dtype == p.a.dtype));
  return types && bias && p.alpha == 1 && p.y.column == 1 && p.y.row >= p.n && plain(p.a, p.m, p.k) &&
         plain(p.b, p.k, p.n);
}

Key key_of(const Gemm& p) {
  return {p.m,
          p.n,
          p.k,
          p.a.row,
          p.a.column,
          p.b.row,
          p.b.column,
          p.y.row,
          p.a.dtype,
          p.b.dtype,
          p.y.dtype,
          p.bias.dtype,
          p.bias.data != nullptr,
          p.beta};
}

/// Sizes of the tiles of y, as they came out best over the products of BERT and MLP steps in f32 and bf16 (Zen 4, one
/// thread): a tile of some 256 rows, or of all where they are few, reads b the fewest times; at most 1024 columns keep
/// what it reads of b in the second-level cache; a transposed a is packed by every tile of its rows, which has to pay
/// in columns. Gradients of weights are cut by rows alone where their columns are few: then a thread writes the rows
/// that it updates and multiplies with (see optimizer.cpp), and a is packed once: f32[128,512]^T x f32[128,784] 198,
/// 216 GF/s, bf16 372, 401; a step of MLP 784-256-128-10 0.97 of its time, where threads share no cache 0.79. With
/// these, weights packed anew for each product and oneDNN's inner products gain nothing on the whole.
struct Tiles {
  /// `of_two` if another product is done beside it.
  Tiles(const Gemm& p, bool of_two) {
    // So many that a thread which falls behind is waited for but shortly, and not more where all is soon done.
    const int64_t work = p.m * p.n * p.k, wanted = work < 1 << 26 || of_two ? 4 : 8;
    const bool transposed = p.a.row == 1 && p.a.column != 1;
    // Columns a multiple of 4 KiB apart push each other out of the first cache. Xeon 6, f32[2048,1024]^T x
    // f32[2048,256]: 207 GF/s without a copy, 310 with it.
    copies = transposed && p.m > 1 && p.a.collides(p.a.column) && p.k <= 8192;
    const bool tall = transposed && p.m >= 2048;  // cut lower, its tiles would not be packed with AVX2 alone
    const bool by_rows = transposed && !copies && !tall && p.m >= 128 && p.n < 1024;
    m = p.m <= 512 ? p.m : tall ? 512 : 256;
    // So do rows of a that are multiplied by rows of b, and oneDNN copies them where a tile has many columns. Zen 4,
    // f32[1024,3072] x [768,3072]^T in tiles of 384 columns 192 GF/s, of 768 215; bf16[1024,2048] x [512,2048]^T 372,
    // 430.
    const bool gathers = !transposed && p.b.row == 1 && p.m > 512 && p.rows_collide();
    const int64_t share = tall || gathers ? p.n : (p.n * parts(p.m, m) / wanted + 63) / 64 * 64;
    n = copies || by_rows ? p.n : std::clamp<int64_t>(share, transposed ? 256 : 128, 1024);
    across = parts(p.n, n);
    // One tile is cut so low only where two threads gain more by it than packing b twice costs. By fours: of a few
    // tiles, a last one much lower than the others leaves threads idle. Zen 4, [320,4096] x [4096,128] in tiles of 48
    // rows 183 (bf16 320) GF/s, of 40 207 (367); [300,300]^T x [300,300] 187, 202.
    const int64_t lowest = across > 1 || by_rows || work < 1 << 20 ? 64 : 32;
    if (parts(p.m, m) * across < wanted && !tall)
      m = std::min(m, std::max(lowest, parts(parts(p.m * across, wanted), 4) * 4));
    down = parts(p.m, m);
    n = std::min(n, (parts(p.n, across) + 15) / 16 * 16);  // the last one no smaller than need be
  }
  static int64_t parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }
  /// What a tile is planned for.
  Key key(const Gemm& p, int64_t tile) const {
    Gemm part = at(p, tile);
    if (copies) part.a.column = part.m;
    return key_of(part);
  }
  Gemm at(const Gemm& p, int64_t tile) const {
    const int64_t i = tile % down * m, j = tile / down * n;
    Gemm part = p;
    part.m = std::min(m, p.m - i);
    part.n = std::min(n, p.n - j);
    part.y.data = p.y.at(i, j);
    part.a.data = p.a.at(i, 0);
    part.b.data = p.b.at(0, j);
    if (p.bias.data) part.bias.data = p.bias.at(0, j);
    return part;
  }
  int64_t m, n, down, across;
  bool copies;  ///< a tile's columns of a first
};

/// A product by its tiles.
class TiledProduct {
 public:
  TiledProduct(const Gemm& product, bool of_two) : product_(product), tiles_(product, of_two) {
    const auto plan_of = [&](int64_t tile) { return plan_for(tiles_.key(product, tile)); };
    plans_ = {plan_of(0), plan_of(tiles_.down - 1), plan_of(count() - tiles_.down), plan_of(count() - 1)};
  }
  bool planned() const { return std::ranges::count(plans_, nullptr) == 0; }
  int64_t count() const { return tiles_.down * tiles_.across; }
  void run_tile(int64_t tile) const {
    const bool at_right = tile >= count() - tiles_.down, at_bottom = tile % tiles_.down == tiles_.down - 1;
    run(*plans_[(at_right ? 2u : 0u) + (at_bottom ? 1u : 0u)], tiles_.at(product_, tile), tiles_.copies);
  }

 private:
  Gemm product_;
  Tiles tiles_;
  std::array<const Plan*, 4> plans_;  ///< of the tiles inside, at the lower edge, at the right edge, in the corner
};

}  // namespace

bool multiply(const Gemm& product, const Gemm* other) {
  if (!takes(product) || (other && !takes(*other))) return false;
  const TiledProduct tiled(product, other);
  std::optional<TiledProduct> beside;
  if (other) beside.emplace(*other, true);
  if (!tiled.planned() || (beside && !beside->planned())) return false;
  parallel_for(tiled.count() + (beside ? beside->count() : 0), 1, [&](int64_t tile, int64_t) {
    if (tile < tiled.count())
      tiled.run_tile(tile);
    else
      beside->run_tile(tile - tiled.count());
  });
  return true;
}

bool multiply_whole(const Gemm& product) {
  const Plan* plan = takes(product) ? plan_for(key_of(product)) : nullptr;
  if (plan) run(*plan, product, false);
  return plan;
}

int64_t plans_made() { return made; }

}  // namespace cinta::onednn

std::string cinta::product_library() {
  const dnnl_version_t* found = dnnl_version();
  return join("oneDNN ", found->major, ".", found->minor, ".", found->patch);
}

#else

namespace cinta::onednn {
bool multiply(const Gemm&, const Gemm*) { return false; }
bool multiply_whole(const Gemm&) { return false; }
int64_t plans_made() { return 0; }
}  // namespace cinta::onednn

std::string cinta::product_library() { return ""; }

#endif
