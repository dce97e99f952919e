// Training an MLP to classify labelled rows.
#pragma once
#include "cinta/data/batches.h"
#include "cinta/models/mlp.h"
#include "cinta/train/task.h"

namespace cinta::train {

class ClassifyTask final : public Task {
 public:
  /// `sizes` are the hidden widths between the features and the classes. Inputs are used as they are.
  ClassifyTask(data::Split split, const std::vector<int64_t>& hidden, int64_t batch_size, uint64_t seed,
               Device device = cpu, Where where = Where::current());
  models::Module& model() override { return *mlp_; }
  const data::BatchSource& batches() const override { return *batches_; }
  int64_t samples_per_batch() const override { return batch_size_; }
  Forward forward(const data::Batch& batch) override;
  /// eval_loss and eval_accuracy on the test rows.
  MetricFields evaluate() override;
  void save(CheckpointWriter& writer) override;
  void load(const std::string& directory) override;
  int64_t progress_items(const data::Batch& batch) const override { return static_cast<int64_t>(batch.labels.size()); }
  const char* progress_unit() const override { return "samples"; }
  const char* accuracy_name() const override { return "accuracy"; }

 private:
  Forward forward(const std::vector<float>& inputs, const std::vector<int64_t>& labels);
  data::Split split_;
  std::vector<int64_t> sizes_;
  int64_t batch_size_;
  Device device_;
  std::unique_ptr<models::Mlp> mlp_;
  std::unique_ptr<data::ExampleBatches> batches_;
};

}  // namespace cinta::train
