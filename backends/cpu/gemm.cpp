// Which kernel multiplies: of ours, that of this machine's instruction set; and where ours is to be preferred to
// oneDNN's.
#include "cinta/backends/cpu/gemm.h"

#include <algorithm>
#include <array>

#include "cinta/backends/cpu/isa.h"

namespace cinta {
namespace {

template <class Function>
struct Entry {
  int level = -1;
  Function function = nullptr;
};
// Ready before the constructors that install.
constinit Entry<void (*)(const Gemm&)> general{};
constinit std::array<Entry<bool (*)(const Gemm&)>, 8> special{};  // by falling level

bool special_gemm(const Gemm& product) {
  return std::ranges::any_of(special, [&](const auto& entry) { return entry.function && entry.function(product); });
}

// Measured with oneDNN 2.6, in GF/s: oneDNN's, ours.

/// Zen 3, two cores, which reach 200 alone, and 150 beside busy neighbours, where all of these were measured: along the
/// rows of a [2048,256] x [1024,256]^T 136, 148; [1024,768] x [3072,768]^T 124, 148; [1024,3072] x [3072,768] 125, 133;
/// [2048,128] x [512,128]^T 115, 142; but [128,512] x [512,784] 92, 84; [64,256] x [256,784] 137, 93; [288,4096] x
/// [4096,128] 106, 103. oneDNN walks down a few columns of b at a time, and its rows a multiple of 2 KiB apart push
/// each other out of the caches: [2048,256] x [256,1024] 80, 150; [128,512] x [512,512] 84, 115; one thread [512,4096]
/// x [4096,1024] 38, 62. Weight gradients: [2048,1024]^T x [2048,256] 99, 123; [1024,768]^T x [1024,3072] 66, 145;
/// [128,512]^T x [128,512] 79, 96; but [64,256]^T x [64,784] 112, 94; [2048,128]^T x [2048,128] 118, 101. Few columns
/// leave a tile empty, and short sums it does not pay to pack: one thread [2048,512] x [512,4] 31, 23.
bool fast_with_avx2(const Gemm& p) {
  if (p.n < 8 || p.k < 32) return false;
  if (p.a.row == 1 && p.a.column != 1)
    return std::min(p.m, p.n) >= 64 && p.m * p.n >= 1 << 15 && p.m * p.n * p.k >= 1 << 24;
  if (p.b.column != 1) return p.m >= 128;
  return (p.m >= 192 && p.k < 4096) || (p.m >= 32 && p.k >= 64 && p.b.row % 512 == 0);
}

/// Zen 4, two cores, which reach 466 in bf16 and 234 in f32, operands cold. Where a's rows lie along the sum, bf16:
/// [1024,768] x [3072,768]^T 405, 449; [1024,256] x [256,1024] 343, 441; [2048,256] x [1024,256]^T 413, 436; of few
/// rows: [144,256] x [30522,256]^T 350, 427; [144,1024] x [1024,256] 325, 406; [128,512] x [512,512] 344, 386; [24,256]
/// x [256,256] 263, 333; but [16,256] x [256,1024] 259, 229. Rows of a that collide: [512,4096] x [4096,1024] 402, 356.
/// f32: [1024,768] x [3072,768]^T 208, 219; [160,768] x [30522,768]^T 196, 210; [169,784] x [512,784]^T 177, 200;
/// [120,784] x [512,784]^T 178, 194; but [215,64] x [352,64]^T 60, 54; oneDNN reads few columns of b without packing
/// them: [1024,768] x [768,768] 221, 218; [1024,768] x [768,3072] 206, 218. Rows of a that collide, which are packed if
/// b is large: [1024,3072] x [768,3072]^T 212, 222; but [2048,1024] x [256,1024]^T 224, 213 and [640,1024] x
/// [256,1024]^T 206, 196; few of them: [320,1024] x [256,1024]^T 150, 184; [192,1024] x [128,1024]^T 182, 189. Longer
/// sums were not measured, and would outgrow the caches.
bool fast_along_rows(const Gemm& p) {
  if (p.n < 64 || p.k > 4096) return false;
  const bool collide = p.rows_collide();
  if (p.a.dtype == Dtype::bf16) return p.m >= 24 && !collide;
  if (p.b.column == 1) return p.m >= 256 && (p.n >= 1024 || p.m >= 2048) && !collide;
  if (collide) return p.m >= 192 && (p.m < 640 || p.n * p.k >= 1 << 20);
  return p.m >= 256 || (p.m > 24 && (p.k >= 128 || p.n >= 1024));
}

/// Weight gradients there, bf16: [2048,1024]^T x [2048,256] 357, 405; [2048,256]^T x [2048,256] 371, 386;
/// [320,256]^T x [320,256] 367, 385; [1024,2304]^T x [1024,768] 387, 425; [2048,384]^T x [2048,128] 329, 380; but
/// [288,128]^T x [288,128] 354, 326; [128,512]^T x [128,784] 418, 392. f32: [1024,2304]^T x [1024,768] 204, 213;
/// [256,5000]^T x [256,256] 207, 213; but [1024,768]^T x [1024,768] 224, 209; [2048,256]^T x [2048,256] 206, 200;
/// [256,3000]^T x [256,100] 178, 157. oneDNN copies steps of the sum that lie a multiple of 4 KiB apart, which collide:
/// [2048,1024]^T x [2048,256] 192, 215; [2048,256]^T x [2048,1024] 190, 206; [320,4096]^T x [320,128] 168, 212;
/// [160,3072]^T x [160,768] 196, 222; [128,1024]^T x [128,1024] 198, 214; [32,1024]^T x [32,32] 76, 100; but
/// [64,1024]^T x [64,48] 114, 109. Large ones go past the caches, bf16: [144,30522]^T x [144,256] 367, 402;
/// [32,768]^T x [32,3072] 278, 364; f32: [64,30522]^T x [64,256] 196, 210; [32,768]^T x [32,768] 179, 203; but
/// [160,768]^T x [160,768] 217, 215; and not if their rows are no whole lines, bf16: [64,5018]^T x [64,338] 338, 206,
/// or are added to what is there: [144,30522]^T x [144,256] 352, 302.
bool fast_down_rows(const Gemm& p) {
  const int64_t narrower = std::min(p.m, p.n);
  const bool passes_caches = narrower >= 128 && p.m * p.n >= least_streamed && p.y.whole_lines() && p.beta == 0;
  if (passes_caches && p.k >= 16 && (p.a.dtype == Dtype::bf16 || p.m >= 2048 || p.k < 128)) return true;
  if (p.a.dtype == Dtype::bf16) return p.k >= 256 && narrower >= 128 && p.m * p.n * p.k >= 1 << 24;
  if (p.a.collides(p.a.column) || p.b.collides(p.b.row)) return narrower >= 32;
  if (p.m >= 2048) return p.k >= 192 && p.n >= 128;
  return p.k >= 512 && narrower >= 512 && p.n >= 1024;
}

/// An Emerald Rapids without AMX, two cores, which multiply floats at 330 GF/s and are often slowed down by others that
/// use them; f32, cold operands, oneDNN's time over ours. [2048,128] x [512,128]^T 1.08, [2048,256] x [1024,256]^T
/// 1.15, [2048,1024] x [256,1024]^T 1.07, [1024,3072] x [768,3072]^T 1.05, [320,1024] x [256,1024]^T 1.25. [2048,256] x
/// [256,1024] 1.17, [2048,1024] x [1024,256] 1.06, [1024,768] x [768,3072] 1.06; but [1024,3072] x [3072,768] 0.92,
/// [320,256] x [256,1024] 0.96. Weight gradients: [2048,1024]^T x [2048,256] 1.12, [2048,256]^T x [2048,1024] 1.01,
/// [1024,3072]^T x [1024,768] 1.09, [1024,768]^T x [1024,768] 1.03, [288,4096]^T x [288,128] 1.16, [320,30522]^T x
/// [320,256] 1.23; but [2048,256]^T x [2048,256] 0.93, [128,512]^T x [128,784] 0.89. One with AMX, gradients of fewer
/// values: [2048,512]^T x [2048,128] 1.18, [2048,384]^T x [2048,256] 1.06, [320,512]^T x [320,256] 1.19; but
/// [2048,128]^T x [2048,512] 0.89, [2048,256]^T x [2048,512] 0.85.
bool fast_on_a_xeon(const Gemm& p) {
  if (p.a.row == 1) return p.k >= 160 && std::min(p.m, p.n) >= 128 && (2 * p.m >= 3 * p.n || p.m * p.n >= 3 << 16);
  if (p.n < 64 || p.k > 4096 || p.m < 256) return false;
  return p.b.column != 1 || p.m >= 2048 || (p.m >= 1024 && p.n >= 1024);
}

/// A layer's output of few rows, as the transposed product, which reads w where it lies and packs x. Zen 4, f32:
/// [128,784] x [512,784]^T 208, 216; [128,512] x [512,512]^T 193, 213; [64,256] x [128,256]^T 182, 193; bf16: 417, 420;
/// 402, 406; 328, 348; but [320,256] x [30522,256]^T 410, 386. Zen 3: [16,784] x [256,784]^T 73, 116; [32,768] x
/// [3072,768]^T 89, 115; [64,784] x [256,784]^T 113, 122; but [128,512] x [512,512]^T 133, 122; [64,128] x [4096,128]^T
/// 95, 91; and of fewer rows most of a tile is empty: [4,784] x [256,784]^T 44, 33; [1,784] 28, 7. Emerald Rapids:
/// [128,784] x [512,784]^T 201, 238; [128,512] x [512,512]^T 191, 207; [64,784] x [256,784]^T 185, 200.
bool fast_transposed(const Gemm& p, int64_t most_rows) {
  return p.a.column == 1 && p.b.row == 1 && p.m >= 8 && p.m <= most_rows && p.n >= 2 * p.m;
}

/// Whether y's rows are better multiplied as they lie, on Zen 4, where both ways are fast. Tiles have 12 rows and 32
/// columns; to pack w takes as long as to multiply 8 rows, to turn results round as 12 words of the sum. bf16,
/// transposed and not: [72,256] x [1024,256]^T 297, 390; [108,784] x [512,784]^T 344, 409; but [64,256] x [256,256]^T
/// 366, 355; [28,1940] x [196,1940]^T 270, 179.
bool fast_as_it_lies(const Gemm& p) {
  const int64_t words = p.a.dtype == Dtype::bf16 ? p.k / 2 : p.k;
  return p.m > 24 && !p.rows_collide() && (round_up(p.m, 12) + 8) * words <= round_up(p.m, 32) * (words + 12);
}

bool has_few_columns(const Gemm& p) { return p.b.row == 1 && p.n <= 16; }

/// Products that take little longer than oneDNN takes to begin. Zen 4, f32: [64,128] x [10,128]^T 21, transposed 39;
/// [64,64] x [32,64]^T 39, 82, transposed 67; [64,10] x [10,128] 34, 46; [64,64]^T x [64,64] 57, 98; but [320,256] x
/// [2,256]^T 15, 12. bf16: [128,64] x [64,64]^T 217, 252; [128,10] x [10,512] 107, 134; [128,10]^T x [128,512] 138,
/// 181; [64,64]^T x [64,256] 248, 280; but [128,512] x [10,512]^T 163, 102.
bool is_little(const Gemm& p) {
  const bool few_of_many = has_few_columns(p) && p.m * p.k > 1 << 15;
  return !few_of_many && p.m * p.n * p.k <= (p.a.dtype == Dtype::bf16 ? 1 << 20 : 1 << 18);
}

}  // namespace

InstallGemm::InstallGemm(int level, void (*function)(const Gemm&)) {
  if (level <= isa_level() && level > general.level) general = {level, function};
}

InstallSpecialGemm::InstallSpecialGemm(int level, bool (*function)(const Gemm&)) {
  if (level > isa_level()) return;
  const auto place = std::ranges::find_if(special, [&](const auto& entry) { return entry.level < level; });
  std::move_backward(place, special.end() - 1, special.end());
  *place = {level, function};
}

void gemm(const Gemm& product) {
  if (!special_gemm(product)) general.function(product);
}

bool fast_gemm(const Gemm& product) {
  const auto multiply_if = [&](bool transposed, bool as_it_is) {
    return (transposed && !product.row_sums && special_gemm(product.transposed())) ||
           (as_it_is && special_gemm(product));
  };
  if (product.row_sums && isa_level() == isa_amx) return false;  // its tiles are faster, and add nothing up
  if (isa_level() == isa_avx2)
    return multiply_if(product.k >= 32 && product.n < 4096 && fast_transposed(product, 64), fast_with_avx2(product));
  // An Emerald Rapids, two cores, bf16: [2048,256] x [1024,256]^T 660, 970; [1024,3072] x [768,3072]^T 620, 850; weight
  // gradients [2048,256]^T x [2048,1024] 530, 1060; a decoder's [320,256] x [30522,256]^T 420, 840, its weights' 380,
  // 740; [128,512]^T x [128,784] 210, 640.
  // Of f32 the kernel itself refuses what floats multiply faster.
  const auto& highest = special.front();
  if (highest.level == isa_amx && highest.function(product)) return true;
  if (is_wide_xeon() && product.a.dtype == Dtype::f32)
    return multiply_if(fast_transposed(product, 128), fast_on_a_xeon(product));
  if (isa_level() != isa_avx512_bf16) return false;
  const bool little = is_little(product);
  const bool ours = little || (product.a.row == 1 ? fast_down_rows(product) : fast_along_rows(product));
  const bool turned = fast_transposed(product, 128) && !(ours && fast_as_it_lies(product));
  return multiply_if(turned || (little && has_few_columns(product)), ours);
}

}  // namespace cinta
