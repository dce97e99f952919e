// A classifier of rows of numbers: an MLP, how its inputs are scaled, and its files.
#pragma once
#include "cinta/data/examples.h"
#include "cinta/models/mlp.h"
#include "cinta/models/model_file.h"
#include "cinta/train/metrics.h"
#include "cinta/train/task.h"

namespace cinta::train {

struct Classifier {
  std::vector<int64_t> sizes;        ///< widths from the features to the classes
  data::Standardizer standardizer;   ///< of raw rows
  std::shared_ptr<models::Mlp> mlp;  ///< takes standardized rows

  /// model.safetensors and config.json (sizes, activation, mean and deviation of each feature).
  void save(CheckpointWriter& writer) const;
};

/// The classifier that the config.json in a directory describes, with first weights. Throws FileError for a
/// configuration that is not an MLP's.
Classifier read_classifier(const std::string& directory, Device device = cpu, Where where = Where::current());

/// Reads a classifier back, and what loading its weights did. Throws FileError for a configuration that is not an MLP's
/// or does not fit the weights.
std::pair<Classifier, models::LoadReport> load_classifier(const std::string& directory, Device device = cpu,
                                                          Where where = Where::current());

/// Summed loss and number of rows read right, for rows that are standardized already.
Forward classify(const Classifier& classifier, const std::vector<float>& inputs, const std::vector<int64_t>& labels,
                 Device device);

/// eval_loss (mean, nats) and eval_accuracy on standardized rows.
MetricFields evaluate(const Classifier& classifier, const data::Examples& examples, Device device);

}  // namespace cinta::train
