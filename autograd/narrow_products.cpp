// Scales, codes and the memory between steps; what a layer does with them is ops/narrow_linear.cpp.
#include "cinta/autograd/narrow_products.h"

#include <algorithm>
#include <cmath>

#include "cinta/autograd/mode.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/quantize.h"
#include "cinta/backends/product_plan.h"
#include "cinta/core/context.h"
#include "cinta/core/format_facts.h"

namespace cinta::autograd {
namespace {

constexpr const char* operand_names[] = {"input", "weight", "gradient"};
constexpr int64_t block = 128;

double largest_of(Dtype type) { return std::ranges::find(float_formats, name_of(type), &FormatFacts::name)->largest; }

Tensor transposed_copy(const Tensor& x) {
  const Tensor out = empty({x.size(1), x.size(0)}, x.dtype(), x.device());
  kernels::copy(x.device(), out, x.with_layout({x.size(1), x.size(0)}, {1, x.size(1)}, x.offset()));
  return out;
}

std::string state_name(const std::string& layer, int operand) {
  return join("fp8.", layer, ".", operand_names[operand]);
}
std::string counts_name(const std::string& layer) { return join("fp8.", layer, ".counts"); }

int64_t parts(int64_t size, int64_t of) { return std::max<int64_t>(1, (size + of - 1) / of); }

}  // namespace

struct NarrowProducts::Layer {
  std::string path, name;
  std::weak_ptr<Storage> owner;  // of the weight, which lies there as `form` does
  Tensor form;
  Tensor states[operands];  // kernels::DelayedScale
  Tensor counts;            // i64[operands, 3]
  Weight weight;
  uint32_t version = 0;  // of the weight that `weight` is
  bool learnt = false;   // this step has heard of it
};

NarrowProducts::NarrowProducts(ProductRecipe recipe, Where where) : recipe_(std::move(recipe)) {
  constexpr const char* name = "fp8";
  require(recipe_.history >= 1, name, where, "a history of at least one step, given ", recipe_.history);
  require(recipe_.history <= 1 << 20, name, where, "a history of at most 2^20 steps, given ", recipe_.history);
  require(-64 <= recipe_.margin && recipe_.margin <= 64, name, where, "a margin from -64 to 64, given ",
          recipe_.margin);
  met_.resize(recipe_.wide_modules.size());
  for (Dtype other : {recipe_.forward, recipe_.gradient})
    require<DtypeError>(has_product(recipe_.forward, other), name, where, recipe_.forward, " x ", other,
                        " does not exist on this hardware: use f8e4m3 forward, and f8e4m3 or f8e5m2 for gradients");
}

NarrowProducts::~NarrowProducts() = default;

std::shared_ptr<NarrowProducts::Layer> NarrowProducts::layer(const Tensor& weight) {
  const std::string& path = NameScope::path();
  const auto lies_alike = [&](const Tensor& form) {
    return form.shape() == weight.shape() && form.strides() == weight.strides() && form.offset() == weight.offset() &&
           form.dtype() == weight.dtype();
  };
  std::shared_ptr<Layer> free;
  for (const auto& one : layers_) {
    if (one->path != path || !lies_alike(one->form)) continue;
    if (one->owner.lock() == weight.storage()) return one;
    if (one->owner.expired() && !free) free = one;
  }
  if (!free) {
    std::string name = path.empty() ? "linear" : path;
    const auto taken = [&] { return std::ranges::find(layers_, name, [](const auto& one) { return one->name; }); };
    for (int number = 2; taken() != layers_.end(); ++number) name = join(path.empty() ? "linear" : path, "#", number);
    free = std::make_shared<Layer>();
    free->path = path;
    free->name = name;
    free->form = Tensor(nullptr, weight.shape(), weight.strides(), weight.offset(), weight.dtype());
    free->counts = begin_counts(*free, weight.device());
    layers_.push_back(free);
  }
  free->owner = weight.storage();
  free->weight = {};
  return free;
}

bool NarrowProducts::keeps_out() {
  const auto named = std::ranges::find_if(recipe_.wide_modules, NameScope::within);
  if (named == recipe_.wide_modules.end()) return false;
  met_[static_cast<size_t>(named - recipe_.wide_modules.begin())] = true;
  return true;
}

void NarrowProducts::check(int64_t rows, const Tensor& weight, Where where) const {
  if (recipe_.pad || !mode().recording) return;
  const bool by_blocks = recipe_.scaling == ProductScaling::block;
  const int64_t n = weight.size(0), k = weight.size(1);
  check_product({recipe_.forward, recipe_.forward, rows, n, k, by_blocks}, "linear", where);
  check_product({recipe_.gradient, recipe_.forward, rows, k, n, by_blocks}, "linear", where);
  check_product({recipe_.gradient, recipe_.forward, n, k, rows, by_blocks}, "linear", where);
}

Tensor NarrowProducts::loaded(const std::string& name) const {
  const auto found = std::ranges::find(loaded_, name, &std::pair<std::string, Tensor>::first);
  return found == loaded_.end() ? Tensor() : found->second;
}

void NarrowProducts::forget_loaded(const std::string& name) {
  std::erase_if(loaded_, [&](const auto& one) { return one.first == name; });
}

Tensor NarrowProducts::begin_counts(const Layer& layer, Device device) {
  std::vector<int64_t> values(3 * operands, 0);
  if (const Tensor saved = loaded(counts_name(layer.name))) values = to_vector<int64_t>(saved);
  const Tensor counts = from_values(values, {operands, 3}, device);
  forget_loaded(counts_name(layer.name));
  return counts;
}

Tensor NarrowProducts::begin_state(const Layer& layer, Operand operand, Device device) {
  CategoryScope scope(Category::optimizer);
  std::vector<float> values(static_cast<size_t>(kernels::delayed_history + recipe_.history), 0.0f);
  values[kernels::delayed_scale] = values[kernels::delayed_inverse] = 1;
  const Tensor saved = loaded(state_name(layer.name, operand));
  if (saved) {
    // All but the newest stand where they stood a step ago: the update below brings back that step, by this recipe.
    const std::vector<float> history = to_vector<float>(saved);
    const size_t count = std::min(history.size(), values.size() - kernels::delayed_history);
    values[kernels::delayed_staged] = history[0];
    std::copy_n(history.begin() + 1, count - 1, values.begin() + kernels::delayed_history);
  }
  const Tensor state = from_values(values, {static_cast<int64_t>(values.size())}, device);
  if (saved) kernels::update_delayed_scale(device, state, {}, rule_of(operand), recipe_.most_recent);
  forget_loaded(state_name(layer.name, operand));
  return state;
}

kernels::ScaleRule NarrowProducts::rule_of(Operand operand) const {
  const bool by_blocks = recipe_.scaling == ProductScaling::block, none = recipe_.scaling == ProductScaling::none;
  return {none ? 0 : static_cast<float>(largest_of(type_of(operand))), by_blocks, by_blocks ? 0 : recipe_.margin};
}

NarrowMatrix NarrowProducts::narrow(Layer& layer, Operand operand, const Tensor& x, bool learn) {
  const Device device = x.device();
  const bool by_blocks = recipe_.scaling == ProductScaling::block;
  const Dtype type = type_of(operand);
  NarrowMatrix out{
      empty(x.shape(), type, device), {}, std::max<int64_t>(1, x.size(0)), std::max<int64_t>(1, x.size(1))};
  if (by_blocks) out.block_rows = operand == weight ? block : 1, out.block_columns = block;
  const kernels::Blocks blocks{out.block_rows, out.block_columns};
  const int64_t down = parts(x.size(0), blocks.rows), across = parts(x.size(1), blocks.columns);
  const Tensor amax = empty({down, across}, Dtype::f32, device);
  out.scales = empty({2, down, across}, Dtype::f32, device);
  kernels::block_amax(device, amax, x, blocks);
  if (recipe_.scaling == ProductScaling::delayed) {
    Tensor& state = layer.states[operand];
    if (!state) state = begin_state(layer, operand, device);
    kernels::use_delayed_scale(device, out.scales, state, amax, rule_of(operand), learn);
  } else {
    kernels::scale_from_amax(device, out.scales, amax, rule_of(operand));
  }
  View counts;
  if (learn) counts = layer.counts.with_layout({3}, {1}, layer.counts.offset() + 3 * operand);
  kernels::quantize(device, out.codes, x, out.scales, blocks, counts);
  return out;
}

NarrowMatrix NarrowProducts::turned(Layer& layer, Operand operand, const Tensor& x, const NarrowMatrix& straight) {
  // Blocks lie along the summed dimension: the transposed matrix has others, and other codes.
  if (recipe_.scaling == ProductScaling::block && operand != weight)
    return narrow(layer, operand, transposed_copy(x), false);
  NarrowMatrix out{transposed_copy(straight.codes), straight.scales, straight.block_columns, straight.block_rows};
  if (const Tensor& scales = straight.scales)
    out.scales = scales.with_layout({2, scales.size(2), scales.size(1)},
                                    {scales.strides()[0], scales.strides()[2], scales.strides()[1]}, scales.offset());
  return out;
}

NarrowProducts::Weight NarrowProducts::narrow_weight(Layer& layer, const Tensor& weight, bool learn) {
  const uint32_t version = weight.storage()->version();
  const Tensor& codes = layer.weight.straight.codes;
  const bool current = codes && layer.version == version && context().may_use(*codes.storage());
  if (!current || (learn && !layer.learnt)) {
    CategoryScope scope(Category::weights);
    Tensor dense = weight;
    if (!weight.contiguous()) {
      dense = empty(weight.shape(), weight.dtype(), weight.device());
      kernels::copy(weight.device(), dense, weight);
    }
    layer.weight.straight = narrow(layer, Operand::weight, dense, learn);
    layer.weight.turned = turned(layer, Operand::weight, dense, layer.weight.straight);
    layer.version = version;
    layer.learnt = learn;
  }
  return layer.weight;
}

void NarrowProducts::update(const Tensor& factor, Where where) {
  for (size_t i = 0; i < met_.size(); ++i)
    require(met_[i], "fp8", where, "a linear layer at or below wide=", recipe_.wide_modules[i],
            ": none has run there in this step; the first that runs narrow is ",
            layers_.empty() ? "not there" : layers_.front()->name);
  loaded_.clear();  // of layers that are no more
  for (const auto& layer : layers_) {
    layer->weight = {};  // a step has one narrow form of a weight, under one scale, whether or not it was written
    layer->learnt = false;
    for (Operand operand : {input, Operand::weight, gradient})
      if (const Tensor& state = layer->states[operand])
        kernels::update_delayed_scale(state.device(), state, factor, rule_of(operand), recipe_.most_recent);
  }
}

std::vector<NarrowProducts::LayerCounts> NarrowProducts::take_counts() {
  std::vector<LayerCounts> out;
  for (const auto& layer : layers_) {
    const std::vector<int64_t> numbers = to_vector<int64_t>(layer->counts);
    LayerCounts& counts = out.emplace_back();
    counts.layer = layer->name;
    for (size_t i = 0; i < operands; ++i) counts.of[i] = {numbers[3 * i], numbers[3 * i + 1], numbers[3 * i + 2]};
    kernels::fill(layer->counts.device(), layer->counts, 0);
  }
  return out;
}

std::vector<std::pair<std::string, Tensor>> NarrowProducts::state() const {
  std::vector<std::pair<std::string, Tensor>> out = loaded_;
  for (const auto& layer : layers_) {
    out.emplace_back(counts_name(layer->name), layer->counts);
    for (int operand = 0; operand < operands; ++operand)
      if (const Tensor& state = layer->states[operand])
        out.emplace_back(state_name(layer->name, operand),
                         state.with_layout({recipe_.history}, {1}, state.offset() + kernels::delayed_history));
  }
  return out;
}

void NarrowProducts::load_state(const std::vector<std::pair<std::string, Tensor>>& state, Where where) {
  std::vector<std::pair<std::string, Tensor>> taken;
  for (const auto& [name, tensor] : state) {
    if (!owns(name)) continue;
    const bool counts = name.ends_with(".counts");
    const std::vector<double> values = to_vector<double>(tensor);
    require(std::ranges::all_of(values, [](double one) { return std::isfinite(one) && one >= 0; }) &&
                (counts ? tensor.dtype() == Dtype::i64 && tensor.shape() == Shape{operands, 3}
                        : tensor.dtype() == Dtype::f32 && tensor.rank() == 1 && tensor.numel() > 0),
            "fp8", where, "state ", name, " is a history of magnitudes, f32, or counts, i64[3,3]: ", tensor);
    require(std::ranges::find(taken, name, &std::pair<std::string, Tensor>::first) == taken.end(), "fp8", where,
            "state is given once: ", name);
    if (counts || recipe_.scaling == ProductScaling::delayed) taken.emplace_back(name, tensor);
  }
  layers_.clear();
  loaded_ = std::move(taken);
}

}  // namespace cinta::autograd
