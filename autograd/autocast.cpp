// The table of policies, and how a tensor is presented in another type.
#include "cinta/autograd/autocast.h"

#include <algorithm>
#include <utility>

#include "cinta/autograd/copy.h"
#include "cinta/autograd/function.h"
#include "cinta/autograd/narrow_products.h"
#include "cinta/core/context.h"

namespace cinta::autograd {
namespace {

// The table: every op whose policy is not to promote. Kernels compute in f32 whatever they read, so what counts here is
// which type is stored, and read by the next op.
constexpr std::string_view low_ops[] = {"linear", "matmul", "attention", "self_attention"};
// Rounded to 8 bits after every layer, what the layers add to the residual would be lost beside it: BERT then takes
// longer to learn from positions at all.
constexpr std::string_view follow_ops[] = {"gather_rows",   "embedding", "embedding_sum", "layer_norm", "rms_norm",
                                           "residual_norm", "add"};
constexpr std::string_view wide_ops[] = {"exp",      "log",    "sqrt",        "rsqrt", "pow",     "power_of",   "erf",
                                         "softplus", "divide", "divide_into", "sum",   "softmax", "log_softmax"};
constexpr std::string_view none_ops[] = {"cast",         "round_to",      "tf32",    "to",      "contiguous", "alias",
                                         "own_gradient", "add_gradients", "reshape", "permute", "slice",      "expand"};

bool castable(Dtype dtype) { return dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::f16; }

/// The policy of the module that runs, where it has one of its own.
std::optional<CastPolicy> module_policy(const Autocast& now) {
  const auto named = std::ranges::find_if(now.modules, NameScope::within, &ModulePolicy::path);
  if (named == now.modules.end()) return {};
  if (now.met) now.met->insert(named->path);
  return named->policy;
}

bool is_kept_wide(const Autocast& now) { return module_policy(now) == CastPolicy::wide; }

bool usable(const Shadow& shadow, const Tensor& x, Dtype dtype) {
  return shadow.storage && shadow.dtype == dtype && shadow.storage->device() == x.device() &&
         context().may_use(*shadow.storage);
}

/// `x`, a leaf or a part of one, in the memory that its storage keeps for this purpose; all of that is brought up to
/// date where it was written since.
Tensor shadow_of(const Tensor& x, Dtype dtype) {
  if (const Tensor current = current_shadow(x, dtype)) return current;
  Shadow& shadow = x.storage()->shadow;
  const Shape all{x.storage()->bytes() / size_of(x.dtype())};
  if (!usable(shadow, x, dtype) || shadow.of != Shadow::Of::weight) {
    CategoryScope scope(Category::weights);
    shadow = {empty(all, dtype, x.device()).storage(), dtype, 0};
  }
  kernels::copy(x.device(), Tensor(shadow.storage, all, {1}, 0, dtype), x.with_layout(all, {1}, 0));
  shadow.storage->mark_written("autocast");
  shadow.version = x.storage()->version();
  return {shadow.storage, x.shape(), x.strides(), x.offset(), dtype};
}

/// Whether x is a leaf, or was sliced from one.
bool of_leaf(const Tensor& x) {
  const Slot* slot = x.slot.get();
  while (slot && slot->producer && std::string_view(slot->producer->name()) == "slice")
    slot = slot->producer->inputs[0].get();
  return slot && slot->leaf;
}

std::shared_ptr<const Autocast> checked(std::optional<Autocast> options, Where where) {
  if (!options) return nullptr;
  const bool narrow = options->low == Dtype::bf16 || options->low == Dtype::f16;
  require<DtypeError>(options->tf32 ? options->low == Dtype::f32 : narrow, "autocast", where,
                      "the low type is bf16 or f16, and f32 with TF32, given ", options->low,
                      options->tf32 ? " with TF32" : "");
  for (const ModulePolicy& module : options->modules)
    require(module.policy != CastPolicy::none, "autocast", where,
            "a module's policy is low, follow, wide or promote: ", module.path);
  return std::make_shared<const Autocast>(*std::move(options));
}

}  // namespace

AutocastScope::AutocastScope(std::optional<Autocast> options, Where where)
    : Scoped(&Mode::autocast, checked(std::move(options), where)) {}

CastPolicy cast_policy(std::string_view op) {
  const auto has = [op](const auto& ops) { return std::ranges::find(ops, op) != std::end(ops); };
  if (has(low_ops)) return CastPolicy::low;
  if (has(follow_ops)) return CastPolicy::follow;
  if (has(wide_ops)) return CastPolicy::wide;
  return has(none_ops) ? CastPolicy::none : CastPolicy::promote;
}

std::shared_ptr<NarrowProducts> narrow_products(std::span<const Tensor* const> inputs) {
  const Autocast* now = mode().autocast.get();
  if (!now || !now->products || is_kept_wide(*now) || now->products->keeps_out()) return {};
  const auto fits = [](const Tensor* input) { return !*input || castable(input->dtype()); };
  return std::ranges::all_of(inputs, fits) ? now->products : nullptr;
}

bool multiplies_tf32() {
  const Autocast* now = mode().autocast.get();
  return now && now->tf32 && !is_kept_wide(*now);
}

bool reconciled(Dtype one, Dtype other) {
  return one == other || (mode().autocast && castable(one) && castable(other));
}

std::optional<Dtype> presented_type(const char* op, std::span<const Tensor* const> inputs) {
  const Autocast& now = *mode().autocast;
  CastPolicy policy = cast_policy(op);
  if (policy == CastPolicy::none) return {};
  policy = module_policy(now).value_or(policy);
  if (policy == CastPolicy::follow) return {};
  if (policy != CastPolicy::promote) return policy == CastPolicy::low ? now.low : Dtype::f32;
  std::optional<Dtype> common;
  for (const Tensor* input : inputs) {
    if (!*input || !castable(input->dtype())) continue;
    if (common && *common != input->dtype()) return Dtype::f32;
    common = input->dtype();
  }
  return {};
}

Tensor shadow_to_write(const char* op, const Tensor& y) {
  const Autocast* now = mode().autocast.get();
  // Narrow products and TF32 round what they read once, from f32.
  if (!now || now->products || now->tf32 || y.dtype() != Dtype::f32 || is_kept_wide(*now)) return {};
  return new_shadow(op, y, now->low, Shadow::Of::result);
}

Tensor new_shadow(const char* op, const Tensor& y, Dtype dtype, Shadow::Of of) {
  const Tensor copy = empty(y.shape(), dtype, y.device());
  copy.storage()->mark_made(op);
  y.storage()->shadow = {copy.storage(), dtype, y.storage()->version(), of};
  return copy;
}

Tensor current_shadow(const Tensor& x, Dtype dtype) {
  const Storage& storage = *x.storage();
  const Shadow& shadow = storage.shadow;
  if (!usable(shadow, x, dtype) || shadow.version != storage.version()) return {};
  // Of the whole storage, as `x` may be a part of it.
  if (shadow.storage->bytes() * size_of(x.dtype()) != storage.bytes() * size_of(dtype)) return {};
  return {shadow.storage, x.shape(), x.strides(), x.offset(), dtype};
}

void carry_shadow(const char* op, const Tensor& y, const Tensor& x,
                  const Callback<void(const Tensor& to, const Tensor& from)>& run) {
  const Autocast* now = mode().autocast.get();
  const Tensor low = now ? current_shadow(x, now->low) : Tensor();
  const Tensor copy = low ? shadow_to_write(op, y) : Tensor();
  if (copy) run(copy, low);
}

void drop_shadow(const Tensor& result) {
  if (result && result.storage()->shadow.of == Shadow::Of::result) result.storage()->shadow = {};
}

Tensor widened(const char* op, const Tensor& x) { return mode().autocast ? presented(op, x, Dtype::f32) : x; }

Tensor presented(const char* op, const Tensor& x, Dtype dtype) {
  if (!x || x.dtype() == dtype || !castable(x.dtype())) return x;
  note_read(op, x);
  // A frozen weight has a shadow where an optimizer made one; a result's is used while it holds, and never renewed.
  const Shadow& shadow = x.storage()->shadow;
  const bool lasting = of_leaf(x) || (shadow.storage && shadow.of == Shadow::Of::weight && !x.slot);
  const bool in_place = x.contiguous() && (lasting || x.bytes() == x.storage()->bytes());
  Tensor out = lasting && in_place && dtype != Dtype::f32 ? shadow_of(x, dtype) : current_shadow(x, dtype);
  // No op of the tape: whether there is a shadow may not decide in which type gradients are added up.
  const NoGrad off;
  if (!out)
    out = apply(Copy{"cast", dtype}, Where(), x);
  else if (!in_place)  // it would keep the whole, and how operands lie may change a product's last bit
    out = apply(Copy{"contiguous"}, Where(), out);
  out.slot = x.slot;
  return out;
}

}  // namespace cinta::autograd
