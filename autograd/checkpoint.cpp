// Segments: the keeper that digs holes in forward, the keeper that collects on the re-run, and the hole between them.
#include "cinta/autograd/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace cinta::autograd {
namespace {

class Segment : public Hole, public std::enable_shared_from_this<Segment> {
 public:
  Segment(SegmentFunction function, const std::vector<Tensor>& inputs, std::vector<std::string> keep_ops)
      : function_(std::move(function)), keep_ops_(std::move(keep_ops)) {
    for (const Tensor& input : inputs) {
      const bool leaf = input.slot && input.slot->leaf;
      inputs_.push_back(leaf ? input : detach(input));
      tracked_.push_back(tracked(input));
    }
  }

  Tensor fill(int index) override {
    if (filled_.empty()) run_again();
    Tensor& tensor = filled_[static_cast<size_t>(index)];
    require<InternalError>(static_cast<bool>(tensor), "checkpoint", Where(), "a saved tensor is brought back once");
    return std::move(tensor);  // its owner holds it from here on, so memory falls as backward passes
  }

  int add_hole() { return saved_++; }
  bool keeps(std::string_view name) const {
    return std::find(keep_ops_.begin(), keep_ops_.end(), name) != keep_ops_.end();
  }
  std::vector<std::vector<Tensor>>& kept_outputs() { return kept_outputs_; }
  void collect(const Tensor& tensor) { filled_.push_back(detach(tensor)); }

 private:
  void run_again();
  SegmentFunction function_;
  std::vector<Tensor> inputs_;
  std::vector<bool> tracked_;
  std::vector<std::string> keep_ops_;
  int saved_ = 0;
  std::vector<Tensor> filled_;
  std::vector<std::vector<Tensor>> kept_outputs_;
};

/// In charge while the segment runs the first time.
class Recorder : public Keeper {
 public:
  explicit Recorder(std::shared_ptr<Segment> segment) : segment_(std::move(segment)) {}
  std::pair<std::shared_ptr<Hole>, int> keep(const Tensor&) override { return {segment_, segment_->add_hole()}; }
  bool retain(const char* name, std::span<const Tensor> outputs) override {
    if (!segment_->keeps(name)) return false;
    std::vector<Tensor> plain;
    for (const Tensor& output : outputs) plain.push_back(detach(output));
    segment_->kept_outputs().push_back(std::move(plain));
    return true;
  }

 private:
  std::shared_ptr<Segment> segment_;
};

/// In charge while the segment runs again.
class Replayer : public Keeper {
 public:
  explicit Replayer(Segment& segment) : segment_(segment) {}
  std::pair<std::shared_ptr<Hole>, int> keep(const Tensor& tensor) override {
    segment_.collect(tensor);
    return {};
  }
  bool replaying() const override { return true; }
  bool recall(const char* name, std::vector<Tensor>& outputs) override {
    if (!segment_.keeps(name)) return false;
    outputs = segment_.kept_outputs()[next_++];
    return true;
  }

 private:
  Segment& segment_;
  size_t next_ = 0;
};

void Segment::run_again() {
  std::vector<Tensor> inputs = inputs_;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (tracked_[i] && !inputs[i].slot) inputs[i].slot = std::make_shared<Slot>();
  Replayer replayer(*this);
  Scoped recording(&Mode::recording, true);
  Scoped keeper(&Mode::keeper, static_cast<Keeper*>(&replayer));
  function_(inputs);
  require<ValueError>(static_cast<int>(filled_.size()) == saved_, "checkpoint", Where(),
                      "the function saves the same tensors each time: ", saved_, " at first, ", filled_.size(),
                      " when run again");
}

}  // namespace

std::vector<Tensor> checkpoint_segment(const SegmentFunction& function, const std::vector<Tensor>& inputs,
                                       const std::vector<std::string>& keep_ops) {
  if (!mode().recording || mode().keeper) return function(inputs);
  auto segment = std::make_shared<Segment>(function, inputs, keep_ops);
  Recorder recorder(segment);
  Scoped keeper(&Mode::keeper, static_cast<Keeper*>(&recorder));
  return function(inputs);
}

CheckpointPolicy parse_checkpoint_policy(std::string_view text, Where where) {
  CheckpointPolicy policy;
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon), rest = colon == text.npos ? "" : text.substr(colon + 1);
  bool fits = false;
  if (kind == "none" || kind == "sqrt") {
    policy.kind = kind == "none" ? CheckpointPolicy::none : CheckpointPolicy::sqrt;
    fits = colon == text.npos;
  } else if (kind == "every") {
    policy.kind = CheckpointPolicy::every;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), policy.layers);
    fits = error == std::errc{} && end == rest.data() + rest.size() && policy.layers > 0;
  } else if (kind == "selective") {
    policy.kind = CheckpointPolicy::selective;
    for (size_t begin = 0; begin < rest.size();) {
      const size_t end = std::min(rest.find(',', begin), rest.size());
      policy.keep_ops.emplace_back(rest.substr(begin, end - begin));
      begin = end + 1;
    }
    fits = !policy.keep_ops.empty();
  }
  require(fits, "checkpoint", where, "a policy is none, sqrt, every:N or selective:op,op; given '", text, "'");
  return policy;
}

Tensor run_layers(const std::vector<std::function<Tensor(const Tensor&)>>& layers, Tensor x,
                  const CheckpointPolicy& policy) {
  size_t stride = 1;
  if (policy.kind == CheckpointPolicy::every) stride = static_cast<size_t>(policy.layers);
  if (policy.kind == CheckpointPolicy::sqrt)
    stride = static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(layers.size()))));
  for (size_t begin = 0; begin < layers.size(); begin += stride) {
    const size_t end = std::min(begin + stride, layers.size());
    // A segment outlives this call, so it holds its own copies of the layers' functions.
    auto part = [own = std::vector(layers.begin() + static_cast<long>(begin), layers.begin() + static_cast<long>(end))](
                    std::span<const Tensor> in) {
      Tensor y = in[0];
      for (const auto& layer : own) y = layer(y);
      return std::vector<Tensor>{y};
    };
    x = policy.kind == CheckpointPolicy::none ? part({&x, 1})[0]
                                              : checkpoint_segment(part, std::vector<Tensor>{x}, policy.keep_ops)[0];
  }
  return x;
}

}  // namespace cinta::autograd
