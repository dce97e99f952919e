// Scales, codes and the memory between steps; what a layer does with them is ops/narrow_linear.cpp.
#include "cinta/autograd/narrow_products.h"

#include <algorithm>
#include <cmath>

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
  std::weak_ptr<Storage> owner;  // of the weight
  struct Scale {
    Tensor state;         // kernels::DelayedScale
    bool learnt = false;  // in an earlier step
    bool staged = false;  // in this one
  };
  Scale scales[operands];
  Tensor counts;  // i64[operands, 3]
  Weight weight;
  uint32_t version = 0;        // of the weight that `weight` is
  bool weight_learnt = false;  // its scale and counts heard of it
};

NarrowProducts::NarrowProducts(ProductRecipe recipe, Where where) : recipe_(std::move(recipe)) {
  constexpr const char* name = "fp8";
  require(recipe_.history >= 1, name, where, "a history of at least one step, given ", recipe_.history);
  require(std::abs(recipe_.margin) <= 64, name, where, "a margin from -64 to 64, given ", recipe_.margin);
  const bool tf32 = recipe_.forward == Dtype::f32 && recipe_.gradient == Dtype::f32;
  require<DtypeError>(!tf32 || recipe_.scaling == ProductScaling::none, name, where, "TF32 has no scales");
  if (tf32) return;
  for (Dtype other : {recipe_.forward, recipe_.gradient})
    require<DtypeError>(has_product(recipe_.forward, other), name, where, recipe_.forward, " x ", other,
                        " does not exist on this hardware: use f8e4m3 forward, and f8e4m3 or f8e5m2 for gradients");
}

NarrowProducts::~NarrowProducts() = default;

NarrowProducts::Layer& NarrowProducts::layer(const Tensor& weight) {
  const std::string& path = NameScope::path();
  Layer* free = nullptr;
  int64_t here = 0;
  for (const auto& one : layers_) {
    if (one->path != path) continue;
    ++here;
    if (one->owner.lock() == weight.storage()) return *one;
    if (one->owner.expired() && !free) free = one.get();
  }
  if (!free) {
    free = layers_.emplace_back(std::make_unique<Layer>()).get();
    free->path = path;
    free->name = (path.empty() ? "linear" : path) + (here > 0 ? join("#", here + 1) : "");
    free->counts = begin_counts(*free, weight.device());
  }
  free->owner = weight.storage();
  free->weight = {};
  return *free;
}

void NarrowProducts::check(int64_t rows, const Tensor& weight, Where where) const {
  if (recipe_.pad || recipe_.forward == Dtype::f32) return;
  const bool by_blocks = recipe_.scaling == ProductScaling::block;
  const int64_t n = weight.size(0), k = weight.size(1);
  check_product({recipe_.forward, recipe_.forward, rows, n, k, by_blocks}, "linear", where);
  check_product({recipe_.gradient, recipe_.forward, rows, k, n, by_blocks}, "linear", where);
  check_product({recipe_.gradient, recipe_.forward, n, k, rows, by_blocks}, "linear", where);
}

Tensor NarrowProducts::take_loaded(const std::string& name) {
  const auto found = std::ranges::find(loaded_, name, &std::pair<std::string, Tensor>::first);
  if (found == loaded_.end()) return {};
  const Tensor out = found->second;
  loaded_.erase(found);
  return out;
}

Tensor NarrowProducts::begin_counts(const Layer& layer, Device device) {
  std::vector<int64_t> values(3 * operands, 0);
  if (const Tensor saved = take_loaded(counts_name(layer.name))) values = to_vector<int64_t>(saved);
  return from_values(values, {operands, 3}, device);
}

void NarrowProducts::begin_state(Layer& layer, Operand operand, Device device) {
  Layer::Scale& scale = layer.scales[operand];
  CategoryScope scope(Category::optimizer);
  std::vector<float> values(static_cast<size_t>(kernels::delayed_history + recipe_.history), 0.0f);
  values[kernels::delayed_scale] = values[kernels::delayed_inverse] = 1;
  if (const Tensor saved = take_loaded(state_name(layer.name, operand))) {
    const std::vector<float> before = to_vector<float>(saved);
    std::copy_n(before.begin(), std::min(before.size(), values.size()), values.begin());
    scale.learnt = values[kernels::delayed_history] > 0;
  }
  scale.state = from_values(values, {static_cast<int64_t>(values.size())}, device);
}

