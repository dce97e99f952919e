// The files of a run beside the weights: the optimizer's state, where the loop stood, the model in its final place.
#pragma once
#include "cinta/autograd/narrow_products.h"
#include "cinta/optim/loss_scale.h"
#include "cinta/train/checkpoint_directory.h"
#include "cinta/train/run_state.h"

namespace cinta::train {

/// Adds optimizer.safetensors and trainer_state.json to a checkpoint being written. `epoch` counts the passes over the
/// data so far. `products` may be null.
void write_run_state(CheckpointWriter& writer, const RunState& state, double epoch, const optim::Optimizer& optimizer,
                     const optim::LossScaler& scaler, const autograd::NarrowProducts* products);
/// Reads them back: optimizer, scaler and products take their state. Throws FileError naming the file.
RunState read_run_state(const std::string& directory, optim::Optimizer& optimizer, optim::LossScaler& scaler,
                        autograd::NarrowProducts* products, Where where = Where::current());

/// Copies a checkpoint's model files (what is not the run's state) into `directory`, each whole or not at all.
void publish_model(const std::string& checkpoint, const std::string& directory, Where where = Where::current());

/// Makes a directory and those above it.
void make_directory(const std::string& path, Where where = Where::current());
/// Removes the checkpoints of an earlier run, the links to them and its published weights.
void remove_checkpoints(const std::string& directory, Where where = Where::current());

/// Whether a run has begun in a directory: its metrics are there.
bool holds_run(const std::string& directory);
/// Whether a directory holds checkpoints, whole or not, or links to them.
bool holds_checkpoint(const std::string& directory, Where where = Where::current());
/// A name in a directory, if it is there, that a run's file has; empty where no such is. Whose file it is nobody knows.
std::string name_of_run_file(const std::string& directory, Where where = Where::current());
/// Removes all that an earlier run has left, and those of further seeds below it. Files of other names stay.
void remove_run(const std::string& directory, Where where = Where::current());

}  // namespace cinta::train
