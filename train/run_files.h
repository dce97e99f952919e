// What a resumed run needs beside the weights: the optimizer's state and where the loop stood.
#pragma once
#include "cinta/optim/optimizer.h"
#include "cinta/train/checkpoint_directory.h"

namespace cinta::train {

struct RunState {
  int64_t step = 0;
  double loss_sum = 0, correct_sum = 0;  ///< of the logging interval that was under way
  int64_t items = 0;
  int64_t evaluated_step = -1;  ///< whose evaluation is the last in metrics.jsonl
};

/// Adds optimizer.safetensors and trainer_state.json to a checkpoint being written.
void write_run_state(CheckpointWriter& writer, const RunState& state, const optim::Optimizer& optimizer);
/// Reads them back: the optimizer takes its state. Throws FileError naming the file.
RunState read_run_state(const std::string& directory, optim::Optimizer& optimizer, Where where = Where::current());

/// Copies a checkpoint's model files (what is not the run's state) into `directory`, each whole or not at all.
void publish_model(const std::string& checkpoint, const std::string& directory, Where where = Where::current());

/// Makes a directory and those above it.
void make_directory(const std::string& path, Where where = Where::current());
/// Removes the checkpoints of an earlier run.
void remove_checkpoints(const std::string& directory, Where where = Where::current());

}  // namespace cinta::train
