// Recording by an observer, and folding.
#include "cinta/train/tape_graph.h"

#include <algorithm>
#include <map>
#include <set>

#include "cinta/autograd/mode.h"
#include "cinta/data/atomic_file.h"

namespace cinta::train {
namespace {

/// "f32[32,128]"
std::string form_of(const Tensor& tensor) { return tensor ? join(tensor.dtype(), tensor.shape()) : "none"; }

class Recorder : public autograd::Observer {
 public:
  explicit Recorder(const std::vector<optim::Parameter>& parameters) {
    for (const optim::Parameter& parameter : parameters)
      if (parameter.tensor.slot) names_.emplace(parameter.tensor.slot.get(), parameter.name);
  }

  void before(const char* name, std::span<const Tensor* const> inputs) override {
    TapeNode& node = open_.emplace_back();
    node.op = name;
    node.module = NameScope::path();
    for (const Tensor* input : inputs) node.inputs.push_back(describe_input(*input));
    const autograd::Keeper* keeper = autograd::mode().keeper;
    if (const void* segment = keeper ? keeper->segment() : nullptr)
      node.segment = segments_.try_emplace(segment, static_cast<int>(segments_.size()) + 1).first->second;
  }
  void forward(const char*, Where where, std::span<const Tensor> outputs) override {
    now_ = std::move(open_.back());
    open_.pop_back();
    now_.place = place_of(where);
    for (const Tensor& output : outputs) now_.outputs.push_back(form_of(output));
  }
  void saved(const autograd::Node&, const Tensor& tensor, const autograd::Hole* hole) override {
    const bool parameter = tensor.slot && tensor.slot->leaf;
    const bool first = !parameter && held_.insert(tensor.storage()).second;
    const int64_t bytes = first ? tensor.storage()->bytes() : 0;
    now_.saved.push_back({form_of(tensor), hole ? 0 : bytes, hole ? bytes : 0});
  }
  void recorded(const autograd::Node& node) override {
    now_.number = node.number;
    tape.push_back(std::move(now_));
  }
  void backward(const autograd::Node&, std::span<const Tensor>) override {}

  std::vector<TapeNode> tape;

 private:
  TapeInput describe_input(const Tensor& tensor) const {
    TapeInput input{.tensor = form_of(tensor)};
    if (const autograd::Slot* slot = tensor.slot.get()) {
      if (slot->producer) input.from = slot->producer->number;
      if (const auto name = names_.find(slot); name != names_.end()) input.name = name->second;
    }
    return input;
  }

  std::map<const autograd::Slot*, std::string> names_;
  std::map<const void*, int> segments_;
  std::set<std::weak_ptr<Storage>, std::owner_less<>> held_;
  std::vector<TapeNode> open_;  ///< ops that run
  TapeNode now_;                ///< the op that ran last
};

/// The first `depth` parts of a dotted path.
std::string shortened(const std::string& path, int64_t depth) {
  size_t end = 0;
  for (int64_t part = 0; part < depth && end != path.npos; ++part) end = path.find('.', end == 0 ? 0 : end + 1);
  return path.substr(0, end);
}

}  // namespace

int64_t TapeNode::held_bytes() const {
  int64_t sum = 0;
  for (const TapeSaved& tensor : saved) sum += tensor.bytes;
  return sum;
}

int64_t TapeNode::elsewhere_bytes() const {
  int64_t sum = 0;
  for (const TapeSaved& tensor : saved) sum += tensor.elsewhere;
  return sum;
}

std::vector<TapeNode> record_tape(const Callback<void()>& forward, const std::vector<optim::Parameter>& parameters) {
  Recorder recorder(parameters);
  const autograd::Scoped watching(&autograd::Mode::observer, static_cast<autograd::Observer*>(&recorder));
  forward();
  std::vector<TapeNode> tape = std::move(recorder.tape);
  const uint64_t before = tape.empty() ? 0 : tape.front().number - 1;
  for (TapeNode& node : tape) {  // counted from 1
    node.number -= before;
    for (TapeInput& input : node.inputs) input.from -= std::min(input.from, before);
  }
  return tape;
}

std::vector<TapeNode> fold(const std::vector<TapeNode>& tape, int64_t depth) {
  if (depth <= 0) return tape;
  std::vector<TapeNode> out;
  std::map<uint64_t, uint64_t> folded_into;  // node -> the one that it is in now
  for (size_t begin = 0, end = 0; begin < tape.size(); begin = end) {
    TapeNode& whole = out.emplace_back(tape[begin]);
    whole.module = shortened(whole.module, depth);
    whole.inputs.clear();
    whole.saved.clear();
    for (; end < tape.size() && shortened(tape[end].module, depth) == whole.module; ++end) {
      const TapeNode& node = tape[end];
      folded_into[node.number] = whole.number;
      if (node.segment != whole.segment) whole.segment = 0;
      whole.outputs = node.outputs;
      whole.saved.insert(whole.saved.end(), node.saved.begin(), node.saved.end());
      for (TapeInput input : node.inputs) {
        if (input.from) input.from = folded_into[input.from];
        const auto same = [&](const TapeInput& other) { return input.from && other.from == input.from; };
        if (input.from != whole.number && std::ranges::none_of(whole.inputs, same))
          whole.inputs.push_back(std::move(input));
      }
    }
    if (end - begin > 1) whole.op = join(end - begin, " ops"), whole.place.clear();
  }
  return out;
}

}  // namespace cinta::train
