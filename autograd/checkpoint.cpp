// Segments: the keeper that digs holes in forward, the keeper that collects on the re-run, and the hole between them.
#include "cinta/autograd/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "cinta/autograd/autocast.h"

namespace cinta::autograd {
namespace {

constexpr const char* changed = "the segment's function computes the same each time: ";

class Segment : public Hole, public std::enable_shared_from_this<Segment> {
 public:
  Segment(SegmentFunction function, const std::vector<Tensor>& inputs, std::vector<std::string> keep_ops)
      : function_(std::move(function)), keep_ops_(std::move(keep_ops)) {
    for (const Tensor& input : inputs) {
      const bool leaf = input.slot && input.slot->leaf;
      Input& own = inputs_.emplace_back();
      own.tracked = tracked(input);
      if (Keeper* keeper = mode().keeper; keeper && !leaf) std::tie(own.hole, own.index) = keeper->keep(input);
      if (!own.hole) own.tensor = leaf ? input : detach(input);
    }
  }

  Tensor fill(int index, Where where) override {
    if (filled_.empty()) run_again(where);
    Tensor& tensor = filled_[static_cast<size_t>(index)];
    require<InternalError>(static_cast<bool>(tensor), "checkpoint", where, "a saved tensor is brought back once");
    return std::move(tensor);  // its owner holds it from here on, so memory falls as backward passes
  }

  int add_hole(const Tensor& tensor) {
    forms_.push_back({tensor.shape(), tensor.dtype()});
    return static_cast<int>(forms_.size()) - 1;
  }
  bool keeps(std::string_view name) const {
    return std::find(keep_ops_.begin(), keep_ops_.end(), name) != keep_ops_.end();
  }
  void keep_outputs(const char* op, std::span<const Tensor> outputs) {
    Kept& kept = kept_.emplace_back(Kept{op, {}, {}});
    for (const Tensor& output : outputs) {
      kept.outputs.push_back(detach(output));
      kept.versions.push_back(output.storage()->version());
    }
  }
  const std::vector<Tensor>& kept_outputs(size_t index) const { return kept_[index].outputs; }
  /// Gives up the copies in the low type that kept outputs came with: what is kept is kept without.
  void drop_shadows() const {
    for (const Kept& kept : kept_)
      for (const Tensor& output : kept.outputs) drop_shadow(output);
  }
  void add_op(const char* name) { ops_.push_back(name); }
  const std::vector<std::string_view>& ops() const { return ops_; }

  /// Notes what an op reads and the segment did not compute (its inputs, and what its function captured): it has to be
  /// as it was when the segment runs again.
  void add_read(const char* op, const Tensor& tensor) {
    tensor.storage()->stays = true;
    reads_.push_back({tensor.storage(), tensor.storage()->version(), op, tensor.shape(), tensor.dtype()});
  }

 private:
  void check_reads(Where where) const;
  void run_again(Where where);
  SegmentFunction function_;
  std::shared_ptr<const Autocast> autocast_ = mode().autocast;
  std::string path_ = NameScope::path();  // which autocast may go by
  struct Input {
    Tensor tensor;  ///< or, where an outer keeper took it:
    std::shared_ptr<Hole> hole;
    int index = 0;
    bool tracked = false;
  };
  std::vector<Input> inputs_;
  std::vector<std::string> keep_ops_;
  struct Form {
    Shape shape;
    Dtype dtype;
  };
  std::vector<Form> forms_;            // of the tensors saved at first
  std::vector<std::string_view> ops_;  // recorded at first, in order
  struct Read {
    std::weak_ptr<Storage> storage;
    uint32_t version;
    const char* op;
    Shape shape;
    Dtype dtype;
  };
  std::vector<Read> reads_;
  std::vector<Tensor> filled_;
  struct Kept {
    const char* op;
    std::vector<Tensor> outputs;
    std::vector<uint32_t> versions;
  };
  std::vector<Kept> kept_;
};

/// In charge while the segment runs the first time.
class Recorder : public Keeper {
 public:
  explicit Recorder(std::shared_ptr<Segment> segment) : segment_(std::move(segment)) {}
  const void* segment() const override { return segment_.get(); }
  std::pair<std::shared_ptr<Hole>, int> keep(const Tensor& tensor) override {
    const Node* const node = mode().saving;
    note(node ? node->name() : "", tensor);  // which may be an option, and none of the op's inputs
    return {segment_, segment_->add_hole(tensor)};
  }
  bool recall(const char* name, std::span<const Tensor* const> inputs, std::vector<Tensor>&) override {
    segment_->add_op(name);
    note_inputs(name, inputs);
    return false;
  }
  void note(const char* name, const Tensor& tensor) override {
    if (known_.insert(tensor.storage()).second) segment_->add_read(name, tensor);
  }
  void pass(const char* name, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs) override {
    note_inputs(name, inputs);
    note_computed(outputs);
    if (mode().recording) ran_.insert(name);
  }
  bool retain(const char* name, std::span<const Tensor> outputs) override {
    note_computed(outputs);
    ran_.insert(name);
    if (!segment_->keeps(name)) return false;
    segment_->keep_outputs(name, outputs);
    return true;
  }
  /// Throws ValueError for an op to be kept that did not run: a name spelled wrong would keep nothing.
  void check_kept(const std::vector<std::string>& keep_ops, Where where) const {
    for (const std::string& name : keep_ops) {
      if (ran_.contains(name)) continue;
      std::string there;
      for (std::string_view one : ran_) there += (there.empty() ? "" : ", ") + std::string(one);
      require(false, "checkpoint", where, "no op '", name, "' to keep runs in the segment; those that do: ", there);
    }
  }

