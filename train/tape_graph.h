// The tape of a forward pass as something to look at: which ops it holds, from where they got what, and what each keeps
// in memory for backward. As a table, JSON, or a picture drawn by Graphviz.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cinta/core/callback.h"
#include "cinta/optim/parameter.h"

namespace cinta::train {

struct TapeInput {
  uint64_t from = 0;        ///< the node that made it, or 0
  std::string name = {};    ///< of a parameter
  std::string tensor = {};  ///< "f32[32,128]"
};

struct TapeSaved {
  std::string tensor;
  int64_t bytes;      ///< held by this node; 0 where the parameters or a node before it hold them anyway
  int64_t elsewhere;  ///< bytes that a keeper took over: brought back by running again, or from the host's memory
};

/// One op on the tape, or several folded into one.
struct TapeNode {
  uint64_t number = 0;  ///< in the order of recording; folded: that of the first
  std::string op = {};  ///< "linear"; folded: "7 ops"
  std::string module = {}, place = {};
  std::vector<TapeInput> inputs = {};
  std::vector<std::string> outputs = {};
  std::vector<TapeSaved> saved = {};
  int segment = 0;  ///< checkpointed segments count from 1; 0: in none

  int64_t held_bytes() const;
  int64_t elsewhere_bytes() const;
};

/// Runs `forward` and returns what it put on the tape, numbered from 1 in order. `parameters` give their names to
/// inputs. What a checkpointed segment keeps to be run again (its inputs) is nobody's and not counted.
std::vector<TapeNode> record_tape(const Callback<void()>& forward, const std::vector<optim::Parameter>& parameters);

/// Nodes that follow each other become one where their modules' paths begin with the same `depth` parts: of
/// bert.encoder.layer.0 the first two are bert.encoder. 0 folds nothing.
std::vector<TapeNode> fold(const std::vector<TapeNode>& tape, int64_t depth);

/// A graph for Graphviz: the redder a node, the more it holds; checkpointed segments are boxes around theirs.
std::string tape_dot(const std::vector<TapeNode>& tape, const std::string& title);
/// A line for each node, and sums.
std::string tape_table(const std::vector<TapeNode>& tape);
/// The nodes and sums as a JSON object.
std::string tape_json(const std::vector<TapeNode>& tape);

}  // namespace cinta::train
