// Narrow products: linear layers whose matrix products are fed 8-bit numbers, as tensor cores multiply them, while all
// else keeps its type. Values and weights in one format, gradients in another, each tensor under a scale that moves its
// magnitudes into the format's range.
// Micikevicius et al. 2022, "FP8 formats for deep learning"; DeepSeek-AI 2024 (scales for blocks).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cinta/core/tensor.h"

namespace cinta::kernels {
struct ScaleRule;
}

namespace cinta::autograd {

/// Where scales come from.
enum class ProductScaling {
  none,     ///< there are none
  current,  ///< the tensor's own greatest magnitude
  delayed,  ///< the greatest magnitudes of the steps before; in a tensor's first step its own
  block,    ///< powers of two, one for 128 numbers along the summed dimension, for 128 x 128 of a weight
};

struct ProductRecipe {
  ProductScaling scaling = ProductScaling::current;
  Dtype forward = Dtype::f8e4m3;   ///< of what layers read and of weights
  Dtype gradient = Dtype::f8e5m2;  ///< of the gradients of what layers return
  int64_t history = 1024;          ///< delayed: steps that are remembered
  bool most_recent = false;        ///< delayed: the newest magnitude counts, not the greatest
  int margin = 0;                  ///< halvings of each scale, as room for growth; current and delayed
  bool pad = true;                 ///< sizes that tensor cores do not take are filled up with zeros; else refused in
                                   ///< training (an evaluation, whose last batch has the size it has, pads)
  std::vector<std::string> wide_modules = {};  ///< paths below which layers compute in the type of autocast
};

/// "current", "delayed,history=16,amax=recent,margin=1", "block,gradient=e4m3,sizes=refuse,wide=mlp.layers.2",
/// "none,forward=e4m3fnuz,gradient=e5m2fnuz"; wide may be given again. Throws ValueError, and what NarrowProducts does.
ProductRecipe parse_product_recipe(std::string_view text, Where where = Where::current());

/// A matrix as codes of a narrow format, and its scales (backends/kernels/quantize.h); one block has `rows` rows.
struct NarrowMatrix {
  Tensor codes, scales;
  int64_t block_rows = 1, block_columns = 1;
};

/// The recipe at work: scales that go from step to step, weights in their narrow form, counts. Belongs to one training
/// and one thread.
class NarrowProducts {
 public:
  /// Throws ValueError for a history below 1 or a margin beyond +-64, DtypeError for formats that do not go together.
  explicit NarrowProducts(ProductRecipe recipe, Where where = Where::current());
  ~NarrowProducts();
  const ProductRecipe& recipe() const { return recipe_; }

  /// What a layer reads, its weight, the gradient of what it returns.
  enum Operand { input, weight, gradient };
  static constexpr int operands = 3;
  struct Layer;
  /// The layer at the present path (NameScope) that has this weight.
  std::shared_ptr<Layer> layer(const Tensor& weight);
  /// Whether the recipe's wide_modules name the present path (NameScope) or one above it.
  bool keeps_out();
  /// Throws what check_product() does for the three products of a layer: x[rows,K] w[N,K]^T and the two of its
  /// gradients.
  void check(int64_t rows, const Tensor& weight, Where where) const;

  /// x, contiguous [M,K], in the format of `operand`. `learn`: the step's scales and counts hear of it.
  NarrowMatrix narrow(Layer& layer, Operand operand, const Tensor& x, bool learn);
  /// The same of x^T, given what narrow() made of x: tensor cores want the summed dimension last.
  NarrowMatrix turned(Layer& layer, Operand operand, const Tensor& x, const NarrowMatrix& straight);
  /// A weight and its transposed form, made once a step, and when it has changed since.
  struct Weight {
    NarrowMatrix straight, turned;
  };
  Weight narrow_weight(Layer& layer, const Tensor& weight, bool learn);

  /// Ends a step: delayed scales follow what was seen in it. Call it after the optimizer's step, with its
  /// gradient_factor(): where that is 0 the step was skipped, and no scale hears of it. Throws ValueError for a path of
  /// wide_modules where no layer has run.
  void update(const Tensor& factor = {}, Where where = Where::current());

  struct Count {
    int64_t elements = 0, too_large = 0, vanished = 0;  ///< vanished: not 0 before, 0 in the format
  };
  struct LayerCounts {
    std::string layer;
    Count of[operands];
  };
  /// Of training since the last call, skipped steps among it; waits for the device.
  std::vector<LayerCounts> take_counts();

  /// What a resumed run needs: "fp8.<layer>.counts", and for delayed scales "fp8.<layer>.<operand>", the history.
  std::vector<std::pair<std::string, Tensor>> state() const;
  static bool owns(std::string_view name) { return name.starts_with("fp8."); }
  /// Takes its part of `state`, which may hold other tensors, and works the scales out from the histories; one of
  /// another length gives its newest part. Throws ValueError naming a tensor that cannot be.
  void load_state(const std::vector<std::pair<std::string, Tensor>>& state, Where where = Where::current());

 private:
  Tensor loaded(const std::string& name) const;
  void forget_loaded(const std::string& name);
  Tensor begin_counts(const Layer& layer, Device device);
  Tensor begin_state(const Layer& layer, Operand operand, Device device);
  Dtype type_of(Operand operand) const { return operand == gradient ? recipe_.gradient : recipe_.forward; }
  kernels::ScaleRule rule_of(Operand operand) const;

  ProductRecipe recipe_;
  std::vector<std::shared_ptr<Layer>> layers_;
  std::vector<bool> met_;                               // which of the wide modules
  std::vector<std::pair<std::string, Tensor>> loaded_;  // states whose layers have not run yet
};

}  // namespace cinta::autograd
