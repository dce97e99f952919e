// Recording a forward pass, and folding.
#include "cinta/train/tape_graph.h"

#include <algorithm>
#include <map>

#include "cinta/autograd/mode.h"
#include "cinta/train/tape_recorder.h"

namespace cinta::train {
namespace {

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
  TapeRecorder recorder(parameters);
  const autograd::Scoped watching(&autograd::Mode::observer, static_cast<autograd::Observer*>(&recorder));
  forward();
  return recorder.take();
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
