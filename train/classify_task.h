// Training an MLP to classify labelled rows.
#pragma once
#include "cinta/data/batches.h"
#include "cinta/train/classifier.h"
#include "cinta/train/task.h"

namespace cinta::train {

class ClassifyTask final : public Task {
 public:
  /// `split` is what the model reads: rows that `standardizer` has been applied to; it goes into the model's files.
  /// `hidden` are the widths between the features and the classes.
  ClassifyTask(data::Split split, data::Standardizer standardizer, const std::vector<int64_t>& hidden,
               int64_t batch_size, uint64_t seed, Device device = cpu, Where where = Where::current());
  models::Module& model() override { return *classifier_.mlp; }
  const data::BatchSource& batches() const override { return *batches_; }
  int64_t samples_per_batch() const override { return batch_size_; }
  Forward forward(const data::Batch& batch) override {
    return classify(classifier_, batch.inputs, batch.labels, device_);
  }
  /// eval_loss and eval_accuracy on the test rows.
  MetricFields evaluate_until(StopFlag stop) override;
  std::vector<std::string> evaluation_names() const override;
  void save(CheckpointWriter& writer) override { classifier_.save(writer); }
  models::LoadReport load(const std::string& directory) override;
  int64_t progress_items(const data::Batch& batch) const override { return static_cast<int64_t>(batch.labels.size()); }
  const char* progress_unit() const override { return "samples"; }
  const char* accuracy_name() const override { return "accuracy"; }

 private:
  data::Split split_;
  Classifier classifier_;
  int64_t batch_size_;
  Device device_;
  std::shared_ptr<data::ExampleBatches> batches_;
};

}  // namespace cinta::train