NarrowMatrix NarrowProducts::narrow(Layer& layer, Operand operand, const Tensor& x, bool learn) {
  const Device device = x.device();
  const bool by_blocks = recipe_.scaling == ProductScaling::block;
  const Dtype type = operand == gradient ? recipe_.gradient : recipe_.forward;
  NarrowMatrix out{
      empty(x.shape(), type, device), {}, std::max<int64_t>(1, x.size(0)), std::max<int64_t>(1, x.size(1))};
  if (by_blocks) out.block_rows = operand == weight ? block : 1, out.block_columns = block;
  const kernels::Blocks blocks{out.block_rows, out.block_columns};
  if (type != Dtype::f32) {
    const int64_t down = parts(x.size(0), blocks.rows), across = parts(x.size(1), blocks.columns);
    const Tensor amax = empty({down, across}, Dtype::f32, device);
    out.scales = empty({2, down, across}, Dtype::f32, device);
    kernels::block_amax(device, amax, x, blocks);
    Layer::Scale& scale = layer.scales[operand];
    const bool remembers = recipe_.scaling == ProductScaling::delayed || recipe_.scaling == ProductScaling::none;
    if (remembers) {
      if (!scale.state) begin_state(layer, operand, device);
      kernels::use_delayed_scale(device, out.scales, scale.state, amax, learn);
      scale.staged = scale.staged || learn;
    }
    if (recipe_.scaling != ProductScaling::none && !(remembers && scale.learnt))
      kernels::scale_from_amax(device, out.scales, amax,
                               {static_cast<float>(largest_of(type)), by_blocks, by_blocks ? 0 : recipe_.margin});
  }
  View counts;
  if (learn && type != Dtype::f32) counts = layer.counts.with_layout({3}, {1}, layer.counts.offset() + 3 * operand);
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
  const bool current = layer.weight.straight.codes && layer.version == version;
  if (!current || (learn && !layer.weight_learnt)) {
    CategoryScope scope(Category::weights);
    layer.weight.straight = narrow(layer, Operand::weight, weight, learn);
    layer.weight.turned = turned(layer, Operand::weight, weight, layer.weight.straight);
    layer.version = version;
    layer.weight_learnt = learn;
  }
  return layer.weight;
}

void NarrowProducts::update() {
  if (recipe_.scaling != ProductScaling::delayed) return;
  for (const auto& layer : layers_)
    for (int operand = 0; operand < operands; ++operand) {
      Layer::Scale& scale = layer->scales[operand];
      if (!std::exchange(scale.staged, false)) continue;
      const Dtype type = operand == gradient ? recipe_.gradient : recipe_.forward;
      kernels::update_delayed_scale(scale.state.device(), scale.state,
                                    {static_cast<float>(largest_of(type)), false, recipe_.margin}, recipe_.most_recent);
      scale.learnt = true;
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
    for (int operand = 0; operand < operands && recipe_.scaling == ProductScaling::delayed; ++operand)
      if (const Tensor& state = layer->scales[operand].state) out.emplace_back(state_name(layer->name, operand), state);
  }
  return out;
}

void NarrowProducts::load_state(const std::vector<std::pair<std::string, Tensor>>& state, Where where) {
  std::vector<std::pair<std::string, Tensor>> taken;
  for (const auto& [name, tensor] : state) {
    if (!owns(name)) continue;
    const std::vector<double> values = to_vector<double>(tensor);
    bool sound = std::ranges::all_of(values, [](double one) { return std::isfinite(one) && one >= 0; });
    if (name.ends_with(".counts")) {
      sound = sound && tensor.dtype() == Dtype::i64 && tensor.shape() == Shape{operands, 3};
    } else {
      sound = sound && tensor.dtype() == Dtype::f32 && tensor.rank() == 1 &&
              tensor.numel() > kernels::delayed_history && values[kernels::delayed_scale] > 0 &&
              values[kernels::delayed_inverse] > 0;
      if (recipe_.scaling != ProductScaling::delayed) continue;
    }
    require(sound, "fp8", where, "state ", name,
            " is f32 with a positive scale, its inverse and magnitudes, or counts i64[3,3]: ", tensor);
    taken.emplace_back(name, tensor);
  }
  layers_.clear();
  loaded_ = std::move(taken);
}

}  // namespace cinta::autograd
