// Which powers of two a model's numbers lie between: what its modules return, the gradients of that, weights and their
// gradients, in the first and the last step of a run, against the limits of narrow formats.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "cinta/models/module.h"
#include "cinta/train/callback.h"

namespace cinta::train {

struct Exponents {
  static constexpr int least = -60, most = 40;  ///< exponents beyond count as these
  enum Kind { forward, gradient, weight, weight_gradient };

  Kind kind = forward;
  std::string name;                                ///< path of the module or of the parameter
  std::array<int64_t, most - least + 1> counts{};  ///< numbers in [2^e, 2^(e+1)), by e - least
  int64_t zeros = 0, not_finite = 0;

  void add(const Tensor& tensor);
  /// Of zeros and finite numbers.
  int64_t total() const;
  /// Of total(): those that a format without scales makes 0, and those that are too large for it; by exponents.
  double vanishing(int smallest_exponent) const;
  double saturating(int top_exponent) const;
};

/// Sees the steps that it is alive in, on this thread; an observer that watches already goes on watching.
class ExponentWatch {
 public:
  explicit ExponentWatch(const models::Module& model);
  ~ExponentWatch();
  ExponentWatch(const ExponentWatch&) = delete;
  ExponentWatch& operator=(const ExponentWatch&) = delete;
  /// In order of first appearance, with the weights as they are now.
  std::vector<Exponents> take();

 private:
  class Observer;
  std::shared_ptr<Observer> observer_;
};

struct ExponentStep {
  int64_t step = 0;
  std::vector<Exponents> tensors;
};
/// A chart of one or two steps: a line a tensor, darker where more of its numbers are, the ranges of the formats above.
std::string svg_of(const std::vector<ExponentStep>& steps);
/// The same as JSON: {"least_exponent":-60,"steps":[{"step":1,"tensors":[{"name":..,"kind":..,"counts":[..],..
std::string json_of(const std::vector<ExponentStep>& steps);

/// Writes exponents.svg and exponents.json into the run's directory: of the first step that this process does, and of
/// the last one.
class ExponentReport final : public TrainerCallback {
 public:
  void on_step_begin(const Moment& now) override;
  void on_pre_optimizer_step(const Moment& now) override;
  /// Those seen so far.
  const std::vector<ExponentStep>& steps() const { return steps_; }

 private:
  std::shared_ptr<ExponentWatch> watch_;
  std::vector<ExponentStep> steps_;
};

}  // namespace cinta::train
