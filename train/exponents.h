// Which powers of two a model's numbers lie between: what its ops return, the gradients of that, weights and their
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
  /// Of a parameter its path; else the path of the module, the op and, where it runs there again in the same
  /// forward, a running number: "layer.0/linear", "layer.0/linear 2".
  std::string name;
  std::array<int64_t, most - least + 1> counts{};  ///< numbers in [2^e, 2^(e+1)), by e - least
  int64_t zeros = 0, not_finite = 0;

  void add(const Tensor& tensor);
  /// Of zeros and finite numbers.
  int64_t total() const;
  /// Of total(): those that a format without scales makes 0, and those that are too large for it; by exponents.
  double vanishing(int smallest_exponent) const;
  double saturating(int top_exponent) const;
};

/// As charts and files spell it.
const char* name_of(Exponents::Kind kind);

/// A format without scales: the powers of two of its least and of its greatest number.
struct ExponentRange {
  std::string name;
  int least, top;
};
/// f16, f8e4m3, f8e5m2.
std::vector<ExponentRange> exponent_ranges();

/// Sees the steps that it is alive in, on this thread; an observer that watches already goes on watching. A forward
/// ends with the walk backwards from it: the tensors of one micro-batch after the other are counted as the same ones.
/// Left out are single numbers and, in a backward, what its rules compute and what is computed anew.
class ExponentWatch {
 public:
  explicit ExponentWatch(const models::Module& model);
  ~ExponentWatch();
  ExponentWatch(const ExponentWatch&) = delete;
  ExponentWatch& operator=(const ExponentWatch&) = delete;
  /// By kind, then in order of first appearance in a forward, with all parameters as they are now.
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
/// The steps in the file at `path`, which json_of() wrote. Throws FileError where it did not.
std::vector<ExponentStep> read_exponents(const std::string& path, Where where = Where::current());

/// Writes exponents.svg and exponents.json into the run's directory: of the first step, while it is done, and of the
/// last, which is repeated with the trained weights however the run came to its end. A resumed run keeps what the files
/// there tell of steps that lie before it. Stands before callbacks that load other weights at the end.
class ExponentReport final : public TrainerCallback {
 public:
  void on_train_begin(const Moment& now) override;
  void on_step_begin(const Moment& now) override;
  void on_pre_optimizer_step(const Moment& now) override;
  void on_train_end(const Moment& now) override;
  /// Those seen so far.
  const std::vector<ExponentStep>& steps() const { return steps_; }

 private:
  void write(const std::string& directory) const;

  int64_t begun_after_ = 0;  ///< steps that were done when this process began
  std::shared_ptr<ExponentWatch> watch_;
  std::vector<ExponentStep> steps_;
};

}  // namespace cinta::train