 private:
  void note_inputs(const char* name, std::span<const Tensor* const> inputs) {
    for (const Tensor* input : inputs)
      if (*input) note(name, *input);
  }
  /// What the segment computes is computed anew on the re-run. A view was noted with what it is a view of.
  void note_computed(std::span<const Tensor> outputs) {
    for (const Tensor& output : outputs) known_.insert(output.storage());
  }
  std::shared_ptr<Segment> segment_;
  std::set<std::weak_ptr<Storage>, std::owner_less<>> known_;  // noted, or computed by the ops of the segment
  std::set<std::string_view> ran_;
};

/// In charge while the segment runs again.
class Replayer : public Keeper {
 public:
  Replayer(Segment& segment, Where where) : segment_(segment), where_(where) {}
  std::pair<std::shared_ptr<Hole>, int> keep(const Tensor& tensor) override {
    saved_.push_back(detach(tensor));
    return {};
  }
  const void* segment() const override { return &segment_; }
  bool replaying() const override { return true; }
  bool recall(const char* name, std::span<const Tensor* const>, std::vector<Tensor>& outputs) override {
    const std::vector<std::string_view>& ops = segment_.ops();
    require(next_op_ < ops.size(), "checkpoint", where_, changed, "it ran ", ops.size(), " ops, and now ", name,
            " too");
    require(ops[next_op_] == name, "checkpoint", where_, changed, "its op ", next_op_, " was ", ops[next_op_],
            ", and now is ", name);
    ++next_op_;
    if (!segment_.keeps(name)) return false;
    outputs = segment_.kept_outputs(next_kept_++);
    return true;
  }
  void check_ended() const {
    const size_t before = segment_.ops().size();
    require(next_op_ == before, "checkpoint", where_, changed, "it ran ", before, " ops, and now ", next_op_);
  }
  std::vector<Tensor>& saved() { return saved_; }

 private:
  Segment& segment_;
  Where where_;  // the op whose backward asked for the re-run
  std::vector<Tensor> saved_;
  size_t next_op_ = 0, next_kept_ = 0;
};

void Segment::check_reads(Where where) const {
  for (const Read& read : reads_) {
    const std::shared_ptr<Storage> storage = read.storage.lock();
    require(!storage || storage->version() == read.version, "checkpoint", where, "what ", read.op,
            " read in the segment, ", read.dtype, read.shape, ", was overwritten in place by ",
            storage ? storage->last_writer() : "", " before backward");
  }
  for (const Kept& kept : kept_)
    for (size_t i = 0; i < kept.outputs.size(); ++i) {
      const Tensor& output = kept.outputs[i];
      require(output.storage()->version() == kept.versions[i], "checkpoint", where, "what ", kept.op,
              " gave and is kept, ", output, ", was overwritten in place by ", output.storage()->last_writer());
    }
}

void Segment::run_again(Where where) {
  check_reads(where);
  std::vector<Tensor> inputs;
  for (const Input& input : inputs_) {
    inputs.push_back(input.hole ? input.hole->fill(input.index, where) : input.tensor);
    if (input.tracked && !inputs.back().slot) inputs.back().slot = std::make_shared<Slot>();
  }
  Replayer replayer(*this, where);
  Scoped recording(&Mode::recording, true);
  Scoped autocast(&Mode::autocast, autocast_);
  const PathScope place(path_);
  Scoped keeper(&Mode::keeper, static_cast<Keeper*>(&replayer));
  function_(inputs);
  replayer.check_ended();
  std::vector<Tensor>& saved = replayer.saved();
  require(saved.size() == forms_.size(), "checkpoint", where, changed, "its ops saved ", forms_.size(),
          " tensors, and now ", saved.size());
  for (size_t i = 0; i < saved.size(); ++i)
    require(saved[i].shape() == forms_[i].shape && saved[i].dtype() == forms_[i].dtype, "checkpoint", where, changed,
            "tensor ", i, " that its ops saved was ", forms_[i].dtype, forms_[i].shape, ", and now is ", saved[i]);
  filled_ = std::move(saved);
}

}  // namespace

std::vector<Tensor> checkpoint_segment(const SegmentFunction& function, const std::vector<Tensor>& inputs,
                                       const std::vector<std::string>& keep_ops, Where where) {
  if (!mode().recording || (mode().keeper && mode().keeper->segment())) return function(inputs);
  auto segment = std::make_shared<Segment>(function, inputs, keep_ops);
  Recorder recorder(segment);
  Scoped keeper(&Mode::keeper, static_cast<Keeper*>(&recorder));
  std::vector<Tensor> outputs = function(inputs);
  recorder.check_kept(keep_ops, where);
  // What is kept for the re-run is kept without the copies in the low type that it came with.
  for (const Tensor& input : inputs) drop_shadow(input);
  segment->drop_shadows();
  return outputs;
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
    for (size_t begin = 0, end = 0; end < rest.size(); begin = end + 1) {
      end = std::min(rest.find(',', begin), rest.size());
      policy.keep_ops.emplace_back(rest.substr(begin, end - begin));
    }
    fits = !policy.keep_ops.empty() &&
           std::find(policy.keep_ops.begin(), policy.keep_ops.end(), "") == policy.keep_ops.end();
  }
  require(fits, "checkpoint", where, "a policy is none, sqrt, every:N or selective:op,op; given '", text, "'");
  return policy;
}

Tensor run_layers(const std::vector<Callback<Tensor(const Tensor&)>>& layers, Tensor x,
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
                                              : checkpoint_segment(part, {x}, policy.keep_ops, Where())[0];
  }
  return x;
}

}  // namespace cinta::autograd
