// Names of precisions, and the note in a checkpoint.
#include "cinta/train/precision.h"

#include <cmath>
#include <cstdio>

#include "cinta/train/loop.h"

namespace cinta::train {

namespace {

/// As users know them, and as numbers of a checkpoint.
struct Precision {
  std::string_view name;
  double number;
};
constexpr Precision fp32{"fp32", double(Dtype::f32)}, tf32_products{"tf32", 64},
    bf16_autocast{"bf16", double(Dtype::bf16)}, fp16{"fp16", double(Dtype::f16)}, fp8{"fp8", double(Dtype::f8e4m3)};

Precision precision_of(const std::optional<autograd::Autocast>& types) {
  if (!types) return fp32;
  if (types->tf32) return tf32_products;
  if (types->products) return fp8;
  return types->low == Dtype::f16 ? fp16 : bf16_autocast;
}

/// `types` but in the modules of "wide=PATH,low=PATH,promote=PATH".
autograd::Autocast with_modules(autograd::Autocast types, std::string_view text, Where where) {
  using autograd::CastPolicy;
  types.met = std::make_shared<std::set<std::string>>();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    bool fits = false;
    for (const auto& [key, policy] : {std::pair<std::string_view, CastPolicy>{"wide=", CastPolicy::wide},
                                      {"low=", CastPolicy::low},
                                      {"promote=", CastPolicy::promote}})
      if (part.starts_with(key) && part.size() > key.size())
        types.modules.push_back({std::string(part.substr(key.size())), policy}), fits = true;
    require(fits, "precision", where, "wide=PATH, low=PATH or promote=PATH, commas between, given ", text);
    begin = end + 1;
  }
  return types;
}

/// Says where a resumed run begins another loss scale; one in fp32 has 1.
void note_loss_scale(const Moment& now, bool resumed) {
  constexpr std::string_view key = "precision_loss_scale", dynamic_key = "precision_loss_scale_dynamic";
  const optim::LossScaleOptions& options = now.options.loss_scale;
  const double saved = now.state.number(key), before = std::isnan(saved) ? 1 : saved;
  const bool was_dynamic = now.state.number(dynamic_key) == 1;
  if (resumed && (options.initial != before || options.dynamic != was_dynamic))
    std::fprintf(stderr, "the loss scale begins anew at %s; the checkpoint's began at %s%s\n",
                 join(options.initial).c_str(), join(before).c_str(),
                 options.dynamic == was_dynamic ? ""
                 : was_dynamic                  ? " and was dynamic"
                                                : " and was not dynamic");
  if (options.initial != before) now.state.keep(key, options.initial);
  if (options.dynamic != was_dynamic) now.state.keep(dynamic_key, options.dynamic ? 1 : 0);
}

}  // namespace

std::optional<autograd::Autocast> parse_precision(std::string_view name, Where where) {
  if (name == fp32.name) return {};
  for (const auto& [base, types] : {std::pair{tf32_products.name, autograd::Autocast{.low = Dtype::f32, .tf32 = true}},
                                    {bf16_autocast.name, {.low = Dtype::bf16}},
                                    {fp16.name, {.low = Dtype::f16}}}) {
    if (name == base) return types;
    if (name.starts_with(base) && name[base.size()] == '/')
      return with_modules(types, name.substr(base.size() + 1), where);
  }
  require(name == fp8.name || name.starts_with("fp8/"), "precision", where,
          "fp32, tf32, bf16, fp16, fp8 or fp8/RECIPE, given ", name);
  const autograd::ProductRecipe recipe =
      name == fp8.name ? autograd::ProductRecipe() : autograd::parse_product_recipe(name.substr(4), where);
  return autograd::Autocast{.products = std::make_shared<autograd::NarrowProducts>(recipe, where)};
}

void require_modules_met(const autograd::Autocast& types, Where where) {
  if (!types.met) return;
  for (const autograd::ModulePolicy& module : types.modules)
    require(types.met->contains(module.path), "precision", where, "an op at or below ", module.path,
            ", which has a policy of its own: none has run there in this step");
}

void add_counts(MetricFields& fields, const std::vector<autograd::NarrowProducts::LayerCounts>& counts) {
  constexpr const char* names[] = {"input", "weight", "gradient"};
  autograd::NarrowProducts::Count all;
  double worst = 0;
  std::string place;
  for (const auto& layer : counts)
    for (size_t i = 0; i < std::size(names); ++i) {
      const auto& [elements, too_large, vanished] = layer.of[i];
      all.elements += elements, all.too_large += too_large, all.vanished += vanished;
      const double share = static_cast<double>(std::max(too_large, vanished)) / static_cast<double>(elements);
      if (share > worst) worst = share, place = join(layer.layer, " ", names[i]);
    }
  if (all.elements == 0) return;
  fields.emplace_back("fp8_saturated", static_cast<double>(all.too_large) / static_cast<double>(all.elements));
  fields.emplace_back("fp8_vanished", static_cast<double>(all.vanished) / static_cast<double>(all.elements));
  if (!place.empty()) fields.emplace_back("fp8_worst", join(place, " ", worst));
}

void PrecisionNote::on_step_end(const Moment& now) {
  if (now.options.autocast) require_modules_met(*now.options.autocast, Where());
}

void PrecisionNote::on_train_begin(const Moment& now) {
  constexpr std::string_view key = "precision", recipe_key = "precision_recipe";
  const Precision present = precision_of(now.options.autocast);
  const double saved = now.state.number(key);
  Precision before = fp32;
  for (const Precision& one : {tf32_products, bf16_autocast, fp16, fp8})
    if (saved == one.number) before = one;
  const bool resumed = now.state.step > 0 && !now.options.quiet;
  if (resumed && present.number != before.number)
    std::fprintf(stderr,
                 "the checkpoint is of a run in %s, which goes on in %s; its weights and the optimizer's state are f32 "
                 "and are taken as they are\n",
                 std::string(before.name).c_str(), std::string(present.name).c_str());
  if (present.number != before.number) now.state.keep(key, present.number);
  note_loss_scale(now, resumed);
  if (present.number != fp8.number) return;
  const autograd::ProductRecipe& recipe = now.options.autocast->products->recipe();
  const int64_t steps = recipe.history + (recipe.most_recent ? int64_t{1} << 21 : 0);
  const double number =
      static_cast<double>(static_cast<int>(recipe.scaling) + 4 * static_cast<int>(recipe.forward) +
                          64 * static_cast<int>(recipe.gradient) + 4096 * (recipe.margin + 64) + (steps << 20));
  if (resumed && before.number == fp8.number && now.state.number(recipe_key) != number)
    std::fputs(
        "the checkpoint is of a run in fp8 by another recipe; scales are worked out anew, from its histories "
        "where both are delayed\n",
        stderr);
  now.state.keep(recipe_key, number);
}

}  // namespace cinta::train
